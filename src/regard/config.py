"""JSON and TOML as plain data, and settings as frozen dataclasses made of it.

Files may come from anyone: size, depth and digits are bounded. Unknown settings are errors that
name the nearest key; values of the wrong type, ones that name the type.
"""

import dataclasses
import errno
import json
import math
import os
import re
import stat
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import tomli_w

from regard.checks import nearest
from regard.errors import SettingError
from regard.fields import checked, hints_of

ConfigT = TypeVar("ConfigT")
ValueT = TypeVar("ValueT")

if TYPE_CHECKING:
    # Values of JSON and TOML, and inputs of their writers: a tuple is a list there.
    JsonValue: TypeAlias = (
        "bool | int | float | str | Sequence[JsonValue] | Mapping[str, JsonValue] | None"
    )
else:  # one level deep: checkers of annotations at run time cannot follow recursion
    JsonValue = bool | int | float | str | Sequence | Mapping | None

_BEFORE = "before"
# Far beyond our files: bytes of a recipe, tables inside of tables, digits of a whole number.
_MOST_HEADER = 2**23  # bytes, of many thousands of tensors
_MOST_TOML, _DEEPEST, _MOST_DIGITS = 2**22, 100, 100


def read_file(path: Path, *, most: int | None = None) -> bytes:
    """Read a plain file of at most ``most`` bytes; not devices and pipes, which need not end."""
    check_plain_file(path, most=most)
    try:
        return path.read_bytes()
    except MemoryError as error:
        raise OSError(errno.ENOMEM, "larger than the memory", str(path)) from error


def check_plain_file(path: Path, *, most: int | None = None) -> None:
    """Raise OSError unless there is a plain file of at most ``most`` bytes."""
    status = path.stat()
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "not a plain file", str(path))
    if most is not None and status.st_size > most:
        raise OSError(errno.EFBIG, f"larger than {most:,} bytes", str(path))


def check_header(content: bytes) -> None:
    """Raise ValueError where the header of a safetensors file is longer than ours are."""
    length = int.from_bytes(content[:8], "little")
    if length > _MOST_HEADER:
        raise ValueError(f"its header has {length:,} bytes, more than {_MOST_HEADER:,}")


def parse_json(content: bytes, *, is_finite: bool = True) -> JsonValue:
    """Parse JSON of anyone; ValueError where it is deeper or longer than ours."""
    try:
        value: JsonValue = json.loads(
            content.decode(),
            parse_int=_whole,
            parse_float=_finite if is_finite else None,
            parse_constant=_finite if is_finite else None,
        )
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    _check_plain(value)
    return value


def read_toml(path: Path) -> dict[str, JsonValue]:
    """Read a TOML file; SettingError where it is none, or more than a recipe can be."""
    try:
        text = read_file(path, most=_MOST_TOML).decode("utf-8-sig")
        return parse_toml(text.replace("\r\n", "\n").replace("\r", "\n"))
    except ValueError as error:
        raise SettingError(f"{path} must be a TOML file; {error}.") from error


def parse_toml(text: str) -> dict[str, JsonValue]:
    """Parse TOML that anyone may have written; ValueError for dates, depth and long numbers."""
    if _DOTTED.search(text):  # which tomllib takes the square of its length for
        raise ValueError(_TOO_DEEP)
    try:
        table: dict[str, JsonValue] = tomllib.loads(text)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    except tomllib.TOMLDecodeError:
        raise
    except ValueError:  # Python's own, of thousands of digits
        raise ValueError(_TOO_LONG) from None
    _check_plain(table)
    return table


# A key of more parts than that, bare or quoted.
_DOTTED = re.compile(
    rf"""(?:(?:(?<![\w-])[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){{{_DEEPEST}}}"""
)
_TOO_DEEP = f"it is nested more than {_DEEPEST} deep"
_TOO_LONG = f"it holds a number of more than {_MOST_DIGITS} digits"


def _check_plain(value: JsonValue) -> None:
    """Raise ValueError unless a parsed value is plain data within the bounds."""
    level: list[object] = [value]
    for _ in range(_DEEPEST):
        inner: list[object] = []
        for node in level:
            if isinstance(node, dict):
                inner += node.values()
            elif isinstance(node, list):
                inner += node
            elif isinstance(node, int) and abs(node) >= 10**_MOST_DIGITS:  # TOML's hexadecimal
                raise ValueError(_TOO_LONG)
            elif not isinstance(node, str | int | float | None):
                raise ValueError(f"it holds a {type(node).__name__}, which no setting is")
        if not inner:
            return
        level = inner
    raise ValueError(_TOO_DEEP)


def _whole(digits: str) -> int:
    if len(digits) > _MOST_DIGITS:
        raise ValueError(_TOO_LONG)
    return int(digits)


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"it holds {digits[:20]}, which is no finite number")
    return number


def write_toml(table: Mapping[str, object]) -> str:
    """``table`` as TOML text; None is left out, since TOML has no such value."""
    return tomli_w.dumps({k: _without_none(v) for k, v in table.items() if v is not None})


def build(
    config: type[ConfigT],
    table: Mapping[str, object],
    *,
    where: str,
    kind: str | None = None,
    kinds: Mapping[str, type[object]] = MappingProxyType({}),
) -> ConfigT:
    """Make the dataclass ``config`` of a table; a SettingError names the nearest key.

    Of a table with a ``type``, which is ``kind``, ``kinds`` are the dataclasses by type.
    """
    hints, retired = hints_of(config), retired_settings(config, table)
    values = {}
    for key, value in table.items():
        if key in retired:
            raise SettingError(
                f"{where}.{key} must be left out, since it is no longer a setting; got {value!r}. "
                "A run that has it needs the version of regard that trained it."
            )
        if key in _retired(config):
            continue
        if key not in hints:
            owners = [name for name, section in kinds.items() if key in hints_of(section)]
            raise SettingError(_unknown(where, key, hints, kind, owners))
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
    """A setting that some saved settings lack, which meant ``before`` without it."""
    field: ValueT = dataclasses.field(default=default, metadata={_BEFORE: before})
    return field


def as_saved(config: type[object], table: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Saved settings, with former meanings of newer ones, without retired ones that were off."""
    assert dataclasses.is_dataclass(config)
    fields = [field for field in dataclasses.fields(config) if _BEFORE in field.metadata]
    off, names = _retired(config), getattr(config, "renamed", {})
    unneeded = getattr(config, "unneeded", ())  # of any value
    items = ((names.get(key, key), value) for key, value in table.items())
    current = {
        key: value
        for key, value in items
        if key not in unneeded and (key not in off or value != off[key])
    }
    return {**{field.name: field.metadata[_BEFORE] for field in fields}, **current}


def retired_settings(config: type[object], table: Mapping[str, object]) -> dict[str, object]:
    """The settings in a table that are retired and not off; a config names its own."""
    off = _retired(config)
    return {key: value for key, value in table.items() if key in off and value != off[key]}


def _retired(config: type[object]) -> Mapping[str, object]:
    retired: Mapping[str, object] = getattr(config, "retired", {})
    return retired


def parse_settings(texts: Sequence[str]) -> dict[str, JsonValue]:
    """Values by dotted names, from ``key.path=value`` texts, read as TOML or as text."""
    settings = {}
    for setting in texts:
        path, sign, text = setting.partition("=")
        if not sign or not path.strip():
            raise SettingError(f"--set must read key=value; got {setting!r}.")
        settings[path.strip()] = _parse(path.strip(), text.strip())
    return settings


def format_setting(name: str, value: JsonValue) -> str:
    """A value as ``--set`` takes it: ``parse_settings`` reads it back."""
    if value is None:
        return f"{name}=none"
    if isinstance(value, str) and _parse(name, value) == value:
        return f"{name}={value}"
    return f"{name}={json.dumps(value, ensure_ascii=False)}"


def assign(
    table: Mapping[str, JsonValue], settings: Mapping[str, JsonValue]
) -> dict[str, JsonValue]:
    """Return a nested table with values by their dotted names over it."""
    result = dict(table)
    for path, value in settings.items():
        *parents, last = path.split(".")
        inner = result
        for parent in parents:
            section = inner.get(parent, {})
            if not isinstance(section, Mapping):
                raise SettingError(f"{path} must be a setting of a table; {parent} is a value.")
            copy: dict[str, JsonValue] = dict(section)
            inner[parent] = copy
            inner = copy
        inner[last] = value
    return result


def _parse(name: str, text: str) -> JsonValue:
    if text.strip().lower() in ("none", "null"):
        return None  # TOML has no word for a setting that is off
    try:
        return parse_toml(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
    except ValueError as error:
        raise SettingError(f"--set {name} must be plain; {error}.") from None


def _unknown(
    where: str, key: str, names: Iterable[str], kind: str | None, owners: Sequence[str]
) -> str:
    subject = f"{where}.{key} is not a setting"
    if kind is not None:
        subject, names = f"{subject} of {kind}", [*names, "type"]
    if owners:
        subject += f", but of {', '.join(owners)}"
    if hint := nearest(key, names):
        return f"{subject}. Did you mean {where}.{hint}?"
    return f"{subject}. There are: {', '.join(sorted(names))}."


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
