"""Word-level attention, what points to what, and orders of reasons, on numbers made by hand."""

import gzip

import pytest
import torch
from benchmarks import dependencies, heads, reasons


def test_attention_to_a_word_is_the_sum_over_its_pieces_and_from_it_their_mean():
    rows = torch.tensor([[[0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1], *([[0.25] * 4] * 2)]])
    words = dependencies.by_word(rows, [0, 0, 1, None])
    assert torch.allclose(words, torch.tensor([[[0.5, 0.25], [0.5, 0.25]]]))


def test_a_head_points_to_another_word_by_what_it_attends_to_or_by_what_attends_to_it():
    weights = torch.tensor([[[0.9, 0.1, 0.0], [0.2, 0.1, 0.7], [0.3, 0.6, 0.1]]])
    to, back = dependencies.pointed_to(weights)
    assert to.tolist() == [1, 2, 1]
    assert back.tolist() == [2, 2, 1]


def test_predictors_are_numbered_by_direction_layer_and_head():
    assert dependencies.predictor(0, 2, 3) == {"layer": 0, "head": 0, "direction": "to"}
    assert dependencies.predictor(10, 2, 3) == {"layer": 1, "head": 1, "direction": "from"}


def test_a_treebank_has_words_heads_and_relations(tmp_path):
    lines = ["# text = He's in", "1-2\tHe's" + "\t_" * 8]
    for number, (word, head, relation) in enumerate(
        [("He", 3, "nsubj"), ("'s", 3, "cop"), ("in", 0, "root")], 1
    ):
        lines.append("\t".join([str(number), word, *"____", str(head), relation, "_", "_"]))
    path = tmp_path / "test.conllu.gz"
    path.write_bytes(gzip.compress("\n".join([*lines, "", ""]).encode()))
    [sentence] = dependencies.read_treebank(path)
    assert sentence.words == ("He", "'s", "in")
    assert sentence.heads == (2, 2, -1)
    assert sentence.relations == ("nsubj", "cop", "root")


def test_the_area_is_the_share_of_pairs_in_the_right_order():
    scores = torch.tensor([[0.1, 0.2, 0.3, 0.4], [0.4, 0.1, 0.3, 0.2]])
    labels = torch.tensor([False, False, True, True])
    assert heads.areas_of(scores, labels).tolist() == [1.0, 0.5]


def test_the_sentences_come_in_pairs_of_a_near_and_a_far_noun():
    lines = [line.split("\t") for line in heads.PRONOUNS.read_text("utf-8").splitlines()]
    firsts = [text.index("[") < text.index("(") for _, text in lines]
    assert firsts == [True, False] * (len(lines) // 2)
    assert all(one[0] == other[0] for one, other in zip(lines[::2], lines[1::2], strict=True))
    assert all(text.count(" it ") == 1 for _, text in lines)


def test_a_mean_leaves_out_what_is_no_number():
    found = reasons.mean_and_error([1.0, 3.0, float("nan")])
    assert found == {"mean": 2.0, "error": pytest.approx(1.0)}
