"""A shortlist is learned from a run's own pairs, kept with it, and used where that is asked."""

import random

import pytest
import torch

from regard.errors import DataError, RunError, SettingError
from regard.inference import Predictor
from regard.models import Seq2Seq
from regard.models.shortlist import Shortlist
from regard.runs import DamageError, Run
from regard.tasks import recipe_from_table
from regard.training.session import fit as train
from regard.training.shortlisting import make_shortlist

pytestmark = pytest.mark.usefixtures("as_users_have_it")

DIGITS, LETTERS = "0123456789", "abcdefghij"
SMALL = {"type": "rnn_seq2seq", "embed_dim": 8, "hidden_dim": 8, "attention_dim": 8}
FEW = {"updates": 2, "batch_tokens": 120, "warmup": 1, "validate_every": 2, "validation_pairs": 2}


def spelled(digits):
    """Each digit as a letter."""
    return "".join(LETTERS[int(digit)] for digit in digits)


def trained(folder, **model):
    """A run that has hardly learned to write letters for digits."""
    dice = random.Random(1)
    drawn = ("".join(dice.choices(DIGITS, k=dice.randint(2, 5))) for _ in range(500))
    rows = list(dict.fromkeys(drawn))[:300]
    lines = [f"{row}\t{spelled(row)}\n" for row in rows]
    (folder / "train.tsv").write_text("".join(lines[:280]), encoding="utf-8")
    (folder / "valid.tsv").write_text("".join(lines[280:]), encoding="utf-8")
    table = {
        "data": {"train": "train.tsv", "valid": "valid.tsv"},
        "tokenizer": {"type": "characters"},
        "model": SMALL | model,
        "training": FEW,
        "decoding": {"min_length": 3, "max_ratio": 0.5, "beam_size": 2},
    }
    train(recipe_from_table(table, folder=folder), folder / "run")
    return folder / "run"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return trained(tmp_path_factory.mktemp("home"))


def test_it_has_what_translates_what(run):
    report = make_shortlist(run, per_piece=1, frequent=0)
    target = Predictor.load(run).tokenizer.target
    made = Shortlist.of_tensors(Run.open(run).load_shortlist())
    source = torch.tensor([target.encode("37")])
    (listed,) = made.of(source, torch.tensor([2]))
    # The digits are target pieces as well, since the vocabulary is shared.
    assert set(listed.nonzero()[0]) == {0, 1, 2, 3, *target.encode("37"), *target.encode("dh")}
    assert (report.pairs, report.found, report.whole) == (20, 1.0, 1.0)
    assert "of 20 right answers 100.00 % of the pieces are on their lists" in str(report)


def test_answers_are_made_of_it_where_that_is_asked(run):
    make_shortlist(run, per_piece=1, frequent=0)
    without, with_it = Predictor.load(run), Predictor.load(run, shortlist=True)
    free, bound = (each.translate(["37"])[0][0] for each in (without, with_it))
    target = with_it.tokenizer.target
    assert set(bound.tokens) <= {*target.encode("37dh")}
    assert not set(free.tokens) <= {*target.encode("37dh")}, "else the list did nothing"
    asked = with_it.decoding.changed(prefix="a", require=("b",), beam_size=5)
    assert with_it.translate(["37"], decoding=asked)[0][0].text[0] == "a"


def test_a_bundle_has_it(run, tmp_path):
    make_shortlist(run)
    Run.open(run).pack(tmp_path / "a.regard", readme="")
    bundled = Predictor.load(tmp_path / "a.regard", shortlist=True).translate(["3712"])
    assert bundled == Predictor.load(run, shortlist=True).translate(["3712"])


def test_what_is_missing_or_damaged_is_told(tmp_path):
    made = trained(tmp_path)
    with pytest.raises(RunError, match=r"must have a shortlist; it has none.*regard shortlist"):
        Predictor.load(made, shortlist=True)
    make_shortlist(made)
    file = made / "shortlist.safetensors"
    file.write_bytes(file.read_bytes()[:-1] + b"x")
    with pytest.raises(DamageError, match="Make it anew: regard shortlist RUN"):
        Predictor.load(made, shortlist=True)
    with pytest.raises(DamageError, match="Make it anew"):
        Run.open(made).pack(tmp_path / "a.regard", readme="")
    make_shortlist(made)
    assert isinstance(Predictor.load(made, shortlist=True).model, Seq2Seq)
    (tmp_path / "train.tsv").unlink()
    with pytest.raises(DataError, match=r"train\.tsv"):
        make_shortlist(made)


@pytest.mark.parametrize("name", ["per_piece", "frequent"])
def test_numbers_out_of_range_are_refused(name, run):
    with pytest.raises(SettingError, match=f"{name} must be at least .; got -1"):
        make_shortlist(run, **{name: -1})


def test_a_model_that_cannot_use_one_is_refused(tmp_path):
    made = trained(tmp_path, copy=True)
    with pytest.raises(SettingError, match="it copies words"):
        make_shortlist(made)
    assert not (made / "shortlist.safetensors").exists()
