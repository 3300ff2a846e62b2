import dataclasses
import typing

import pytest

from regard.checks import (
    check_choice,
    check_count,
    check_divides,
    check_finite,
    check_flag,
    check_positive,
    choose,
    counted,
    nearest,
    plural,
    singular,
)
from regard.config import as_saved, assign, newer
from regard.errors import SettingError, printable
from regard.fields import Count, Share, checked, checked_table


class Labels(typing.TypedDict):
    labels: list[str]


@pytest.mark.parametrize(
    ("check", "message"),
    [
        (lambda: check_finite("minutes", float("inf")), "minutes must be a finite number; got inf"),
        (lambda: check_finite("minutes", "ab"), "minutes must be a number; got 'ab'"),
        (lambda: check_finite("minutes", True), "minutes must be a number; got True"),
        (lambda: check_positive("scale", float("inf")), "scale must be a finite number; got inf"),
        (lambda: check_count("heads", 2.5), r"heads must be a whole number; got 2\.5"),
        (
            lambda: check_count("heads", 10**5000),
            r"heads must be a number below 2 \*\* 63; got a nu",
        ),
        (lambda: check_count("heads", 0), "heads must be at least 1; got 0"),
        (lambda: check_flag("is_causal", "no"), "is_causal must be True or False; got 'no'"),
        (lambda: check_positive("size", 0), r"size must be above 0; got 0\."),
        (lambda: check_divides("heads", 7, "dim", 8), "dim must be divisible by heads; got dim=8"),
        (lambda: choose("score", "dott", {"dot": 1, "a": 2}), "one of a, dot; got 'dott'. Did you"),
        (lambda: check_choice("norm", "Pre", typing.Literal["pre"]), "one of pre; got 'Pre'. Did"),
        (lambda: checked("dropout", 1, Share), "dropout must be at least 0 and below 1; got 1.0"),
        (
            lambda: checked_table("a.json", {"labels": "x"}, Labels),
            "labels of a.json must be a list",
        ),
        (lambda: checked_table("a.json", {}, Labels), "a.json must hold labels; it does not"),
    ],
)
def test_what_is_out_of_range_is_named(check, message):
    with pytest.raises(SettingError, match=message):
        check()


@pytest.mark.parametrize(
    ("one", "many"),
    [
        *(("class", "classes"), ("batch", "batches"), ("gloss", "glosses"), ("box", "boxes")),
        *(("reply", "replies"), ("day", "days"), ("phrase", "phrases"), ("size", "sizes")),
        *(("cache", "caches"), ("hypothesis", "hypotheses"), ("index", "indices")),
        *(("masked token", "masked tokens"), ("standard deviation", "standard deviations")),
        *(("person", "people"), ("wish", "wishes"), ("series", "series"), ("quiz", "quizzes")),
    ],
)
def test_nouns_have_one_singular_and_one_plural(one, many):
    assert (plural(one), singular(many)) == (many, one)
    assert [counted(n, many) for n in (1, 2, 1.0, 0)] == [
        *(f"1 {one}", f"2 {many}", f"1 {one}", f"0 {many}")
    ]


def test_values_and_settings_are_converted():
    @dataclasses.dataclass
    class Model:
        size: int = 8
        order: str = newer("last", before="first")

    assert (Model().order, as_saved(Model, {"size": 4})) == ("last", {"order": "first", "size": 4})
    Model.renamed = {"length": "size"}
    assert as_saved(Model, {"length": 4})["size"] == 4
    assert checked("widths", [1, 3], tuple[Count, ...]) == (1, 3)
    assert nearest("BPE", ["bpe", "unigram"]) == "bpe"
    settings = {"model.num_heads": 4, "model.type": "rnn"}
    table = {"model": {"num_heads": 4, "type": "rnn"}}
    assert assign({"model": {"num_heads": 8}}, settings) == table
    assert printable("\x1b[31m \u202etxt.exe") == "\\u001b[31m \\u202etxt.exe"


@pytest.mark.parametrize(("count", "text"), [(0, "0 rows"), (1, "1 row"), (1234, "1,234 rows")])
def test_one_of_a_unit_is_in_the_singular(count, text):
    assert counted(count, "rows") == text
