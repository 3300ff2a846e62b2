"""How likely given outputs are."""

import pytest
from tests.unit.inference.conftest import make_predictor

from regard.errors import DataError
from regard.inference.lines import answers, scoring
from regard.inference.sequences import ScoredPair
from regard.tasks import DecodingConfig
from regard.text import Pair, decode_lines

LINES = "我爱中国。\tI love China.\n\n他爱你\tHe does love you.\n".encode()


def scored(predictor, text=LINES, *, skip_bad_lines=False, **options):
    lines = list(decode_lines(text.splitlines(keepends=True), "in"))
    groups = answers([lines], scoring(predictor.use, **options), skip_bad_lines=skip_bad_lines)
    return [score for group in groups for score in group]


def test_scores_are_those_of_the_search(predictor):
    texts = ["我爱中国。", "他爱你", "我"]
    options = DecodingConfig(method="sample", n_best=30)
    translations = predictor.translate(texts, decoding=options)
    written = [
        (each.source, scored) for each in translations for scored in each if scored.is_finished
    ]
    expected = [scored for _, scored in written]
    encode, use = predictor.tokenizer.target.encode, predictor.use
    requests = [use.scored(Pair(source, one.text, (), "")) for source, one in written]
    scores = use.score(requests)
    # A text may be cut into other tokens than were written.
    both = zip(scores, expected, strict=True)
    same = [(a, b) for a, b in both if tuple(encode(b.text)) == b.tokens]
    assert len(same) > 4
    for scored, hypothesis in same:
        assert scored.log_prob == pytest.approx(hypothesis.log_prob, abs=1e-3)
        assert scored.score == pytest.approx(hypothesis.score, abs=1e-3)
    assert use.score([]) == []


def test_a_line_in_is_a_line_out(predictor):
    first, empty, last = scored(predictor)
    assert (empty.text(), empty.to_dict()) == ("", {"source": "", "target": ""})
    score, log_prob, target = first.text().split("\t")
    assert target == "I love China."
    assert float(score) > float(log_prob)  # the length penalty divides
    members = last.to_dict()
    assert members["tokens"] == ["He", "does", "love", "you", ".", "⟨end⟩"]
    assert len(members["log_probs"]) == 6
    assert sum(members["log_probs"]) == pytest.approx(members["log_prob"], abs=1e-4)
    (json,) = scored(predictor, '{"source": "我", "target": "I"}'.encode(), ending=".jsonl")
    assert (json.answer.source, json.answer.target) == ("我", "I")
    unpenalised = scored(predictor, decoding=DecodingConfig(length_penalty=0.0))[0]
    assert unpenalised.answer.score == pytest.approx(float(log_prob), abs=1e-3)


@pytest.mark.parametrize(
    ("line", "ending", "message"),
    [
        ("我爱中国。", ".tsv", "in:1: expected at least 2 columns, found 1. To score an outp"),
        ("\tI", "", "in:1: source must hold text; got an empty one"),
        ('{"source": "我"}', ".jsonl", "in:1: expected a JSON object with texts at 'source' and"),
        ("{", ".jsonl", "in:1: expected a JSON object with texts"),
    ],
)
def test_lines_that_cannot_be_scored(predictor, line, ending, message):
    with pytest.raises(DataError, match=message):
        scored(predictor, line.encode(), ending=ending)
    (skipped,) = scored(predictor, line.encode(), ending=ending, skip_bad_lines=True)
    assert (skipped.text(), skipped.answer) == ("", ScoredPair())
    assert "problem" in skipped.to_dict()
    with pytest.raises(DataError, match="in:1: not UTF-8"):
        scored(predictor, b"caf\xe9\ta")


def test_positions_that_a_model_has_not():
    predictor = make_predictor("transformer", positions="learned", max_length=9)
    assert len(scored(predictor, ("我" * 8 + "\tI").encode())) == 1
    with pytest.raises(DataError, match="in:1: source must be at most 8 tokens long; got 9"):
        scored(predictor, ("我" * 9 + "\tI").encode())
    with pytest.raises(DataError, match="in:1: target must be at most 8 tokens long; got 9"):
        scored(predictor, ("我\t" + "I " * 9).encode())
