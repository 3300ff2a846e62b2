import pytest
from benchmarks.attention_mechanisms import MECHANISMS, figures, recipe_table

from regard.tasks import recipe_from_table


@pytest.mark.parametrize("name", sorted(MECHANISMS))
def test_each_mechanism_is_a_recipe_with_a_time(name):
    table = recipe_table(name, 0.5)
    assert "updates" not in table["training"]
    assert table["training"]["minutes"] == 0.5
    recipe = recipe_from_table(table)
    assert recipe.uses_phrasebook
    for setting, value in MECHANISMS[name][1].items():
        assert getattr(recipe.model, setting) == value


def test_a_figure_says_what_was_right_and_how_far_attention_is_off():
    aligned = {"linked": 0.25, "overall": 0.3, "diagonal_linked": 0.5, "layer": "layer 0"}
    measured = {
        "test": {"exact_match": 61.0, "alignment": aligned},
        "new": {"exact_match": 7.0, "alignment": aligned},
    }
    training = {"updates": 12, "parameters": 3456}
    (line,) = figures({"RNN, hard": {"measured": measured, "training": training}}, 2)
    assert line.ours == "61.0 % / 7.0 %"
    assert line.beside == "alignment error 0.250 / 0.300 (diagonal: 0.500)"
    measured["test"]["alignment"] = None
    (line,) = figures({"RNN, hard": {"measured": measured, "training": training}}, 2)
    assert line.beside == "no attention"
