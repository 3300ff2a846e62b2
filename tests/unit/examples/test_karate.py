"""The karate club of chapter 9: its graph, and attention over its edges alone."""

import pytest
import torch
from examples.experiments import karate


def test_the_graph_is_zacharys():
    visible = karate.neighbours()
    assert len(karate.EDGES) == len({tuple(sorted(edge)) for edge in karate.EDGES.tolist()}) == 78
    assert visible.equal(visible.T)
    degrees = visible.sum(1) - 1
    assert (degrees[0], degrees[33], degrees[11], degrees.sum()) == (16, 17, 1, 156)
    assert karate.SIDES.bincount().tolist() == [17, 17]
    assert karate.SIDES[karate.KNOWN].tolist() == [0, 1]


def test_a_member_hears_of_friends_of_friends_and_of_no_others():
    torch.manual_seed(0)
    model, visible = karate.Classifier(), karate.neighbours()
    looked, _ = karate.weights(model)
    assert (looked > 0).equal(visible)
    near = (visible.float() @ visible.float()) > 0
    column = model.first.value.weight[:, 16]  # what member 16 begins with
    before = model(visible)
    with torch.no_grad():
        column += 1
    moved = (model(visible) - before).abs().sum(1) > 1e-6
    assert not moved[~near[16]].any()
    assert moved[near[16]].any()


@pytest.mark.slow
def test_two_known_members_are_enough_for_nearly_all(capsys):
    karate.main(runs=3)
    assert "wrong: member 8 in 3 runs" in capsys.readouterr().out
