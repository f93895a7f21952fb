"""NVML as the driver's library behaves, played by a stand-in with the names and the error classes of pynvml."""

import pynvml
import pytest

from octavo_engine.energy.meter import EnergyUnavailable
from octavo_engine.energy.nvml import NvmlMeter

OLD_GPU = pynvml.NVML_ERROR_NOT_SUPPORTED
OLD_DRIVER = pynvml.NVML_ERROR_FUNCTION_NOT_FOUND


class Answer:
    """What a function of NVML gives: a number, or an error with pynvml's code."""

    def __init__(self, value: int = 0, error: int | None = None) -> None:
        self.value = value
        self.error = error

    def give(self) -> int:
        if self.error is not None:
            raise pynvml.NVMLError(self.error)
        return self.value


class FakeNvml:
    """The functions that the meter calls, on a machine with one GPU. Energy in millijoules, power in milliwatts."""

    NVMLError = pynvml.NVMLError
    NVMLError_LibraryNotFound = pynvml.NVMLError_LibraryNotFound
    NVMLError_DriverNotLoaded = pynvml.NVMLError_DriverNotLoaded
    NVMLError_NoPermission = pynvml.NVMLError_NoPermission
    NVMLError_NotSupported = pynvml.NVMLError_NotSupported
    NVMLError_FunctionNotFound = pynvml.NVMLError_FunctionNotFound

    def __init__(self, energy: Answer | None = None, power: Answer | None = None, init: Answer | None = None) -> None:
        self.energy = energy or Answer(5_000)
        self.power = power or Answer(200_000)
        self._init = init or Answer()
        self.opened = 0

    def nvmlInit(self) -> None:  # noqa: N802
        self._init.give()
        self.opened += 1

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.opened -= 1

    def nvmlDeviceGetHandleByIndex(self, index: int) -> str:  # noqa: N802
        if index:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_INVALID_ARGUMENT)
        return "gpu"

    def nvmlDeviceGetTotalEnergyConsumption(self, device: str) -> int:  # noqa: N802
        assert device == "gpu"
        return self.energy.give()

    def nvmlDeviceGetPowerUsage(self, device: str) -> int:  # noqa: N802
        assert device == "gpu"
        return self.power.give()


def test_the_stand_in_has_only_names_that_pynvml_has() -> None:
    names = [name for name in vars(FakeNvml) if name.startswith(("nvml", "NVML"))]
    assert len(names) == 11
    assert [name for name in names if not hasattr(pynvml, name)] == []


def test_the_counter_is_read_in_joules() -> None:
    nvml = FakeNvml(energy=Answer(5_000))
    meter = NvmlMeter(nvml=nvml)
    assert meter.joules() == 0.0
    nvml.energy = Answer(12_500)
    assert meter.joules() == 7.5
    # The driver was loaded again.
    nvml.energy = Answer(100)
    assert meter.joules() == 7.5


@pytest.mark.parametrize("why", [OLD_GPU, OLD_DRIVER])
def test_power_is_added_up_where_there_is_no_counter(why: int) -> None:
    now = [10.0]
    nvml = FakeNvml(energy=Answer(error=why), power=Answer(200_000))
    meter = NvmlMeter(nvml=nvml, clock=lambda: now[0])
    now[0] = 12.0
    assert meter.joules() == 400.0
    nvml.power = Answer(100_000)
    now[0] = 13.0
    assert meter.joules() == 500.0


@pytest.mark.parametrize(
    ("nvml", "index", "words"),
    [
        (FakeNvml(init=Answer(error=pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)), 0, "no NVIDIA driver .*; install"),
        (FakeNvml(init=Answer(error=pynvml.NVML_ERROR_DRIVER_NOT_LOADED)), 0, "no NVIDIA driver .*; install"),
        (FakeNvml(), 3, r"cannot be asked .*\(Invalid Argument\); `nvidia-smi`"),
        (FakeNvml(energy=Answer(error=pynvml.NVML_ERROR_NO_PERMISSION)), 0, "its administrator can allow it"),
        (
            FakeNvml(energy=Answer(error=OLD_GPU), power=Answer(error=pynvml.NVML_ERROR_NO_PERMISSION)),
            0,
            "its administrator can allow it",
        ),
        (FakeNvml(energy=Answer(error=OLD_GPU), power=Answer(error=OLD_GPU)), 0, "neither its energy nor its power"),
    ],
)
def test_what_cannot_be_read_has_a_reason(nvml: FakeNvml, index: int, words: str) -> None:
    with pytest.raises(EnergyUnavailable, match=words):
        NvmlMeter(index, nvml=nvml)
    assert nvml.opened == 0, "the library was left open"


@pytest.mark.parametrize("counts", [True, False])
def test_a_gpu_that_goes_away_is_unavailable(counts: bool) -> None:
    nvml = FakeNvml(energy=Answer(5_000) if counts else Answer(error=OLD_GPU))
    meter = NvmlMeter(nvml=nvml)
    nvml.energy = nvml.power = Answer(error=pynvml.NVML_ERROR_GPU_IS_LOST)
    with pytest.raises(EnergyUnavailable, match="GPU is lost"):
        meter.joules()
