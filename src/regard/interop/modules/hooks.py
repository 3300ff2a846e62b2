"""Hooks of one thread on modules that other threads call meanwhile."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from threading import Lock, get_ident
from typing import Any

import torch
from torch import nn

Hook = Callable[..., Any]


def of_this_thread(hook: Hook) -> Hook:
    """Make a hook of a module that does nothing in other threads."""
    # Torch may hand it other arguments there: it looks up afresh how to call a hook that it has
    # begun with, which may be removed by then.
    thread = get_ident()

    def guarded(*args: object) -> object:
        if torch.compiler.is_compiling() or get_ident() == thread:
            return hook(*args)
        return None

    return guarded


@contextmanager
def hooked(
    modules: Iterable[nn.Module], *, before: Hook | None = None, after: Hook | None = None
) -> Iterator[None]:
    """Run hooks of this thread at modules inside the block; they are given options, too."""
    with ExitStack() as hooks:
        for module in modules:
            if before is not None:
                hook = of_this_thread(before)
                hooks.enter_context(module.register_forward_pre_hook(hook, with_kwargs=True))
            if after is not None:
                hook = of_this_thread(after)
                hooks.enter_context(module.register_forward_hook(hook, with_kwargs=True))
        yield


class _Substitute:
    """The forward of a module, or an output in place of it, by the thread that calls."""

    def __init__(self, module: nn.Module) -> None:
        self.is_outer = "forward" in vars(module)  # a forward of the module, not of its class
        self.forward = module.forward
        self.outputs = dict[int, object]()

    def __call__(self, *args: object, **options: object) -> object:
        thread = get_ident()
        if thread not in self.outputs:
            return self.forward(*args, **options)
        output = self.outputs[thread]
        return output(*args, **options) if callable(output) else output


_lock = Lock()


@contextmanager
def returning(module: nn.Module, output: object) -> Iterator[None]:
    """Let a module return an output in this thread, or a function's, instead of computing it."""
    with _lock:
        if not isinstance(module.forward, _Substitute):
            module.forward = _Substitute(module)
        substitute = module.forward
        substitute.outputs[get_ident()] = output
    try:
        yield
    finally:
        with _lock:
            del substitute.outputs[get_ident()]
            if not substitute.outputs and substitute.is_outer:
                module.forward = substitute.forward
            elif not substitute.outputs:
                del module.forward
