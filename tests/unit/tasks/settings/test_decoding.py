"""The settings of a search: what each method has a use for, and what contradicts."""

import pytest

from regard.errors import SettingError
from regard.tasks import DecodingConfig, recipe_from_table

SAMPLED = {"temperature": 0.7, "top_k": 3, "top_p": 0.9, "seed": 1}
OF_BEAM = {"beam_size": 4, "coverage_penalty": 0.2}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"temperature": 0.0, "method": "sample"}, "temperature must be at least 1e-06; got 0.0"),
        ({"top_p": 1.5, "method": "sample"}, "top_p must be above 0 and at most 1; got 1.5"),
        ({"repetition_penalty": 0.0}, "repetition_penalty must be at least 0.01; got 0.0. Use 1"),
        ({"n_best": 6}, "n_best must be at most beam_size; got n_best=6, beam_size=5. A wider"),
        ({"n_best": 2, "method": "greedy"}, "n_best must go with method beam or sample; got n_be"),
        ({"avoid": ("a", " ")}, "avoid must name words; got an empty one"),
        (
            {"temperature": 1e39, "method": "sample"},
            r"temperature must be at most 1000; got 1e\+39",
        ),
        ({"repetition_penalty": 1e-300}, "repetition_penalty must be at least 0.01; got 1e-300"),
        ({"length_penalty": 11.0}, "length_penalty must be at most 10; got 11.0"),
        ({"n_best": 2000, "method": "sample"}, "n_best must be at most 1000; got 2000"),
        ({"max_ratio": 1e300}, r"max_ratio must be at most 1000; got 1e\+300"),
    ],
)
def test_settings_that_cannot_be_saved_are_refused(settings, message):
    with pytest.raises(SettingError, match=message):
        DecodingConfig(**settings)


@pytest.mark.parametrize("method", ["beam", "greedy", "sample"])
@pytest.mark.parametrize("name", sorted(SAMPLED | OF_BEAM))
def test_a_setting_of_another_method_is_refused(method, name):
    owner = "sample" if name in SAMPLED else "beam"
    settings = {name: (SAMPLED | OF_BEAM)[name]}
    if method == owner:
        DecodingConfig(method=method, **settings)
    else:
        with pytest.raises(SettingError, match=f"{name} must go with method {owner}; got {name}="):
            DecodingConfig(method=method, **settings)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({}, r"min_length must be at most data.max_length = \d+; got 100000"),
        ({"task": "language_modelling"}, "min_length must be at most decoding.max_tokens = 200"),
    ],
)
def test_a_recipe_cannot_ask_for_longer_answers_than_it_allows(table, message):
    with pytest.raises(SettingError, match=message):
        recipe_from_table({**table, "decoding": {"min_length": 100000}})


def test_a_recipe_says_where_a_setting_stands():
    with pytest.raises(SettingError, match=r"\[decoding\] temperature must go with method sample"):
        recipe_from_table({"decoding": {"temperature": 0.5}})
    recipe = recipe_from_table({"decoding": {"method": "sample", "top_k": 3, "avoid": ["a"]}})
    assert (recipe.decoding.top_k, recipe.decoding.avoid) == (3, ("a",))


def test_another_method_leaves_behind_what_it_has_no_use_for():
    drawn = DecodingConfig(method="sample", temperature=0.7, n_best=9, avoid=("a",), max_ratio=3.0)
    beam = drawn.changed(method="beam", n_best=2)
    assert beam == DecodingConfig(n_best=2, avoid=("a",), max_ratio=3.0)
    plain = DecodingConfig(method="greedy", avoid=("a",), max_ratio=3.0)
    assert drawn.changed(method="greedy") == plain
    assert drawn.changed(method="sample", seed=3).temperature == 0.7
    with pytest.raises(SettingError, match="beam_size must go with method beam"):
        drawn.changed(beam_size=3)


def test_plain_settings_keep_to_nothing():
    settings = {"prefix": "a", "avoid": ("b",), "n_best": 5, "max_ratio": 3.0}
    plain = DecodingConfig(**settings).plain()
    assert plain == DecodingConfig(method="greedy", max_ratio=3.0)
