"""Examines this machine: versions, devices, which kernels compute and why, and whether a model really answers.

Loads torch and, for the self-test, a model. Knows no application and no way of printing.
"""

from __future__ import annotations

import os
import platform
import time
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from octavo_engine.api import Engine, OnProgress
from octavo_engine.devices import devices
from octavo_engine.energy.meter import Unavailable, find_meter
from octavo_engine.errors import EngineError
from octavo_engine.request import GenerationRequest, Message, SamplingParams
from octavo_engine.stats import DeviceInfo

_PACKAGES = ("torch", "numba", "numpy", "tokenizers", "triton")
_QUESTION = "What is the capital of France?"
_TOKENS = 8


@dataclass(frozen=True, slots=True)
class PackageVersion:
    """A library and its version; None where it is not installed."""

    name: str
    version: str | None


@dataclass(frozen=True, slots=True)
class KernelChoice:
    """What computes an operation on a device, and why nothing that is preferred to it does."""

    operation: str
    device: str
    chosen: str
    declined: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CompiledKernel:
    """How long a kernel took to be compiled, or to be read where it was compiled before. Seconds."""

    name: str
    seconds: float
    was_cached: bool


@dataclass(frozen=True, slots=True)
class KernelReport:
    """The kernels of the processor: where compiled ones are kept and why there, their threads, each one's time."""

    folder: str | None
    reason: str
    threads: str
    choices: tuple[KernelChoice, ...]
    compiled: tuple[CompiledKernel, ...]


@dataclass(frozen=True, slots=True)
class SelfTest:
    """A model opened and asked for a few tokens at temperature 0.

    Attributes:
        error: what failed, a sentence for people; None when nothing did.
        problems: what the check of the page books found.
        load: seconds to open the model; `ttft` to the first token.
    """

    model: str
    error: str | None
    text: str = ""
    tokens: int = 0
    load: float | None = None
    ttft: float | None = None
    tokens_per_second: float | None = None
    backend: str = ""
    problems: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """True when the model answered and the books are right."""
        return self.error is None and not self.problems and self.tokens > 0


@dataclass(frozen=True, slots=True)
class Examination:
    """Everything that was found.

    Attributes:
        self_test: None where there was no model to test with.
        energy: name of the energy meter, or a sentence that says why there is none.
    """

    python: str
    platform: str
    packages: tuple[PackageVersion, ...]
    devices: tuple[DeviceInfo, ...]
    kernels: KernelReport
    self_test: SelfTest | None
    energy: str = ""


def examine(model: str | os.PathLike[str] | None, progress: OnProgress | None = None) -> Examination:
    """Examine this machine, with a self-test of `model` if there is one. Its failure is a finding, not an error."""
    # The self-test first: it is what compiles the kernels that are then told about.
    self_test = None if model is None else _test(model, progress)
    meter = find_meter("cpu")
    return Examination(
        python=platform.python_version(),
        platform=platform.platform(),
        packages=tuple(PackageVersion(name, _version(name)) for name in _PACKAGES),
        devices=devices(),
        kernels=_kernels(),
        self_test=self_test,
        energy=meter.reason if isinstance(meter, Unavailable) else meter.name,
    )


def _test(model: str | os.PathLike[str], progress: OnProgress | None) -> SelfTest:
    name = os.fspath(model)
    began = time.perf_counter()
    try:
        engine = Engine.open(model, progress=progress)
    except EngineError as error:
        return SelfTest(name, error.message)
    try:
        load = time.perf_counter() - began
        request = GenerationRequest(
            messages=[Message("user", _QUESTION)], sampling=SamplingParams(temperature=0, max_tokens=_TOKENS)
        )
        completion = engine.submit(request).result()
        return SelfTest(
            model=name,
            error=None,
            text=completion.text,
            tokens=completion.usage.completion_tokens,
            load=load,
            ttft=completion.timings.ttft,
            tokens_per_second=1 / completion.timings.tpot if completion.timings.tpot else None,
            backend=engine.stats().kernel_backend,
            problems=engine.check_integrity().problems,
        )
    except EngineError as error:
        return SelfTest(name, error.message)
    finally:
        engine.close()


def _kernels() -> KernelReport:
    import octavo_kernels
    from octavo_kernels.cpu import cache, native_kernel

    choices = tuple(
        KernelChoice(
            backend.operation,
            backend.device,
            backend.chosen,
            tuple(f"{declined.implementation}: {declined.reason}" for declined in backend.declined),
        )
        for backend in octavo_kernels.backends("cpu")
    )
    compilations = (kernel.compilation for kernel in native_kernel.KERNELS)
    compiled = tuple(
        CompiledKernel(compilation.kernel, compilation.seconds, compilation.cached)
        for compilation in compilations
        if compilation is not None
    )
    chosen = cache.chosen()
    folder = None if chosen.folder is None else str(chosen.folder)
    return KernelReport(folder, chosen.reason, native_kernel.threading(), choices, compiled)


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
