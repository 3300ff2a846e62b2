"""Experiments with gradients: tensors that they reach, and those that no optimiser would get."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from regard.attention.testing.call import Call
from regard.attention.testing.evidence import Traced
from regard.attention.testing.inputs import CallFailed, modules_of
from regard.attention.testing.report import Fault

_REGISTER = "self.weight = nn.Parameter(weight)  # of modules: nn.ModuleList(modules)"


def gradients(call: Call, traced: Traced, notes: list[str]) -> Iterator[Fault]:
    """Parameters and inputs that matter and get no gradient, or that nothing uses."""
    yield from _unregistered(call)
    parameters = {
        name: parameter
        for module in modules_of(call.module)
        for name, parameter in module.named_parameters()
        if parameter.requires_grad
    }
    inputs = {s.name: s.tensor for s in call.content if s.role == "states"}
    try:
        loss, leaves = _loss(call)
    except CallFailed as failed:
        notes.append(f"gradients: with inputs that need them the call fails ({failed}).")
        return
    wanted = [*parameters.values(), *(leaves[id(states)] for states in inputs.values())]
    if not wanted:
        return
    try:
        if loss is None:
            grads: tuple[Tensor | None, ...] = (None,) * len(wanted)
        else:
            grads = torch.autograd.grad(loss, wanted, allow_unused=True)
    except RuntimeError as error:
        text = " ".join(str(error).split())[:150]
        yield Fault(
            "gradients",
            1.0,
            f"The backward pass fails: {text}.",
            tuple(dict.fromkeys(traced.in_place))[:2],
            "states = states + change  # not in place: backward needs what it overwrites",
        )
        return
    reached = dict(zip([*parameters, *inputs], grads, strict=True))
    dead = [name for name, grad in reached.items() if grad is None or not bool(grad.any())]
    yield from _of_parameters(
        call,
        traced,
        {name: parameters[name] for name in dead if name in parameters},
        reached,
        notes,
    )
    yield from _of_weights(traced)
    for name in dead:
        if name in inputs and name not in parameters and _matters(call, inputs[name]):
            yield Fault(
                "gradients",
                0.0,
                f"The output depends on {name!r}, and no gradient reaches it: it is detached on "
                "its way.",
                tuple(dict.fromkeys(traced.detached))[:3],
                "weights = scores.softmax(dim=-1)  # without .detach(), .data or torch.no_grad()",
            )
            return


def _loss(call: Call) -> tuple[Tensor | None, dict[int, Tensor]]:
    """A number in which every output counts by a weight of its own, and the inputs as leaves."""
    leaves = dict[int, Tensor]()
    tensors = [
        tensor
        for tensor in call.run(leaves=leaves, module=call.module).tensors
        if tensor.requires_grad
    ]
    generator = torch.Generator().manual_seed(1)
    parts = [
        (
            tensor * torch.randn(tensor.shape, generator=generator).to(tensor.device, tensor.dtype)
        ).sum()
        for tensor in tensors
        if tensor.is_floating_point()
    ]
    return (torch.stack([part.double() for part in parts]).sum() if parts else None), leaves


def _of_parameters(
    call: Call,
    traced: Traced,
    dead: dict[str, Tensor],
    reached: dict[str, Tensor | None],
    notes: list[str],
) -> Iterator[Fault]:
    """Parameters without a gradient: detached where they matter, else never used."""
    if not dead:
        return
    detached = [name for name, parameter in dead.items() if _matters(call, parameter)]
    unused = [name for name in dead if name not in detached and reached[name] is None]
    elsewhere = [
        name
        for name in unused
        if id(dead[name]) not in traced.operands and _is_named_elsewhere(call, name)
    ]
    unused = [name for name in unused if name not in elsewhere]
    if elsewhere:
        notes.append(
            f"gradients: this call does not use {_some(elsewhere)}, which other code of the module "
            "names."
        )
    for names, finding, cure in (
        (detached, "matter to the output and get no gradient", "x = x  # no .detach(), no .data"),
        (unused, "are used by no output", "out = self.layer(out)  # use it, or leave it out"),
    ):
        if names:
            lines = tuple(dict.fromkeys(traced.detached))[:3] if names is detached else ()
            yield Fault(
                "gradients",
                float(len(names)),
                f"{len(names)} of the parameters {finding}: {_some(names)}.",
                lines,
                cure,
            )


def _of_weights(traced: Traced) -> Iterator[Fault]:
    """Weights that are detached before they mix the values."""
    lines = [attention.line for attention in traced.attentions if "detached" in attention.steps]
    if lines:
        yield Fault(
            "gradients",
            float(len(lines)),
            "The weights are detached before they mix the values: no gradient goes through them to "
            "the queries and keys.",
            tuple(dict.fromkeys([*traced.detached, *lines]))[:3],
            "context = weights @ value  # detach a copy: self.last = weights.detach()",
        )


def _some(names: list[str]) -> str:
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


def _is_named_elsewhere(call: Call, name: str) -> bool:
    """Whether methods besides ``__init__`` name a parameter, and the modules that it is in."""
    for root in modules_of(call.module):
        owner: Any = root
        for part in name.split("."):
            if owner is None:
                break
            if not part.isdigit() and not _is_named(type(owner), part):
                return False
            owner = getattr(owner, part, None)
    return True


def _is_named(kind: type, attribute: str) -> bool:
    functions = [
        value
        for base in kind.__mro__
        if base is not nn.Module
        for key, value in vars(base).items()
        if key != "__init__"
    ]
    functions = [
        function.fget if isinstance(function, property) else function for function in functions
    ]
    codes = [function.__code__ for function in functions if hasattr(function, "__code__")]
    while codes:
        code = codes.pop()
        if attribute in code.co_names:
            return True
        codes += [constant for constant in code.co_consts if hasattr(constant, "co_names")]
    return False


def _matters(call: Call, tensor: Tensor) -> bool:
    """Whether a small change of a parameter, or of an input, changes the output."""
    noise = torch.randn(tensor.shape, generator=call.generator).to(tensor.device, tensor.dtype)
    spread = float(tensor.detach().abs().mean()) or 1.0
    changed = tensor.detach() + 0.05 * spread * noise
    if any(tensor is slot.tensor for slot in call.slots):
        out = call.run({id(tensor): changed}).out
    else:
        before = tensor.detach().clone()
        with torch.no_grad():
            tensor.copy_(changed)
            try:
                out = call.run().out
            finally:
                tensor.copy_(before)
    return bool(call.moved(call.base.out, out).any())


def _unregistered(call: Call) -> Iterator[Fault]:
    """Tensors and modules that ``parameters()`` does not list, so that no optimiser trains them."""
    # A plain function holds nothing to train.
    holds = hasattr(call.given, "__dict__") and not hasattr(call.given, "__code__")
    roots: list[Any] = call.modules or [call.given] * holds
    names = list[str]()
    for root in roots:
        registered = {id(p) for p in root.parameters()} if isinstance(root, nn.Module) else set()
        parts = root.named_modules() if isinstance(root, nn.Module) else [("", root)]
        for name, part in parts:
            for key, value in vars(part).items():
                if key.startswith("_"):
                    continue
                if any(id(tensor) not in registered for tensor in _trainable(value)):
                    names.append(f"{name}.{key}".strip("."))
    if names:
        yield Fault(
            "gradients",
            float(len(names)),
            f"{', '.join(names[:4])} would be trained and is in no parameters(): an optimiser does "
            "not get it.",
            (),
            _REGISTER,
        )


def _trainable(value: Any) -> Iterator[Tensor]:
    """Leaves that ask for a gradient, in a tensor, a module, or a list or dictionary of such."""
    if isinstance(value, nn.Module):
        yield from value.parameters()
    elif isinstance(value, Tensor):
        if value.is_leaf and value.requires_grad:
            yield value
    elif isinstance(value, dict | list | tuple):
        for item in value.values() if isinstance(value, dict) else value:
            if isinstance(item, nn.Module | Tensor):
                yield from _trainable(item)
