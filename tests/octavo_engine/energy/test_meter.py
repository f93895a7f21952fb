"""Each kind of device has its meter, or a reason why not; asking never raises."""

import pytest

from octavo_engine.energy import nvml, rapl
from octavo_engine.energy.meter import EnergyUnavailable, Unavailable, find_meter


class Found:
    name = "found"

    def joules(self) -> float:
        return 0.0


def refuse() -> None:
    raise EnergyUnavailable("It cannot be read.")


def test_each_kind_has_its_meter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvml, "NvmlMeter", Found)
    monkeypatch.setattr(rapl, "RaplMeter", refuse)
    assert isinstance(find_meter("cuda"), Found)
    assert find_meter("cpu") == Unavailable("It cannot be read.")
    monkeypatch.setattr(nvml, "NvmlMeter", refuse)
    monkeypatch.setattr(rapl, "RaplMeter", Found)
    assert isinstance(find_meter("cpu"), Found)
    assert find_meter("cuda") == Unavailable("It cannot be read.")


def test_another_kind_has_a_reason() -> None:
    found = find_meter("tpu")
    assert isinstance(found, Unavailable)
    assert "'tpu'" in found.reason


@pytest.mark.parametrize("kind", ["cpu", "cuda"])
def test_on_this_machine_there_is_a_meter_or_a_sentence(kind: str) -> None:
    found = find_meter(kind)
    if isinstance(found, Unavailable):
        assert found.reason.endswith(".")
    else:
        assert 0 <= found.joules() <= found.joules()
