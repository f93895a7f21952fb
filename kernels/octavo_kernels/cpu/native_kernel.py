"""A kernel: a Python function compiled to a C function, which runs alone or on torch's own OpenMP threads.

Torch's thread pool is used because a second one beside it makes both wait: its idle threads spin on the same cores.
Where torch has no GNU OpenMP interface, kernels run on one thread.
"""

from __future__ import annotations

import ctypes
import functools
import struct
import time
from array import array
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numba
import torch
from numba.core import types

from octavo_kernels.cpu import cache
from octavo_kernels.cpu.memory import call_integer, double, long, take_number

# Work, in vector operations, from which threads pay: opening a parallel region costs some microseconds.
PARALLEL_WORK = 20_000
# Work up to which the interpreter's lock is kept: giving it up lets a busy Python thread in for milliseconds.
LOCKED_WORK = 200_000

_TASK, _THREAD, _THREADS, _OPERANDS = 0, 1, 2, 3


@dataclass(frozen=True, slots=True)
class Compilation:
    """How a kernel came into being: compiled or read from the cache, in how many seconds."""

    kernel: str
    seconds: float
    cached: bool


class NativeKernel:
    """One kernel. Its function takes the address of its operands, which `operand` reads, and returns nothing."""

    def __init__(self, function: Callable[[int], None]) -> None:
        """Register the kernel; it is compiled or read from the cache when first needed."""
        self.name = function.__name__
        self.compilation: Compilation | None = None
        self._function = function
        self._address = 0
        self._locked: Callable[[int], None] = self._first_locked
        self._unlocked: Callable[[int], None] = self._first_unlocked
        KERNELS.append(self)

    def __call__(self, work: int, *operands: int) -> None:
        """Run over `operands`: addresses, sizes, and float64 as their bits.

        Args:
            work: about how many vector operations there are.
            operands: what the kernel reads with `operand(arguments, 0)` and so on.
        """
        if work < PARALLEL_WORK or _OPENMP is None:
            arguments = array("q", (0, 0, 0, *operands))
            run = self._locked if work < LOCKED_WORK else self._unlocked
            run(arguments.buffer_info()[0])
        else:
            self.load()
            arguments = array("q", (0, _OPENMP.thread, _OPENMP.threads, *operands))
            _OPENMP.parallel(self._address, arguments.buffer_info()[0], torch.get_num_threads(), 0)

    def load(self) -> Compilation:
        """Compile the kernel, or read it from the cache; at once when that has been done."""
        if self.compilation is None:
            started = time.perf_counter()
            compiled = cache.compiled(self._function, types.void(types.intp), error_model="numpy")
            self._address = compiled.address
            self._locked = ctypes.PYFUNCTYPE(None, ctypes.c_int64)(self._address)
            self._unlocked = ctypes.CFUNCTYPE(None, ctypes.c_int64)(self._address)
            self.compilation = Compilation(self.name, time.perf_counter() - started, compiled.cache_hits > 0)
        return self.compilation

    def _first_locked(self, arguments: int) -> None:
        self.load()
        self._locked(arguments)

    def _first_unlocked(self, arguments: int) -> None:
        self.load()
        self._unlocked(arguments)


KERNELS: list[NativeKernel] = []


@numba.njit
def operand(arguments: int, index: int) -> int:
    """An operand as an integer."""
    return long(arguments + 8 * (_OPERANDS + index))  # type: ignore[no-any-return]


@numba.njit
def float_operand(arguments: int, index: int) -> float:
    """An operand that `float_bits` made, as float64."""
    return double(arguments + 8 * (_OPERANDS + index))  # type: ignore[no-any-return]


@numba.njit
def next_task(arguments: int) -> int:
    """Number of a task that no other thread has."""
    return take_number(arguments + 8 * _TASK)  # type: ignore[no-any-return]


@numba.njit
def thread_number(arguments: int) -> int:
    """Number of this thread, from 0."""
    function = long(arguments + 8 * _THREAD)
    return 0 if function == 0 else int(call_integer(function))


@numba.njit
def own_rows(arguments: int, rows: int) -> tuple[int, int]:
    """The part of `rows` that is this thread's: start and stop."""
    function = long(arguments + 8 * _THREADS)
    threads = 1 if function == 0 else call_integer(function)
    thread = thread_number(arguments)
    return rows * thread // threads, rows * (thread + 1) // threads


@functools.lru_cache(maxsize=64)
def float_bits(value: float) -> int:
    """A float64 as an operand."""
    bits: int = struct.unpack("<q", struct.pack("<d", value))[0]
    return bits


@dataclass(frozen=True, slots=True)
class _OpenMp:
    """The functions of the OpenMP library that torch itself runs on.

    Attributes:
        parallel: GOMP_parallel(function, data, threads, flags); gives the interpreter's lock up while it runs.
        thread: address of omp_get_thread_num.
        threads: address of omp_get_num_threads.
    """

    parallel: Callable[[int, int, int, int], None]
    thread: int
    threads: int


def _openmp() -> _OpenMp | None:
    library = Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"
    if not library.exists():
        return None
    # Symbols are looked up in the libraries that this one was linked with, so this is the pool that torch uses.
    torch_cpu: Any = ctypes.CDLL(str(library))
    if not all(hasattr(torch_cpu, name) for name in ("GOMP_parallel", "omp_get_thread_num", "omp_get_num_threads")):
        return None
    parallel = torch_cpu.GOMP_parallel
    parallel.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint)
    parallel.restype = None
    return _OpenMp(parallel, _address(torch_cpu.omp_get_thread_num), _address(torch_cpu.omp_get_num_threads))


def _address(function: Any) -> int:
    address = ctypes.cast(function, ctypes.c_void_p).value
    assert address is not None, "a function that was found has an address"
    return address


_OPENMP = _openmp()


def threading() -> str:
    """What the kernels' threads are, for people."""
    return "torch's OpenMP threads" if _OPENMP is not None else "one thread: torch has no GNU OpenMP interface here"
