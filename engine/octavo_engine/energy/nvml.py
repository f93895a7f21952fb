"""Energy of an NVIDIA GPU from its driver's management library (NVML)."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from octavo_engine.energy.meter import EnergyUnavailable

_MILLI = 1000


class NvmlMeter:
    """Reads the GPU's energy counter; where it has none (before Volta) adds up its power over time."""

    name = "NVML"

    def __init__(self, index: int = 0, nvml: Any = None, clock: Callable[[], float] = time.monotonic) -> None:
        """Open GPU number `index`; `nvml` stands in for the module pynvml.

        Raises:
            EnergyUnavailable: no driver, no such GPU, or it tells neither energy nor power.
        """
        if nvml is None:
            import pynvml

            nvml = pynvml
        self._nvml = nvml
        self._clock = clock
        try:
            nvml.nvmlInit()
            self._device = nvml.nvmlDeviceGetHandleByIndex(index)
        except nvml.NVMLError as fault:
            raise EnergyUnavailable(f"The NVIDIA driver cannot be asked for energy: {fault}.") from fault
        self._joules = 0.0
        self._last = clock()
        try:
            self._begin = nvml.nvmlDeviceGetTotalEnergyConsumption(self._device)
            self._counts = True
        except nvml.NVMLError:
            self._counts = False
            self._power()

    def joules(self) -> float:
        """Energy since the meter was made."""
        if not self._counts:
            now = self._clock()
            self._joules += self._power() * (now - self._last)
            self._last = now
            return self._joules
        try:
            millijoules = self._nvml.nvmlDeviceGetTotalEnergyConsumption(self._device) - self._begin
        except self._nvml.NVMLError as fault:
            raise EnergyUnavailable(f"The GPU no longer tells its energy: {fault}.") from fault
        # The counter begins anew when the driver is loaded again.
        self._joules = max(self._joules, millijoules / _MILLI)
        return self._joules

    def _power(self) -> float:
        """Watts."""
        try:
            return float(self._nvml.nvmlDeviceGetPowerUsage(self._device)) / _MILLI
        except self._nvml.NVMLError as fault:
            raise EnergyUnavailable(f"This GPU tells neither its energy nor its power: {fault}.") from fault
