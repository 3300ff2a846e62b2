"""Weights and training state as bytes: safetensors and JSON, nothing that could run code.

The same tensors give the same bytes, so that two runs can be compared file by file.
"""

import json
import math
import re
import struct
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, cast

import safetensors.torch
import torch
from jaxtyping import Shaped
from safetensors import SafetensorError
from torch import Tensor

from regard.config import JsonValue, check_header, parse_json
from regard.errors import RunError, excerpt
from regard.runs.files import DamageError

if TYPE_CHECKING:
    # The state of a training, nested to any depth.
    State: TypeAlias = (
        "bool | int | float | str | Tensor | Sequence[State] | Mapping[str, State]"
        " | Mapping[int, State] | None"
    )
else:  # one level deep: inspection of annotations at run time cannot follow a recursive type
    State = bool | int | float | str | Tensor | Sequence | Mapping | None

_ALIASES = "aliases"
# Names of the dtypes in safetensors:
# https://huggingface.co/docs/safetensors/index#format.
_DTYPES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.float8_e4m3fn: "F8_E4M3",
    torch.float8_e5m2: "F8_E5M2",
    torch.complex64: "C64",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint64: "U64",
    torch.uint32: "U32",
    torch.uint16: "U16",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}
_PRECISE = 2**53  # larger whole numbers are not safe in every reader of JSON
# Parts of models by the names that older runs have, and by those of today.
_RENAMED = (
    (re.compile(r"(\.\d+\.)look(?=\.|_residual\.)"), r"\1cross_attend"),
    (re.compile(r"(^|\.)look(?=\.)"), r"\1attention"),
)


def pack_tensors(tensors: Mapping[str, Shaped[Tensor, "..."]]) -> list[memoryview]:
    """The parts of a safetensors file, the same bytes whatever the tensors' order and device."""
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
        if tensor.dtype not in _DTYPES:
            kinds = ", ".join(map(str, _DTYPES))
            raise RunError(f"{name} must be of one of {kinds} to be saved; got {tensor.dtype}.")
        original = first_name.setdefault(_memory(name, tensor), name)
        if original == name:
            stored[name] = _unshared_copy(tensor, storages)
        else:
            aliases[name] = original
    return _file_of(stored, {_ALIASES: json.dumps(aliases)} if aliases else None)


def _file_of(tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None) -> list[memoryview]:
    """The header of a safetensors file, then each tensor where it lies in memory."""
    # With copies, as of safetensors' own writer, a training would take as much memory again for
    # each checkpoint. The widest numbers come first, so that all can be read in place.
    header: dict[str, object] = {} if metadata is None else {"__metadata__": metadata}
    end, parts = 0, list[memoryview]()
    for name, tensor in sorted(tensors.items(), key=lambda pair: (-pair[1].itemsize, pair[0])):
        start, end = end, end + tensor.nbytes
        header[name] = {
            "dtype": _DTYPES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [start, end],
        }
        parts.append(_bytes_of(tensor))
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    return [memoryview(struct.pack("<Q", len(text)) + text), *parts]


def unpack_tensors(content: bytes, *, where: Path) -> dict[str, Shaped[Tensor, "..."]]:
    """The tensors of ``pack_tensors``, in the order of their names; tied names share a tensor."""
    try:
        check_header(content)
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
    return {_renamed(name): tensors[name] for name in sorted(tensors)}


def _renamed(name: str) -> str:
    """A tensor's name of today; older runs have others."""
    for pattern, current in _RENAMED:
        name = pattern.sub(current, name)
    return name


def converted(
    tensors: Mapping[str, Shaped[Tensor, "..."]], dtype: torch.dtype
) -> dict[str, Shaped[Tensor, "..."]]:
    """The tensors with those in floating point in another dtype; tied names still share one."""
    made = {
        id(tensor): tensor.to(dtype) for tensor in tensors.values() if tensor.is_floating_point()
    }
    return {name: made.get(id(tensor), tensor) for name, tensor in tensors.items()}


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
    match plain:
        case {"$tensor": name, **rest} if not rest:
            return tensors[_renamed(str(name))]
        case {"$int": digits, **rest} if not rest:
            return int(str(digits), 16)
        case {"$float": digits, **rest} if not rest:
            return float(str(digits))
        case {"$tuple": items, **rest} if not rest:
            return tuple(join_state(tensors, item) for item in cast(list[JsonValue], items))
        case {"$items": items, **rest} if not rest:
            pairs = [join_state(tensors, pair) for pair in cast(list[JsonValue], items)]
            return dict(cast(list[tuple[int, State]], pairs))
    return {_renamed(key): join_state(tensors, value) for key, value in plain.items()}


def _split(value: object, path: str, tensors: dict[str, Tensor]) -> JsonValue:
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return int(value) if abs(value) <= _PRECISE else {"$int": hex(value)}
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {"$float": repr(float(value))}
    if isinstance(value, Tensor):
        name = path
        while name in tensors:  # {"a": {"b": x}, "a.b": y} would meet at one name
            name += "'"
        tensors[name] = value
        return {"$tensor": name}
    return _split_container(value, path, tensors)


def _split_container(value: object, path: str, tensors: dict[str, Tensor]) -> JsonValue:
    def split(key: object, item: object) -> JsonValue:
        return _split(item, f"{path}.{key}" if path else str(key), tensors)

    if isinstance(value, list | tuple):
        items = [split(index, item) for index, item in enumerate(value)]
        return {"$tuple": items} if isinstance(value, tuple) else items
    if isinstance(value, Mapping):
        if all(isinstance(key, str) and key[:1] != "$" for key in value):
            return {key: split(key, item) for key, item in value.items()}
        pairs = [[_split(key, path, tensors), split(key, item)] for key, item in value.items()]
        return {"$items": pairs}
    raise RunError(
        f"{path or 'state'} must be a number, text, tensor, None, or a list or mapping of those"
        f" to be saved; got {_kind(value)}."
    )


def _memory(name: str, tensor: Tensor) -> tuple[object, ...]:
    """Identity of a tensor's storage; an empty tensor equals no other."""
    if tensor.numel() == 0:
        return (name,)
    start = tensor.data_ptr()
    return tensor.device, start, tensor.dtype, tuple(tensor.shape), tensor.stride()


def _unshared_copy(tensor: Tensor, storages: set[int]) -> Tensor:
    """Safetensors takes only contiguous tensors which share no memory with another."""
    plain = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
    storage = plain.untyped_storage().data_ptr()
    if storage in storages:
        return plain.clone()
    storages.add(storage)
    return plain


def _bytes_of(tensor: Tensor) -> memoryview:
    """The memory of a contiguous tensor of the CPU, little end first."""
    numbers = tensor.reshape(-1).view(torch.uint8)
    if sys.byteorder == "big" and tensor.itemsize > 1:
        width = tensor.itemsize // (2 if tensor.is_complex() else 1)
        numbers = numbers.view(-1, width).flip(1).reshape(-1)
    return numbers.numpy().data


def _kind(value: object) -> str:
    if isinstance(value, Tensor):
        return "a tensor without data" if value.is_meta else f"a {value.layout} tensor"
    return type(value).__name__
