"""Every config refuses what it does not know in its constructor, found by looking at them all."""

import dataclasses
import importlib
import inspect
import math
import types
import typing
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
import torch
from tests.structure.test_names import modules, own, packages

from regard import attention, inference, interop, layers, text, viewer
from regard.checks import nearest
from regard.errors import SettingError
from regard.fields import hints_of
from regard.runtime import in_precision
from regard.text import phrasebook

# The net of shape checks refuses a wrong type before a config can.
pytestmark = pytest.mark.usefixtures("unchecked_shapes")

# What a setting can be; a class of anything else carries data.
PLAIN = {int, float, str, bool, type(None)}


def configs():
    """The classes of settings: numbers, words and flags with defaults, by keyword only."""
    # What a command parses is checked by the class that it fills in, and a page is no setting.
    names = [name for name in modules() if not name.startswith(("regard.cli", "regard.viewer"))]
    values = [value for name in names for value in own(importlib.import_module(name)).values()]
    return [value for value in values if isinstance(value, type) and is_config(value)]


def is_config(one):
    if not dataclasses.is_dataclass(one):
        return False
    fields = dataclasses.fields(one)
    if not all(field.kw_only for field in fields):
        return False
    if all(field.default is dataclasses.MISSING for field in fields):
        return False  # what was measured
    hints = hints_of(one).values()
    return set().union(*map(kinds, hints)) <= PLAIN


def kinds(hint):
    """The types that an annotation is made of."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal:
        return {str}
    if origin is Annotated:
        return kinds(arguments[0])
    if origin in (typing.Union, types.UnionType, tuple):
        return set().union(*(kinds(one) for one in arguments if one is not ...))
    return {hint}


def make(config, **settings):
    """One of a class, with what it needs besides."""
    needed = {"TrainingConfig": {"updates": 7}}
    for name, values in needed.items():
        if f"{config.__module__}.{config.__qualname__}".endswith(name):
            settings = {**values, **settings}
    return config(**settings)


CONFIGS = configs()
every_config = pytest.mark.parametrize("config", CONFIGS, ids=lambda one: one.__name__)


def choices(hint):
    """The choices in an annotation, however deep."""
    if typing.get_origin(hint) is Literal:
        return typing.get_args(hint)
    return tuple(choice for one in typing.get_args(hint) for choice in choices(one))


def test_settings_are_found():
    names = {config.__name__ for config in CONFIGS}
    assert len(names) >= 27
    assert {"EncoderConfig", "ClassifierConfig", "TaggingData", "TrainingConfig"} <= names
    assert {"DecodingConfig", "TokenizerConfig", "PairLayout", "Limits"} <= names
    assert sum(bool(choices(hint)) for one in CONFIGS for hint in hints_of(one).values()) >= 45


@every_config
def test_defaults_are_as_they_are_annotated(config):
    one = make(config)
    for name in hints_of(config):
        assert make(config, **{name: getattr(one, name)}) == one


@every_config
def test_unknown_choice_is_refused(config):
    for name, hint in hints_of(config).items():
        if known := choices(hint):
            refuse_choices(config, name, known, is_number=int in kinds(hint))


def refuse_choices(config, name, known, *, is_number):
    for right in known:
        for wrong in (f"{right}s", right.capitalize(), right.upper(), f" {right}", ""):
            with pytest.raises(SettingError) as caught:
                make(config, **{name: wrong})
            near = nearest(wrong, known)
            assert str(caught.value) == (
                f"{name} must be one of {', '.join(sorted(known))}; got {wrong!r}."
                f"{f' Did you mean {near!r}?' if near else ''}"
            )
            assert near or not wrong
    rule = "a whole number" if is_number else "one of "  # a number, or one of the choices
    for wrong in (*([] if is_number else [7]), True, [known[0]], object()):
        with pytest.raises(SettingError, match=rf"^{name} must be {rule}"):
            make(config, **{name: wrong})


@every_config
def test_value_of_another_type_or_range_is_refused(config):
    for name, hint in hints_of(config).items():
        for wrong in wrong_values(name, kinds(hint)):
            items = [wrong, (wrong,)] if typing.get_origin(hint) is tuple else [wrong]
            for one in items:
                with pytest.raises(SettingError, match=rf"^{name}\b"):
                    make(config, **{name: one})


def wrong_values(name, allowed):
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
    return wrongs


def test_number_of_another_make_becomes_the_fields_own():
    import numpy as np

    from regard.models import ConvReaderConfig, TransformerConfig

    config = TransformerConfig(num_heads=np.int64(4), dropout=0)
    assert (type(config.num_heads), type(config.dropout)) == (int, float)
    assert ConvReaderConfig(widths=[1, 3]).widths == (1, 3)


# Public functions and layers that take a name, each called with one that there is not.
CALLS: dict[str, Callable[[Any], object]] = {
    "regard.attention.register_mask.allowed": lambda name: attention.register_mask(
        "mine", attention.causal, name
    ),
    "regard.inference.load.precision": lambda name: inference.load("nowhere", precision=name),
    "regard.load.precision": lambda name: inference.load("nowhere", precision=name),
    "regard.interop.save_checkpoint.layout": lambda name: interop.save_checkpoint(
        torch.nn.Identity(), Path("nowhere"), layout=name
    ),
    "regard.layers.FeedForward.activation": lambda name: layers.FeedForward(8, 8, activation=name),
    "regard.layers.Pooling.name": lambda name: layers.Pooling(name, 8),
    "regard.layers.RecurrentEncoder.cell": lambda name: layers.RecurrentEncoder(name, 8, 8),
    "regard.layers.Residual.kind": lambda name: layers.Residual(8, kind=name),
    "regard.layers.Residual.norm": lambda name: layers.Residual(8, norm=name),
    "regard.layers.RotaryPositions.pairs": lambda name: layers.RotaryPositions(8, pairs=name),
    "regard.layers.TransformerBlock.activation": lambda name: block(activation=name),
    "regard.layers.TransformerBlock.kind": lambda name: block(kind=name),
    "regard.layers.TransformerBlock.norm": lambda name: block(norm=name),
    "regard.layers.TransformerBlock.norm_kind": lambda name: block(norm_kind=name),
    "regard.runtime.in_precision.precision": lambda name: in_precision(torch.nn.Identity(), name),
    "regard.text.read_pairs.on_bad_line": lambda name: list(
        text.read_pairs(Path("pairs.tsv"), on_bad_line=name)
    ),
    "regard.text.phrasebook.phrases.split": lambda name: list(phrasebook.phrases(name)),
    "regard.viewer.example_of.padding": lambda name: viewer.example_of([], None, padding=name),
    "regard.viewer.example_of.top_heads": lambda name: viewer.example_of([], "a", top_heads=name),
    "regard.viewer.pack.scale": lambda name: viewer.pack([1.0], scale=name),
}


def block(kind="encoder", **options):
    return layers.TransformerBlock(kind, 0, model_dim=8, num_heads=2, ffn_dim=8, **options)


def named_choices():
    """Each public function's parameter that is annotated with choices, and those choices."""
    for package in packages():
        module = importlib.import_module(package)
        for public in getattr(module, "__all__", ()):
            value = getattr(module, public)
            function = value.__init__ if isinstance(value, type) else value
            if dataclasses.is_dataclass(value) or not inspect.isfunction(inspect.unwrap(function)):
                continue
            for name, parameter in inspect.signature(inspect.unwrap(function)).parameters.items():
                if known := choices(parameter.annotation):
                    yield f"{package}.{public}.{name}", known


def test_every_named_choice_of_a_public_function_is_tried():
    assert {name for name, _ in named_choices()} <= CALLS.keys()


@pytest.mark.parametrize("parameter", sorted(CALLS))
def test_unknown_name_is_refused_by_functions_and_layers(parameter):
    known = dict(named_choices()).get(parameter, ())
    *_, name = parameter.split(".")
    for wrong in ("", "nothing", *(f"{right}s" for right in known), *map(str.upper, known)):
        with pytest.raises(SettingError, match=f"must be one of .*; got {wrong!r}") as caught:
            CALLS[parameter](wrong)
        assert str(caught.value).startswith((name, "parts", "pooling"))
