"""The inputs of a call with their roles, and the tensors that a module returns and holds."""

import copy
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from types import FunctionType
from typing import Any

import torch
from torch import Tensor, nn

# Names of arguments, as modules of torch, of Hugging Face and of textbooks have them.
OTHER_SEQUENCE = re.compile(r"(?i)^(src|source|mem|memory|enc|encoder|context|ctx|cond|image)")
QUERIES = re.compile(r"(?i)^(q$|q_|quer|tgt|target|trg|dec|decoder|hidden$|state$)")
_NO_CONTENT = re.compile(
    r"(?i)(^|_)(masks?|bias|lengths?|lens?|valid\w*|positions?|token_type_ids|segments?|labels?)(_|$)"
    r"|mask$"
)
PADDING = re.compile(r"(?i)^(src_|tgt_)?key_padding_mask$|^attention_mask$|^lengths$|^valid_lens?$")

Key = int | str


class CallFailed(Exception):  # noqa: N818  (it is the module's error)
    """A module raised on changed inputs."""

    def __init__(self, error: Exception) -> None:
        super().__init__(f"{type(error).__name__}: {' '.join(str(error).split())[:160]}")
        self.error = error


@dataclass(frozen=True, slots=True)
class Slot:
    """A tensor among the arguments.

    Attributes:
        key: Its position or keyword.
        name: The name of the parameter.
        tensor: Its value in the call that was given.
        role: "states" of floats, "ids", or "other": masks, lengths, positions.
    """

    key: Key
    name: str
    tensor: Tensor
    role: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """Output of a call: the first tensor of floats, and all tensors in their order."""

    out: Tensor
    tensors: tuple[Tensor, ...]


def along(tensor: Tensor, axis: int | None, indices: list[int]) -> Tensor:
    """A mask that is true at some indices of one axis of a tensor."""
    mask = torch.zeros(tensor.shape, dtype=torch.bool, device=tensor.device)
    if axis is not None:
        mask.index_fill_(axis, torch.tensor(indices, device=tensor.device), True)
    return mask


def names_of(
    module: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> dict[Key, str]:
    """The parameter that each argument goes to."""
    function = module.forward if isinstance(module, nn.Module) else module
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    named = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    named += [f"argument{n}" for n in range(len(named), len(args))]
    names: dict[Key, str] = dict(enumerate(named[: len(args)]))
    return {**names, **{name: name for name in kwargs}}


def role_of(name: str, value: Tensor) -> str:
    """The role of an input, by its name, dtype and values."""
    if _NO_CONTENT.search(name) or value.dtype == torch.bool or value.is_complex():
        return "other"
    if not value.is_floating_point():
        is_flags = value.numel() > 4 and bool((value == 0).logical_or(value == 1).all())
        return "other" if is_flags else "ids"
    low = value.detach()
    is_mask = bool(((low == 0) | (low == 1) | (low <= -1e4)).all())
    return "other" if is_mask and low.numel() > 1 else "states"


def modules_of(function: Any) -> list[nn.Module]:
    """The modules that a callable is, or holds in its closure, its globals or its attributes."""
    if isinstance(function, nn.Module):
        return [function]
    parts_of_partial = ("func", "args", "keywords")
    held: list[Any] = [getattr(function, name, None) for name in ("__self__", *parts_of_partial)]
    held += getattr(function, "__dict__", {}).values()
    if inspect.isfunction(function):
        variables = inspect.getclosurevars(function)
        held += [*variables.nonlocals.values(), *variables.globals.values()]
    modules = list[nn.Module]()
    for attribute in held:
        parts = attribute.values() if isinstance(attribute, dict) else attribute
        many = list(parts) if isinstance(attribute, dict | list | tuple) else [attribute]
        modules += [part for part in many if isinstance(part, nn.Module)]
    return modules


def copied_function(function: FunctionType) -> FunctionType:
    """A function with its own dictionaries and lists where it names those of its file."""
    named = {*function.__code__.co_names}
    globals_ = {
        name: copy.deepcopy(value)
        if name in named and isinstance(value, dict | list | set)
        else value
        for name, value in function.__globals__.items()
    }
    made = FunctionType(
        function.__code__,
        globals_,
        function.__name__,
        copy.deepcopy(function.__defaults__),
        function.__closure__,
    )
    made.__kwdefaults__ = copy.deepcopy(function.__kwdefaults__)
    made.__dict__.update(function.__dict__)
    return made


def tensors_of(module: nn.Module) -> Iterator[Tensor]:
    """The tensors that are plain attributes of a module or its parts."""
    for part in module.modules():
        for name, value in vars(part).items():
            many = value.values() if isinstance(value, dict) else value
            held = list(many) if isinstance(value, dict | list | tuple) else [value]
            if name not in ("_parameters", "_modules"):
                yield from (item for item in held if isinstance(item, Tensor))


def held(module: Any) -> int:
    """The number of elements of tensors that a module and its parts hold as attributes."""
    tensors = [tensor for part in modules_of(module) for tensor in tensors_of(part)]
    return sum(tensor.numel() for tensor in tensors)


def flat(returned: Any) -> Iterator[Tensor]:
    """The tensors of whatever a module returned, in their order."""
    if isinstance(returned, Tensor):
        yield returned
    elif isinstance(returned, Mapping):
        for value in returned.values():
            yield from flat(value)
    elif isinstance(returned, list | tuple):
        for value in returned:
            yield from flat(value)
    elif is_dataclass(returned) and not isinstance(returned, type):
        for field in fields(returned):
            yield from flat(getattr(returned, field.name))


def is_square(slot: Slot) -> bool:
    """Whether an input is a mask of tokens by tokens, which has no axis of a batch."""
    shape = slot.tensor.shape
    return slot.role == "other" and len(shape) == 2 and shape[0] == shape[1]
