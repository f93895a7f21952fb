"""NVML as the driver's library behaves, played by a stand-in with the same names."""

import pytest

from octavo_engine.energy.meter import EnergyUnavailable
from octavo_engine.energy.nvml import NvmlMeter


class FakeNvml:
    """The functions that the meter calls; an error in place of a value is raised."""

    class NVMLError(Exception):
        """As in pynvml."""

    def __init__(self, energy: int | str = 5_000, power: int | str = 200_000, init: str | None = None) -> None:
        self.energy = energy
        self.power = power
        self._init = init

    def _value(self, value: int | str) -> int:
        if isinstance(value, str):
            raise self.NVMLError(value)
        return value

    def nvmlInit(self) -> None:  # noqa: N802
        if self._init is not None:
            raise self.NVMLError(self._init)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> str:  # noqa: N802
        if index:
            raise self.NVMLError("Invalid Argument")
        return "gpu"

    def nvmlDeviceGetTotalEnergyConsumption(self, device: str) -> int:  # noqa: N802
        assert device == "gpu"
        return self._value(self.energy)

    def nvmlDeviceGetPowerUsage(self, device: str) -> int:  # noqa: N802
        assert device == "gpu"
        return self._value(self.power)


def test_the_counter_is_read_in_joules() -> None:
    nvml = FakeNvml(energy=5_000)
    meter = NvmlMeter(nvml=nvml)
    nvml.energy = 12_500
    assert meter.joules() == 7.5
    # The driver was loaded again.
    nvml.energy = 100
    assert meter.joules() == 7.5


def test_power_is_added_up_where_there_is_no_counter() -> None:
    now = [10.0]
    nvml = FakeNvml(energy="Not Supported", power=200_000)
    meter = NvmlMeter(nvml=nvml, clock=lambda: now[0])
    now[0] = 12.0
    assert meter.joules() == 400.0
    nvml.power = 100_000
    now[0] = 13.0
    assert meter.joules() == 500.0


@pytest.mark.parametrize(
    ("nvml", "index", "words"),
    [
        (FakeNvml(init="Driver Not Loaded"), 0, "Driver Not Loaded"),
        (FakeNvml(), 3, "Invalid Argument"),
        (FakeNvml(energy="Not Supported", power="Insufficient Permissions"), 0, "Insufficient Permissions"),
    ],
)
def test_what_cannot_be_read_has_a_reason(nvml: FakeNvml, index: int, words: str) -> None:
    with pytest.raises(EnergyUnavailable, match=words):
        NvmlMeter(index, nvml=nvml)


def test_a_gpu_that_goes_away_is_unavailable() -> None:
    nvml = FakeNvml()
    meter = NvmlMeter(nvml=nvml)
    nvml.energy = "GPU is lost"
    with pytest.raises(EnergyUnavailable, match="GPU is lost"):
        meter.joules()
