"""Every config refuses what it does not know in its constructor, found by looking at them all."""

import dataclasses
import importlib
import math
import types
import typing
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from tests.structure.test_names import modules, own

from regard.choices import nearest
from regard.errors import SettingError
from regard.fields import hints_of

# The net of shape checks refuses a wrong type before a config can.
pytestmark = pytest.mark.usefixtures("unchecked_shapes")

# What a setting can be; a class of anything else carries data.
PLAIN = {int, float, str, bool, type(None)}


def configs() -> list[type]:
    """The classes of settings: numbers, words and flags with defaults, by keyword only."""
    # What a command parses is checked by the class that it fills in, and a page is no setting.
    names = [name for name in modules() if not name.startswith(("regard.cli", "regard.viewer"))]
    found = [one for name in names for one in own(importlib.import_module(name)).values()]
    return [one for one in found if isinstance(one, type) and is_config(one)]


def is_config(one: type) -> bool:
    if not dataclasses.is_dataclass(one):
        return False
    fields = dataclasses.fields(one)
    if not all(field.kw_only for field in fields):
        return False
    if all(field.default is dataclasses.MISSING for field in fields):
        return False  # what was measured
    hints = hints_of(one).values()
    return set().union(*map(kinds, hints)) <= PLAIN


def kinds(hint: Any) -> set[Any]:
    """The types that an annotation is made of."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal:
        return {str}
    if origin is Annotated:
        return kinds(arguments[0])
    if origin in (typing.Union, types.UnionType, tuple):
        return set().union(*(kinds(one) for one in arguments if one is not ...))
    return {hint}


def made(config: type, **given: Any) -> Any:
    """One of a class, with what it needs besides."""
    needed = {"comparison.candidates.Sizes": {"length": 7}, "TrainingConfig": {"updates": 7}}
    for name, values in needed.items():
        if f"{config.__module__}.{config.__qualname__}".endswith(name):
            given = {**values, **given}
    return config(**given)


def fields() -> list[Any]:
    return [
        pytest.param(config, name, hint, id=f"{config.__name__}.{name}")
        for config in configs()
        for name, hint in hints_of(config).items()
    ]


def choice_fields() -> list[Any]:
    return [one for one in fields() if choices(one.values[2])]


def choices(hint: Any) -> tuple[str, ...]:
    """The choices in an annotation, however deep."""
    if typing.get_origin(hint) is Literal:
        return typing.get_args(hint)
    return tuple(choice for one in typing.get_args(hint) for choice in choices(one))


def test_settings_are_found():
    names = {config.__name__ for config in configs()}
    assert len(names) >= 28
    assert {"EncoderConfig", "ClassifierConfig", "TaggingData", "TrainingConfig"} <= names
    assert {"DecodingConfig", "TokenizerConfig", "PairLayout", "Limits", "Sizes"} <= names
    assert len(choice_fields()) >= 45


@pytest.mark.parametrize("config", configs(), ids=lambda one: one.__name__)
def test_defaults_are_as_they_are_annotated(config: type):
    one = made(config)
    for name in hints_of(config):
        assert made(config, **{name: getattr(one, name)}) == one


@pytest.mark.parametrize(("config", "name", "hint"), choice_fields())
def test_unknown_choice_is_refused(config: type, name: str, hint: Any):
    known = choices(hint)
    for right in known:
        for wrong in (f"{right}s", right.capitalize(), right.upper(), f" {right}", ""):
            with pytest.raises(SettingError) as caught:
                made(config, **{name: wrong})
            hint = nearest(wrong, known)
            assert str(caught.value) == (
                f"{name} must be one of {', '.join(sorted(known))}; got {wrong!r}."
                f"{f' Did you mean {hint!r}?' if hint else ''}"
            )
            assert hint or not wrong
    for wrong in (7, True, [known[0]], object()):
        with pytest.raises(SettingError, match=rf"^{name} must be one of "):
            made(config, **{name: wrong})


@pytest.mark.parametrize(("config", "name", "hint"), fields())
def test_value_of_another_type_or_range_is_refused(config: type, name: str, hint: Any):
    allowed = kinds(hint)
    wrongs: list[Any] = [object(), {"a": 1}, Path()]
    if type(None) not in allowed:
        wrongs.append(None)
    if str not in allowed:
        wrongs += ["false", "7", ""]
    if allowed & {int, float}:
        wrongs += [-math.inf, math.nan, -(10**9), True]
        # Within an infinite bandwidth all points count alike.
        wrongs += [math.inf] if name != "bandwidth" else []
    if float not in allowed:
        wrongs.append(1.5)
    for wrong in wrongs:
        items = [wrong, (wrong,)] if typing.get_origin(hint) is tuple else [wrong]
        for one in items:
            with pytest.raises(SettingError, match=rf"^{name}\b"):
                made(config, **{name: one})


def test_number_of_another_make_becomes_the_fields_own():
    import numpy as np

    from regard.models import ConvReaderConfig, TransformerConfig

    config = TransformerConfig(num_heads=np.int64(4), dropout=0)
    assert (type(config.num_heads), type(config.dropout)) == (int, float)
    assert ConvReaderConfig(widths=[1, 3]).widths == (1, 3)
