"""Phases of a compiled loop that several threads run side by side, each taking chunks of the work.

A phase ends when all of its chunks are done. No thread waits for another to come: one that comes
late, or never, has taken no chunk, and the others do them all. A thread that waits for a chunk in
progress spins for a moment, and then lets other threads run.
"""

import platform
from typing import NamedTuple

import llvmlite.binding
import numpy as np
from jaxtyping import Int64
from llvmlite import ir

from regard.kernels.compiling import cgutils, in_order, intrinsic, types

# Counters so far apart that no cache line has two of them.
_APART = 16
# Looks at a counter before other threads are let run: some ten microseconds.
_SPINS = 256
_HAS_PAUSE = platform.machine().lower() in ("x86_64", "amd64")
_SIZE, _NONE = ir.IntType(64), ir.VoidType()


class Team(NamedTuple):
    """Threads in one loop; chunks of each phase that are taken, and that are done."""

    threads: int
    taken: Int64[np.ndarray, "P a"]
    done: Int64[np.ndarray, "P a"]


def team_of(threads: int, phases: int) -> Team:
    """A team at the beginning of a loop."""
    counters = np.zeros((2, phases, _APART), np.int64)
    return Team(threads, counters[0], counters[1])


def _pointer(builder: ir.IRBuilder, address: ir.Value) -> ir.Value:
    return builder.inttoptr(address, _SIZE.as_pointer())


@intrinsic
def _count(typing, address):  # type: ignore[no-untyped-def]
    """Add one to a counter; returns the number before."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        one = ir.Constant(_SIZE, 1)
        return builder.atomic_rmw("add", _pointer(builder, arguments[0]), one, "acq_rel")

    return types.int64(types.int64), generate


@intrinsic
def _read(typing, address):  # type: ignore[no-untyped-def]
    """A counter, and all that was written before it was counted."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.load_atomic(_pointer(builder, arguments[0]), "acquire", 8)

    return types.int64(types.int64), generate


def _calls(name: str, *, is_known: bool):  # type: ignore[no-untyped-def]
    """An intrinsic that calls a function without arguments, where there is one."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        if is_known:
            kind = ir.FunctionType(_NONE if name.startswith("llvm.") else ir.IntType(32), [])
            builder.call(cgutils.get_or_insert_function(builder.module, kind, name), [])
        return context.get_dummy_value()

    @intrinsic
    def call(typing):  # type: ignore[no-untyped-def]
        return types.void(), generate

    return call


_pause = _calls("llvm.x86.sse2.pause", is_known=_HAS_PAUSE)
_let_others_run = _calls(
    "sched_yield", is_known=llvmlite.binding.address_of_symbol("sched_yield") is not None
)


@in_order
def take(team, phase, chunks):  # type: ignore[no-untyped-def]
    """The next chunk of a phase; ``chunks``, when all are done, if all are taken."""
    offset = phase * 8 * _APART
    taken, done = team.taken.ctypes.data + offset, team.done.ctypes.data + offset
    if _read(taken) < chunks:
        chunk = _count(taken)
        if chunk < chunks:
            return chunk
    looks = 0
    while _read(done) < chunks:
        looks += 1
        if looks < _SPINS:
            _pause()
        else:
            _let_others_run()
    return chunks


@in_order
def take_another(team, phase, chunks):  # type: ignore[no-untyped-def]
    """Say that a chunk is done, and take the next."""
    _count(team.done.ctypes.data + phase * 8 * _APART)
    return take(team, phase, chunks)
