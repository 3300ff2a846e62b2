from regard.metrics.labels import (
    accuracy,
    as_bio,
    by_label,
    confusion,
    entity_scores,
    is_bio,
    macro_f1,
    marks_entities,
    to_scheme,
)


def test_labels_are_scored_each_and_together():
    predicted, true = ["a", "b", "a"], ["a", "a", "a"]
    assert accuracy(predicted, true) == 200 / 3
    score = by_label(predicted, true)[0]
    assert (score.label, score.precision, score.f1, score.count) == ("a", 100.0, 80.0, 3)
    assert macro_f1(predicted, true) == 40.0
    assert confusion(predicted, true) == {("a", "a"): 2, ("a", "b"): 1}


def test_entities_count_whole_in_every_scheme():
    everything, each = entity_scores([["B-A", "O", "B-B"]], [["B-A", "O", "B-A"]])
    assert (everything.f1, [score.label for score in each]) == (50.0, ["A", "B"])
    assert as_bio(["I-PER", "I-PER", "O", "U-LOC"]) == ("B-PER", "I-PER", "O", "B-LOC")
    known = {"B-PER", "E-PER", "S-LOC", "O"}
    assert to_scheme(["B-PER", "I-PER", "O", "B-LOC"], known) == ("B-PER", "E-PER", "O", "S-LOC")
    assert [marks_entities(tags) for tags in (["O", "U-X"], ["NOUN"], ["O"])] == [
        True,
        False,
        False,
    ]
    assert [is_bio(tags) for tags in (["O", "B-PER"], ["O", "S-PER"])] == [True, False]
