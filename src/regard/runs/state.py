"""Weights and training state as bytes: safetensors and JSON, nothing that could run code.

The same tensors give the same bytes, so that two runs can be compared file by file.
"""

import json
import math
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, cast

import safetensors.torch
import torch
from jaxtyping import Shaped
from safetensors import SafetensorError
from torch import Tensor

from regard.config import JsonValue, parse_json
from regard.errors import RunError, excerpt
from regard.runs.files import DamageError

if TYPE_CHECKING:
    # What a training has to remember: as deep as one likes.
    State: TypeAlias = (
        "bool | int | float | str | Tensor | Sequence[State] | Mapping[str, State]"
        " | Mapping[int, State] | None"
    )
else:  # one level deep: what looks at annotations as a program runs cannot follow itself
    State = bool | int | float | str | Tensor | Sequence | Mapping | None

_ALIASES = "aliases"
_PRECISE = 2**53  # larger whole numbers are not safe in every reader of JSON


def pack_tensors(tensors: Mapping[str, Shaped[Tensor, "..."]]) -> bytes:
    """Tensors as a safetensors file, the same bytes whatever their order and device."""
    # A tensor under several names (tied weights) is stored once, under the name that sorts first;
    # the file's metadata maps the other names to it. Tensors that overlap in part are stored whole.
    stored: dict[str, Tensor] = {}
    first_name: dict[tuple[object, ...], str] = {}
    aliases: dict[str, str] = {}
    storages: set[int] = set()
    for name in sorted(tensors):
        tensor = tensors[name]
        if not isinstance(tensor, Tensor) or tensor.layout != torch.strided or tensor.is_meta:
            raise RunError(f"{name} must be a dense tensor to be saved; got {_kind(tensor)}.")
        original = first_name.setdefault(_memory(name, tensor), name)
        if original == name:
            stored[name] = _own_copy(tensor, storages)
        else:
            aliases[name] = original
    # One key at most: safetensors writes several in random order.
    metadata = {_ALIASES: json.dumps(aliases)} if aliases else None
    return safetensors.torch.save(stored, metadata)


def unpack_tensors(content: bytes, *, where: Path) -> dict[str, Shaped[Tensor, "..."]]:
    """The tensors of ``pack_tensors``, in the order of their names; tied names share a tensor."""
    try:
        tensors: dict[str, Tensor] = safetensors.torch.load(content)
        (header_length,) = struct.unpack("<Q", content[:8])
        header = json.loads(content[8 : 8 + header_length])
        written = header.get("__metadata__", {}).get(_ALIASES, "{}")
        aliases = cast("dict[str, str]", parse_json(written.encode()))
        tensors |= {name: tensors[original] for name, original in aliases.items()}
    except (SafetensorError, ValueError, LookupError, AttributeError, TypeError) as error:
        raise DamageError(
            f"{where} must be a safetensors file as regard writes it; it is damaged: "
            f"{excerpt(str(error))}."
        ) from error
    return {name: tensors[name] for name in sorted(tensors)}


def split_state(state: object) -> tuple[dict[str, Shaped[Tensor, "..."]], JsonValue]:
    """A nested state as its tensors and a JSON value that says where they belong."""
    tensors: dict[str, Tensor] = {}
    return tensors, _split(state, "", tensors)


def join_state(tensors: Mapping[str, Shaped[Tensor, "..."]], plain: JsonValue) -> State:
    """The nested state that ``split_state`` took apart."""
    if isinstance(plain, list):
        return [join_state(tensors, item) for item in plain]
    if not isinstance(plain, dict):
        return plain
    if len(plain) == 1:
        ((tag, value),) = plain.items()
        if tag in _TAGS:
            return _joined(tensors, tag, value)
    return {key: join_state(tensors, value) for key, value in plain.items()}


_TAGS = ("$tensor", "$int", "$float", "$tuple", "$items")


def _joined(tensors: Mapping[str, Tensor], tag: str, value: JsonValue) -> State:
    """The value that a tag stands for."""
    if tag == "$tensor":
        return tensors[str(value)]
    if tag == "$int":
        return int(str(value), 16)
    if tag == "$float":
        return float(str(value))
    items = cast(Sequence[JsonValue], value)
    if tag == "$tuple":
        return tuple(join_state(tensors, item) for item in items)
    joined = [cast(tuple[int, State], join_state(tensors, pair)) for pair in items]
    return dict(joined)


def _split(value: object, path: str, tensors: dict[str, Tensor]) -> JsonValue:
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int | float):
        return _split_number(value)
    if isinstance(value, Tensor):
        name = path
        while name in tensors:  # {"a": {"b": x}, "a.b": y} would meet at one name
            name += "'"
        tensors[name] = value
        return {"$tensor": name}
    if isinstance(value, Mapping):
        return _split_mapping(value, path, tensors)
    if isinstance(value, list | tuple):
        items = _split_items(value, path, tensors)
        return {"$tuple": items} if isinstance(value, tuple) else items
    raise RunError(
        f"{path or 'state'} must be a number, text, tensor, None, or a list or mapping of those"
        f" to be saved; got {_kind(value)}."
    )


def _split_number(value: int | float) -> JsonValue:
    if isinstance(value, int):
        return int(value) if abs(value) <= _PRECISE else {"$int": hex(value)}
    return float(value) if math.isfinite(value) else {"$float": repr(float(value))}


def _split_items(
    values: Sequence[object], path: str, tensors: dict[str, Tensor]
) -> list[JsonValue]:
    return [_split(item, _below(path, i), tensors) for i, item in enumerate(values)]


def _split_mapping(
    value: Mapping[object, object], path: str, tensors: dict[str, Tensor]
) -> JsonValue:
    named = {key: item for key, item in value.items() if isinstance(key, str) and key[:1] != "$"}
    if len(named) == len(value):
        return {key: _split(item, _below(path, key), tensors) for key, item in named.items()}
    return {
        "$items": [
            [_split(key, path, tensors), _split(item, _below(path, key), tensors)]
            for key, item in value.items()
        ]
    }


def _below(path: str, key: object) -> str:
    return f"{path}.{key}" if path else str(key)


def _memory(name: str, tensor: Tensor) -> tuple[object, ...]:
    """Identity of a tensor's storage; an empty tensor equals no other."""
    if tensor.numel() == 0:
        return (name,)
    start = tensor.data_ptr()
    return tensor.device, start, tensor.dtype, tuple(tensor.shape), tensor.stride()


def _own_copy(tensor: Tensor, storages: set[int]) -> Tensor:
    """Safetensors takes only contiguous tensors which share no memory with another."""
    plain = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
    storage = plain.untyped_storage().data_ptr()
    if storage in storages:
        return plain.clone()
    storages.add(storage)
    return plain


def _kind(value: object) -> str:
    if isinstance(value, Tensor):
        return "a tensor without data" if value.is_meta else f"a {value.layout} tensor"
    return type(value).__name__
