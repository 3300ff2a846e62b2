"""Settings as frozen dataclasses: read from tables, checked, written back as TOML.

Unknown keys are errors that name the nearest key; values of the wrong type name what was expected.
"""

import dataclasses
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import tomli_w

from regard.choices import nearest
from regard.errors import SettingError
from regard.fields import checked, hints_of

ConfigT = TypeVar("ConfigT")
ValueT = TypeVar("ValueT")

if TYPE_CHECKING:
    # What JSON and TOML hold, and what their writers take: a tuple is a list there.
    JsonValue: TypeAlias = (
        "bool | int | float | str | Sequence[JsonValue] | Mapping[str, JsonValue] | None"
    )
else:  # one level deep: what looks at annotations as a program runs cannot follow itself
    JsonValue = bool | int | float | str | Sequence | Mapping | None

_BEFORE = "before"


def read_toml(path: Path) -> dict[str, JsonValue]:
    """The table in a TOML file, with the place named when it does not parse."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingError(f"{path} must be a TOML file; {error}.") from error


def write_toml(table: Mapping[str, object]) -> str:
    """``table`` as TOML text; None is left out, since TOML has no such value."""
    return tomli_w.dumps({k: _without_none(v) for k, v in table.items() if v is not None})


def build(
    config: type[ConfigT],
    table: Mapping[str, object],
    *,
    where: str,
    beside: Sequence[str] = (),
) -> ConfigT:
    """An instance of the dataclass ``config`` from ``table``.

    Args:
        config: A dataclass whose fields are numbers, strings, flags, tuples of those, or None.
        table: Keys and values as TOML or ``--set`` gave them.
        where: Prefix of each key in messages (``model``).
        beside: Keys that the table may have had besides, to be offered for one that is unknown.

    Raises:
        SettingError: A key is unknown, or a value has the wrong type or range.

    Example:
        >>> @dataclasses.dataclass
        ... class Model:
        ...     num_heads: int = 8
        >>> build(Model, {"num_heads": 4}, where="model")
        Model(num_heads=4)
        >>> build(Model, {"num_head": 4}, where="model")
        Traceback (most recent call last):
        regard.errors.SettingError: model.num_head is not a setting. Did you mean model.num_heads?
    """
    hints = hints_of(config)
    values = {}
    for key, value in table.items():
        if key not in hints:
            raise SettingError(_unknown(where, key, [*hints, *beside]))
        values[key] = checked(f"{where}.{key}", value, hints[key])
    try:
        return config(**values)
    except SettingError as error:
        raise SettingError(f"[{where}] {error}") from error


def as_table(config: object) -> dict[str, JsonValue]:
    """The fields of a config as a plain table, ready for TOML."""
    assert dataclasses.is_dataclass(config)
    assert not isinstance(config, type)
    return {k: _plain(v) for k, v in dataclasses.asdict(config).items()}


def newer(default: ValueT, *, before: ValueT) -> ValueT:
    """The field of a setting that some saved settings lack, which meant something else without it.

    Args:
        default: What holds where nothing is said.
        before: What held before there was the setting.

    Example:
        >>> @dataclasses.dataclass
        ... class Model:
        ...     size: int = 8
        ...     order: str = newer("last", before="first")
        >>> Model().order, as_saved(Model, {"size": 4})
        ('last', {'order': 'first', 'size': 4})
    """
    field: ValueT = dataclasses.field(default=default, metadata={_BEFORE: before})
    return field


def as_saved(config: type[object], table: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Settings that were saved, with what those that are newer than they are meant at the time."""
    assert dataclasses.is_dataclass(config)
    fields = [field for field in dataclasses.fields(config) if _BEFORE in field.metadata]
    return {**{field.name: field.metadata[_BEFORE] for field in fields}, **table}


def assign(table: dict[str, JsonValue], settings: Sequence[str]) -> None:
    """Write ``key.path=value`` settings (as ``--set`` takes them) into a nested ``table``.

    A value is read as TOML where it parses (``4``, ``true``, ``[1, 2]``), else as text; ``none``
    switches a setting off that can be.

    Example:
        >>> table = {"model": {"num_heads": 8}}
        >>> assign(table, ["model.num_heads=4", "model.type=transformer"])
        >>> table
        {'model': {'num_heads': 4, 'type': 'transformer'}}
    """
    for setting in settings:
        path, sign, text = setting.partition("=")
        if not sign or not path.strip():
            raise SettingError(f"--set must read key=value; got {setting!r}.")
        *parents, last = path.strip().split(".")
        inner = table
        for parent in parents:
            found = inner.setdefault(parent, {})
            if not isinstance(found, dict):
                raise SettingError(f"--set {path.strip()}: {parent} is a value, not a table.")
            inner = found
        inner[last] = _parse(text.strip())


def _parse(text: str) -> JsonValue:
    if text.strip().lower() in ("none", "null"):
        return None  # TOML has no word for a setting that is off
    try:
        value: JsonValue = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
    return value


def _unknown(where: str, key: str, names: Sequence[str]) -> str:
    hint = nearest(key, names)
    cure = f"Did you mean {where}.{hint}?" if hint else f"There are: {', '.join(sorted(names))}."
    return f"{where}.{key} is not a setting. {cure}"


def _plain(value: JsonValue) -> JsonValue:
    if isinstance(value, tuple):
        return [_plain(v) for v in value]
    return value


def _without_none(value: object) -> object:
    if isinstance(value, Mapping):
        return {k: _without_none(v) for k, v in value.items() if v is not None}
    if isinstance(value, list | tuple):
        return [_without_none(v) for v in value]
    return value
