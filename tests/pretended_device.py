"""A fake device: its tensors are on the CPU, and as strictly separate from the CPU's as a GPU's.

Where there is no GPU it shows that models, batches and whatever is made on the way are on one
device: an operation on tensors of both is an error, and so are ``numpy`` and a pointer to memory.
It has random numbers of its own. Arithmetic is the CPU's, so that results can be compared exactly;
but code that asks for a CPU by name, such as our own kernels, takes the way of other devices.
"""

import types
from contextlib import contextmanager

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_unflatten
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

from regard.devices import kinds

KIND = "pretended"
ATEN = torch.ops.aten
RECURRENT = (torch.lstm, torch.gru, torch.rnn_tanh, torch.lstm_cell, torch.gru_cell)
# What copies from one device to another.
COPIES = (ATEN.copy_.default, ATEN._foreach_copy_.default)


class _Random(types.ModuleType):
    """The device's random numbers: what torch asks of the module of a device."""

    def __init__(self):
        super().__init__(f"torch.{KIND}")
        self.state = torch.Generator().get_state()
        self.is_there = False

    def is_available(self):
        return self.is_there

    def is_initialized(self):
        return True

    def device_count(self):
        return int(self.is_there)

    def current_device(self):
        return 0

    def _is_in_bad_fork(self):
        return False

    def manual_seed_all(self, seed):
        self.state = torch.Generator().manual_seed(seed + 1).get_state()

    def get_rng_state(self, device=None):
        return self.state.clone()

    def set_rng_state(self, state, device=None):
        self.state = state.clone()

    def get_amp_supported_dtype(self):
        return [torch.float16, torch.bfloat16]

    @contextmanager
    def drawing(self):
        outside = torch.get_rng_state()
        torch.set_rng_state(self.state)
        yield
        self.state = torch.get_rng_state()
        torch.set_rng_state(outside)


RANDOM = _Random()


class There(torch.Tensor):
    """A tensor on the device; ``held`` is what it is on the CPU."""

    held: torch.Tensor

    @staticmethod
    def __new__(cls, held):
        wrapper = torch.Tensor._make_wrapper_subclass(
            cls,
            held.shape,
            strides=held.stride(),
            storage_offset=held.storage_offset(),
            dtype=held.dtype,
            device=DEVICE,
        )
        wrapper.held = held
        return wrapper

    def __repr__(self, **_):
        return f"There({self.held!r})"

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        with torch._C.DisableTorchFunctionSubclass():
            if func is torch.Tensor.tolist:
                return args[0].cpu().tolist()
            if func is torch.Tensor.data_ptr:
                return args[0].held.data_ptr()
            if func is torch.Tensor.numpy:
                raise TypeError("a tensor must be on the CPU for numpy")
            if func in RECURRENT:
                flat, shape = tree_flatten(args)
                *out, spec = _Recurrent.apply(func, shape, *flat)
                return tree_unflatten(out, spec)
            return func(*args, **(kwargs or {}))

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return _run(func, args, kwargs or {})


class _Recurrent(torch.autograd.Function):
    """A recurrent layer as a whole: of other devices torch wants kernels for its parts."""

    @staticmethod
    def forward(ctx, func, shape, *inputs):
        for each in inputs:
            assert not isinstance(each, torch.Tensor) or isinstance(each, There), "on the CPU"
        flat = [
            each.held.detach().requires_grad_(each.is_floating_point())
            if isinstance(each, There)
            else each
            for each in inputs
        ]
        with torch.enable_grad(), RANDOM.drawing():
            out, spec = tree_flatten(func(*tree_unflatten(flat, shape)))
        ctx.out = out
        ctx.given = flat
        return (*[There(each.detach()) for each in out], spec)

    @staticmethod
    def backward(ctx, *grads):
        learned = [e for e in ctx.given if isinstance(e, torch.Tensor) and e.requires_grad]
        with torch.enable_grad():
            grads_found = iter(
                torch.autograd.grad(
                    ctx.out, learned, [grad.held for grad in grads[:-1]], allow_unused=True
                )
            )
        back = []
        for each in ctx.given:
            has_grad = isinstance(each, torch.Tensor) and each.requires_grad
            grad = next(grads_found) if has_grad else None
            back.append(None if grad is None else There(grad))
        return (None, None, *back)


class _Mode(TorchDispatchMode):
    """Sees the operations that make tensors from nothing, too."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return _run(func, args, kwargs or {})


def _run(func, args, kwargs):
    """One operation, on the CPU."""
    torch._C._set_only_lift_cpu_tensors(True)  # each thread has its own, backward passes too
    on_device: list[There] = []
    on_cpu: list[torch.Tensor] = []

    def plain(each):
        if isinstance(each, There):
            on_device.append(each)
            return each.held
        if isinstance(each, torch.Tensor) and each.dim():
            on_cpu.append(each)
        return each

    device = kwargs.get("device")
    args = [_mapped(plain, each) for each in args]
    kwargs = {name: _mapped(plain, each) for name, each in kwargs.items()}
    if device is not None:
        kwargs["device"] = torch.device("cpu")
        kwargs.pop("non_blocking", None)
    if on_device and on_cpu and func not in (*COPIES, ATEN._to_copy.default):
        sizes = ", ".join(str(tuple(each.shape)) for each in on_cpu)
        raise RuntimeError(f"{func}: tensors of sizes {sizes} are on the CPU, others are not")
    is_on_device = bool(on_device) if device is None else torch.device(device).type == KIND
    if is_on_device and torch.Tag.nondeterministic_seeded in func.tags:
        with RANDOM.drawing():
            out = func(*args, **kwargs)
    else:
        out = func(*args, **kwargs)
    if not is_on_device:
        return out
    wrappers = {id(each.held): each for each in on_device}

    def wrapped(each):
        if not isinstance(each, torch.Tensor) or isinstance(each, There):
            return each
        return wrappers[id(each)] if id(each) in wrappers else There(each)

    return _mapped(wrapped, out)


def _mapped(change, value):
    if isinstance(value, tuple | list):
        return type(value)([_mapped(change, each) for each in value])
    return change(value)


class _Hooks(torch._C._acc.PrivateUse1Hooks):
    def is_available(self):
        return RANDOM.is_available()

    def has_primary_context(self, device):
        return True

    def is_built(self):
        return True


# Before the first backward pass of the process, which counts the devices. Not where there is a GPU:
# torch pins memory for one device alone, and would take this one.
if not torch.cuda.is_available():
    _setup_privateuseone_for_python_backend(KIND, RANDOM, _Hooks())
    DEVICE = torch.device(KIND, 0)


@contextmanager
def pretended():
    """The device, which is there and may be named inside the block only."""
    if torch.cuda.is_available():
        pytest.skip("there is a GPU, beside which no device can be pretended")
    with pytest.MonkeyPatch.context() as patch, _Mode():
        patch.setattr(kinds, "KINDS", (*kinds.KINDS, KIND))
        patch.setattr(RANDOM, "is_there", True)
        # ``torch.tensor`` makes its tensors on the CPU, and sends them in a way that we see.
        torch._C._set_only_lift_cpu_tensors(True)
        # A parameter that is sent stays the same object, as it does on its way to a GPU.
        torch.__future__.set_swap_module_params_on_conversion(True)
        try:
            yield DEVICE
        finally:
            torch.__future__.set_swap_module_params_on_conversion(False)
            torch._C._set_only_lift_cpu_tensors(False)
