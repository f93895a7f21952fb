"""The devices of this machine that could run models. Loads no torch."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import psutil

from octavo_engine.stats import DeviceInfo


def devices() -> tuple[DeviceInfo, ...]:
    """CUDA devices as the driver lists them, then the processor. Memory in bytes."""
    return (*_cuda_devices(), _processor())


def physical_cores() -> int:
    """Cores that this process may use, without counting a core's second thread."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(usable, psutil.cpu_count(logical=False) or usable)


def _processor() -> DeviceInfo:
    memory = psutil.virtual_memory()
    details = f"{physical_cores()} cores"
    return DeviceInfo(_processor_name(), "cpu", memory.total, memory.available, details)


def _processor_name() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _cuda_devices() -> tuple[DeviceInfo, ...]:
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return ()
    try:
        return tuple(map(_cuda_device, range(pynvml.nvmlDeviceGetCount())))
    finally:
        pynvml.nvmlShutdown()


def _cuda_device(index: int) -> DeviceInfo:
    import pynvml

    device = pynvml.nvmlDeviceGetHandleByIndex(index)
    memory = pynvml.nvmlDeviceGetMemoryInfo(device)
    name = pynvml.nvmlDeviceGetName(device)
    return DeviceInfo(str(name), "cuda", int(memory.total), int(memory.free), f"device {index}")
