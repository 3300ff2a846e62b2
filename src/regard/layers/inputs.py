"""Checks of inputs of a model or its steps: token ids, lengths, rows of a state.

Shapes are always checked. Numbers are looked at on a CPU alone, as a GPU would be waited for, and
not by a compiler, to which they are unknown.
"""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Bool, Int, Int64
from torch import Tensor

from regard.errors import SettingError, ShapeError, TokenError, excerpt

# Numbers up to which Python is faster than numpy.
_FEW = 32
# Names of lengths that are not made of those of the rows.
_LENGTHS = {"ids": "lengths", "sentences": "counts"}


def whole(name: str, numbers: Tensor) -> Int64[Tensor, "*any"]:
    """Whole numbers of any width in int64; ShapeError if they are no tensor of these."""
    if not isinstance(numbers, Tensor):
        raise ShapeError(f"{name} must be a tensor of whole numbers; got {excerpt(numbers)}.")
    if numbers.layout is not torch.strided or numbers.is_nested:
        kind = "a nested tensor" if numbers.is_nested else numbers.layout
        raise ShapeError(f"{name} must be a dense tensor of whole numbers; got {kind}.")
    if numbers.dtype == torch.int64:
        return numbers
    if numbers.dtype.is_floating_point or numbers.dtype.is_complex or numbers.dtype == torch.bool:
        raise ShapeError(f"{name} must be whole numbers; got {numbers.dtype}.")
    return numbers.long()


def real_positions(lengths: Int[Tensor, " B"], width: int) -> Bool[Tensor, "B N"]:
    """Positions of padded rows that are no padding, as flags."""
    return torch.arange(width, device=lengths.device) < lengths[:, None]


def unknown_ids(name: str, ids: Tensor, size: int) -> TokenError:
    """The error for ids of which a table of ``size`` rows does not have all."""
    return TokenError(
        f"{name} must be from 0 to {size - 1}; got {_range(int(ids.min()), int(ids.max()))}. "
        "Use the tokenizer that the model was trained with."
    )


def valid_ids(name: str, ids: Tensor, size: int) -> Int64[Tensor, "*any"]:
    """Ids in int64, each of which a table of ``size`` rows has; else TokenError."""
    ids = whole(name, ids)
    if is_readable(ids) and not is_within(ids.numpy(), size):
        raise unknown_ids(name, ids, size)
    return ids


def texts(
    name: str,
    ids: Int[Tensor, "B N *parts"],
    lengths: Int[Tensor, " B"],
    *,
    least: int = 0,
    cure: str = "",
    waits: bool = False,
) -> tuple[Int64[Tensor, "B N *parts"], Int64[Tensor, " B"]]:
    """Rows of ids and how many are real, in int64; ShapeError if they do not fit together."""
    lengths_name, ids = _LENGTHS.get(name, f"{name}_lengths"), rows_of_ids(name, ids)
    lengths = row_lengths(
        lengths_name, lengths, name, ids.shape[:2], least=least, cure=cure, waits=waits
    )
    return ids, lengths


def row_lengths(
    name: str,
    lengths: Int[Tensor, " B"],
    of: str,
    shape: Sequence[int],
    *,
    least: int = 0,
    cure: str = "",
    waits: bool = False,
) -> Int64[Tensor, " B"]:
    """Lengths of rows of this shape, (B, N), and name; see ``texts``."""
    lengths, (rows, columns) = whole(name, lengths), shape
    if torch.compiler.is_compiling():
        return lengths
    if lengths.shape != (rows,):
        raise ShapeError(
            f"{name} must be one for each row of {of}: ({rows},); got {tuple(lengths.shape)}."
        )
    if rows and (waits or is_readable(lengths)):
        lowest, highest = map(int, lengths.aminmax())
        if not least <= lowest <= highest <= columns:
            rule = f"from {least} to {columns}, the columns of {of}"
            received = _range(lowest, highest)
            raise ShapeError(f"{name} must be {rule}; got {received}. {cure}".rstrip())
    return lengths


def pairs(
    source: Int[Tensor, "B S"],
    source_lengths: Int[Tensor, " B"],
    target: Int[Tensor, "B T"],
    target_lengths: Int[Tensor, " B"] | None,
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """Sources, a target for each, and their lengths, as ``texts`` checks them."""
    source, source_lengths = texts("source", source, source_lengths)
    target = rows_of_ids("target", target)
    if not torch.compiler.is_compiling() and len(target) != len(source):
        raise ShapeError(
            f"target must have a row for each of source: {len(source)}; got {len(target)}."
        )
    if target_lengths is not None:
        target, target_lengths = texts("target", target, target_lengths)
    return source, source_lengths, target, target_lengths


def rows_of_ids(name: str, ids: Int[Tensor, "B N *parts"]) -> Int64[Tensor, "B N *parts"]:
    """Ids in int64; ShapeError unless they are a row for each text."""
    ids = whole(name, ids)
    if ids.dim() < 2:
        raise ShapeError(f"{name} must be rows of ids, (B, N); got {tuple(ids.shape)}.")
    return ids


def check_beside(name: str, numbers: Tensor, ids: Int[Tensor, "B N"], is_so: bool = True) -> None:
    """Raise ShapeError unless numbers stand beside each token; ``is_so`` is another condition."""
    if torch.compiler.is_compiling() or (is_so and numbers.shape[:2] == ids.shape):
        return
    raise ShapeError(
        f"{name} must be given for each of ids, {tuple(ids.shape)}; got {tuple(numbers.shape)}."
    )


def step_tokens(token: Int[Tensor, " R"], rows: int | None) -> Int64[Tensor, " R"]:
    """The tokens of a step in int64; ShapeError unless there is one for each row of its state."""
    token = whole("token", token)
    if not torch.compiler.is_compiling() and token.shape != (rows,):
        raise ShapeError(
            f"token must be one for each row of the state: ({rows},); got {tuple(token.shape)}."
        )
    return token


def valid_rows(rows: Int[Tensor, " K"], count: int) -> Int64[Tensor, " K"]:
    """Numbers of rows in int64, each of which a state of ``count`` rows has; else ShapeError."""
    rows = whole("rows", rows)
    if rows.ndim != 1:
        raise ShapeError(f"rows must be a list of numbers, (K,); got {tuple(rows.shape)}.")
    if is_readable(rows) and not is_within(rows.numpy(), count):
        raise ShapeError(
            f"rows must be from 0 to {count - 1}, those of the state; "
            f"got {_range(int(rows.min()), int(rows.max()))}."
        )
    return rows


def valid_row_array(rows: Int[Tensor, " K"], count: int) -> Int64[np.ndarray, " K"]:
    """``valid_rows`` as compiled loops take them, of a state on a CPU; at each step of a search."""
    numbers: Int64[np.ndarray, " K"] = whole("rows", rows).numpy()
    if numbers.ndim != 1 or not is_within(numbers, count):
        valid_rows(rows, count)
    return numbers


def check_state(state: object, kind: type[object]) -> None:
    """Raise SettingError unless a state is of the kind that the model's start() returns."""
    if not isinstance(state, kind):
        raise SettingError(
            f"state must be what start() of this model returned, a {kind.__name__}; "
            f"got {type(state).__name__}."
        )


def is_readable(numbers: Tensor) -> bool:
    """Whether numbers can be looked at without waiting for a GPU or leaving a graph."""
    # Tensors that stand for others, as those of a trace do, have a dispatch of their own.
    is_plain = type(numbers).__torch_dispatch__ is Tensor.__torch_dispatch__
    return is_plain and numbers.device.type == "cpu" and not torch.compiler.is_compiling()


def is_within(numbers: Int64[np.ndarray, "*any"], size: int) -> bool:
    """Whether all are from 0 to ``size - 1``."""
    # A step of a small model takes 100 µs, and numpy several for a pass: few are looked at by
    # Python. As numbers without a sign, negative ones are the largest: one pass for both bounds.
    if numbers.size > _FEW:
        return bool(numbers.view(np.uint64).max() < size)
    few = numbers.ravel().tolist()
    return not few or (min(few) >= 0 and max(few) < size)


def _range(lowest: int, highest: int) -> str:
    return f"{lowest}" if lowest == highest else f"{lowest} to {highest}"
