"""Compiled loops whose rows torch's OpenMP threads share out, without the interpreter.

A loop is called for even parts of the rows, each a task; the threads of a team take one after the
other until there are none left. Without GNU's OpenMP the thread that asks does them all.
"""

from collections.abc import Callable, Sequence
from functools import reduce
from types import FunctionType
from typing import Any

from llvmlite import ir

from regard.kernels.compiling import (
    ParallelLoop,
    Subroutine,
    cgutils,
    intrinsic,
    shared,
    types,
    uncounted_part,
)

_SIZE, _CODE, _BYTES = ir.IntType(64), ir.IntType(32), ir.IntType(8).as_pointer()
_BODY = ir.FunctionType(ir.VoidType(), [_BYTES])
_BEGIN = ir.FunctionType(ir.VoidType(), [_BODY.as_pointer(), _BYTES, _CODE, _CODE]).as_pointer()


@intrinsic
def _count(typing, address):
    """Add one to a counter; returns the number before."""

    def generate(context, builder, signature, arguments):
        counter = builder.inttoptr(arguments[0], _SIZE.as_pointer())
        return builder.atomic_rmw("add", counter, ir.Constant(_SIZE, 1), "acq_rel")

    return types.int64(types.int64), generate


# Global names that ``_work`` and ``_entry`` of a loop call.
loop: Callable[..., None]
share: Callable[..., None]


def _work(counter, tasks, first, stop, arguments):
    # Each thread takes tasks until there are none left.
    rows, task = stop - first, _count(counter)
    while task < tasks:
        loop(first + task * rows // tasks, first + (task + 1) * rows // tasks, *arguments)
        task = _count(counter)


def _entry(team, tasks, first, stop, arguments):
    share(team, tasks, first, stop, arguments)


def shared_out(part: Callable[..., None]) -> Callable[..., None]:
    """``part(first, stop, ...)`` of loops, called as ``part(team, tasks, first, stop, arguments)``.

    The threads of the team call it for so many even parts of the rows, and with ``arguments``.
    A part that is compiled is taken as it is.
    """
    part = part if isinstance(part, Subroutine) else shared(part)
    worker = uncounted_part(_with(_work, loop=part))

    @intrinsic
    def share(typing, team, tasks, first, stop, passed):
        size, work = types.int64, worker._numba_type_  # type: ignore[attr-defined]
        call = work.get_call_type(typing, (*[size] * 4, passed), {})

        def generate(context, builder, signature, arguments):
            _write_call(context, builder, arguments, work.dispatcher.get_compile_result(call))
            return context.get_dummy_value()

        return types.void(team, size, size, size, passed), generate

    return share


def parallel(loop: Callable[..., None]) -> ParallelLoop:
    """Compile ``loop(first, stop, ...)`` over rows, and code that shares them among threads."""
    function = loop.function if isinstance(loop, Subroutine) else loop
    entry = _with(_entry, share=shared_out(loop), __name__=function.__module__)
    for name in ("__name__", "__qualname__", "__doc__"):
        setattr(entry, name, getattr(function, name))
    return ParallelLoop(entry, _nrt=False)


def _with(function: Any, **names: object) -> FunctionType:
    """A function with more global names: one with a closure is not cached by numba."""
    return FunctionType(function.__code__, {**globals(), **names})


def _write_call(context: Any, builder: ir.IRBuilder, arguments: Sequence[Any], work: Any) -> None:
    """Write a call of ``_work`` on all threads of a team; on this one, if there is one task."""
    threads, begin, alone = (builder.extract_value(arguments[0], index) for index in range(3))
    # Shared by threads: the counter of tasks, arguments, and how a loop failed.
    fields = [ir.Constant(_SIZE, 0), alone, *arguments[1:], ir.Constant(_CODE, 0), begin]
    kind = ir.LiteralStructType([field.type for field in fields])
    room = cgutils.alloca_once(builder, kind)
    for index, field in enumerate(fields):
        builder.store(field, cgutils.gep_inbounds(builder, room, 0, index))
    body = ir.Function(builder.module, _BODY, builder.module.get_unique_name("work"))
    body.linkage = "internal"
    status = _write_body(context, ir.IRBuilder(body.append_basic_block()), kind, work)
    given, one = builder.bitcast(room, _BYTES), ir.Constant(_SIZE, 1)
    several = [builder.icmp_signed(">", count, one) for count in (threads, arguments[1], begin)]
    with builder.if_else(reduce(builder.and_, several)) as (by_threads, by_itself):
        with by_threads:
            function, count = builder.inttoptr(begin, _BEGIN), builder.trunc(threads, _CODE)
            builder.call(function, [body, given, count, ir.Constant(_CODE, 0)])
        with by_itself:
            builder.call(body, [given])
    code, error = (
        builder.load(cgutils.gep_inbounds(builder, room, 0, len(fields) - left)) for left in (2, 1)
    )
    with cgutils.if_unlikely(builder, builder.icmp_signed("!=", code, ir.Constant(_CODE, 0))):
        failed = builder.inttoptr(error, status.excinfoptr.type)
        failure = status._replace(code=code, excinfoptr=failed)
        context.call_conv.return_status_propagate(builder, failure)


def _write_body(context: Any, builder: ir.IRBuilder, kind: ir.Type, work: Any) -> Any:
    """Write the function that each thread calls; returns how ``_work`` ended there."""
    context.add_linking_libs([work.library])
    function = context.declare_function(builder.module, work.fndesc)
    room = builder.bitcast(builder.function.args[0], kind.as_pointer())
    fields = [cgutils.gep_inbounds(builder, room, 0, index) for index in range(len(kind.elements))]
    given = [builder.ptrtoint(fields[0], _SIZE), *map(builder.load, fields[2:-2])]
    # Products of a task are its thread's own work.
    alone, before = builder.load(fields[1]), cgutils.alloca_once(builder, _CODE)
    set_threads = builder.inttoptr(alone, ir.FunctionType(_CODE, [_CODE]).as_pointer())
    is_there = builder.icmp_signed("!=", alone, ir.Constant(_SIZE, 0))
    with builder.if_then(is_there):
        builder.store(builder.call(set_threads, [ir.Constant(_CODE, 1)]), before)
    of_work = (work.fndesc.restype, work.fndesc.argtypes, given)
    status, _ = context.call_conv.call_function(builder, function, *of_work)
    with builder.if_then(is_there):
        builder.call(set_threads, [builder.load(before)])
    with cgutils.if_unlikely(builder, status.is_error):
        # The first that fails says how: its code and its error belong together.
        none = ir.Constant(_CODE, 0)
        written = builder.cmpxchg(fields[-2], none, status.code, "acq_rel", "acquire")
        with builder.if_then(builder.extract_value(written, 1)):
            builder.store(builder.ptrtoint(status.excinfoptr, _SIZE), fields[-1])
    builder.ret_void()
    return status
