from xml.etree import ElementTree

import pytest
from benchmarks.attention_mechanisms import MECHANISMS, figures, recipe_table
from benchmarks.weight_maps import WeightMap, draw

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


def test_all_mechanisms_differ():
    models = [
        tuple(sorted(map(str, recipe_table(name, 1)["model"].items()))) for name in MECHANISMS
    ]
    assert len(set(models)) == len(MECHANISMS)


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


def test_maps_have_a_cell_for_each_weight_and_stand_in_rows_of_five():
    one = WeightMap(
        title="t", across=("我", "爱"), down=("I", "<"), rows=((1.5, 0.0), (0.25, 0.75))
    )
    root = ElementTree.fromstring(draw([one] * 6))
    cells = [e for e in root.iter() if e.get("class") == "cell"]
    assert [c.get("fill-opacity") for c in cells[:4]] == ["1", "0", "0.25", "0.75"]
    assert len(cells) == 24
    panels = [e.get("transform") for e in root.iter() if e.get("transform")]
    assert panels[0] == "translate(0 0)"
    assert panels[5].startswith("translate(0 ")
    assert panels[5] != panels[0]
