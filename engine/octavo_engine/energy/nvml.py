"""Energy of an NVIDIA GPU from its driver's management library (NVML)."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from octavo_engine.energy.meter import EnergyUnavailable

_MILLI = 1000


class NvmlMeter:
    """Reads the GPU's energy counter; where it has none (before Volta) adds up its power over time.

    Power is taken to have been the same since the reading before, so a span of steps has to be read at its end while
    the GPU still works.
    """

    name = "NVML"

    def __init__(self, index: int = 0, nvml: Any = None, clock: Callable[[], float] = time.monotonic) -> None:
        """Open GPU number `index`; `nvml` stands in for the module pynvml.

        Raises:
            EnergyUnavailable: no driver, no such GPU, no permission, or it tells neither energy nor power.
        """
        if nvml is None:
            import pynvml

            nvml = pynvml
        self._nvml = nvml
        self._clock = clock
        self._joules = 0.0
        self._last = clock()
        try:
            nvml.nvmlInit()
        except nvml.NVMLError as fault:
            raise EnergyUnavailable(self._reason(fault)) from fault
        try:
            self._device = nvml.nvmlDeviceGetHandleByIndex(index)
            self._begin = self._counter()
            if self._begin is None:
                self._power()
        except nvml.NVMLError as fault:
            nvml.nvmlShutdown()
            raise EnergyUnavailable(self._reason(fault)) from fault

    def joules(self) -> float:
        """Energy since the meter was made.

        Raises:
            EnergyUnavailable: the GPU or its driver is gone, or no longer tells.
        """
        try:
            if self._begin is None:
                now = self._clock()
                self._joules += self._power() * (now - self._last)
                self._last = now
            else:
                millijoules = self._nvml.nvmlDeviceGetTotalEnergyConsumption(self._device) - self._begin
                # The counter begins anew when the driver is loaded again.
                self._joules = max(self._joules, millijoules / _MILLI)
        except self._nvml.NVMLError as fault:
            raise EnergyUnavailable(self._reason(fault)) from fault
        return self._joules

    def _counter(self) -> int | None:
        """Millijoules since the driver was loaded; None where this GPU or its driver does not count."""
        try:
            return int(self._nvml.nvmlDeviceGetTotalEnergyConsumption(self._device))
        except (self._nvml.NVMLError_NotSupported, self._nvml.NVMLError_FunctionNotFound):
            return None

    def _power(self) -> float:
        """Watts."""
        return float(self._nvml.nvmlDeviceGetPowerUsage(self._device)) / _MILLI

    def _reason(self, fault: Exception) -> str:
        """What a fault of NVML means and what can be done, for people."""
        nvml = self._nvml
        if isinstance(fault, nvml.NVMLError_LibraryNotFound | nvml.NVMLError_DriverNotLoaded):
            return (
                f"There is no NVIDIA driver to ask for energy ({fault}); install or load it and open the model again."
            )
        if isinstance(fault, nvml.NVMLError_NoPermission):
            return f"The system does not let this user read the GPU's energy ({fault}); its administrator can allow it."
        if isinstance(fault, nvml.NVMLError_NotSupported | nvml.NVMLError_FunctionNotFound):
            return f"This GPU tells neither its energy nor its power ({fault}); a meter at the socket tells the power."
        return f"The GPU cannot be asked for its energy ({fault}); `nvidia-smi` shows whether its driver answers."
