"""Two zoos: each fault is named, and nothing that is right is accused."""

import logging

import pytest
import torch
from tests.unit.attention.testing.faulty import FAULTY, Heads, Padded, mask_of, qkv, states
from tests.unit.attention.testing.right import HUGGING_FACE, RIGHT
from torch import nn

import regard as rg
from regard.attention.testing import CheckError, Fault, audit
from regard.attention.testing.report import LOOKED_FOR
from regard.errors import SettingError

NAMES = list(LOOKED_FOR)
# A second or more each.
SLOW = {"our recurrent translator", "our transformer", "wide window"} | (
    {name for name in RIGHT if name in HUGGING_FACE} - {"BERT", "GPT-2", "Llama", "ViT"}
)


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)
    logging.getLogger("transformers").setLevel(logging.ERROR)


def names_of(report):
    return [fault.name for fault in report.faults]


def marked(zoo):
    return [pytest.param(n, marks=[pytest.mark.slow] if n in SLOW else []) for n in zoo]


@pytest.mark.parametrize("name", marked(FAULTY))
def test_every_fault_of_the_zoo_is_named(name):
    expected, make = FAULTY[name]
    module, inputs, options = make()
    report = audit(module, *inputs, **options)
    assert expected in names_of(report)
    assert not [note for note in report.notes if "not looked into (" in note]
    fault = next(fault for fault in report.faults if fault.name == expected)
    assert fault.text
    assert fault.cure
    assert isinstance(fault.number, float)


@pytest.mark.parametrize("name", marked(RIGHT))
def test_nothing_of_the_zoo_that_is_right_is_accused(name):
    module, inputs, options = RIGHT[name]()
    report = audit(module, *inputs, **options)
    assert names_of(report) == []
    assert not [note for note in report.notes if "not looked into (" in note]


def test_the_zoos_have_every_fault_and_thirty_of_each():
    assert {expected for expected, _ in FAULTY.values()} == set(NAMES)
    assert len(FAULTY) >= 30
    assert len(RIGHT) >= 30


def test_a_fault_has_the_line_that_shows_it():
    _, make = FAULTY["softmax over heads"]
    module, inputs, options = make()
    fault = audit(module, *inputs, **options).faults[0]
    assert fault.lines[0].startswith("faulty.py:")
    assert fault.lines[0].endswith("return scores.softmax(dim=1)")
    assert fault.number != 1


def test_a_report_raises_in_a_test_only_if_there_are_faults():
    audit(rg.attend, *qkv()).check()
    with pytest.raises(CheckError, match=r"must have no faults; got 1\. rows: The weights"):
        audit(lambda q, k, v: (q @ k.mT / 32**0.5).softmax(1) @ v, *qkv()).check()


def test_a_report_reads_well_at_any_width():
    _, make = FAULTY["padding of queries"]
    module, inputs, options = make()
    report = audit(module, *inputs, **options)
    assert str(report) == report.draw(88)
    for width in (40, 60, 88):
        lines = report.draw(width).splitlines()[1:]
        assert all(
            len(line) <= width for line in lines if ".py:" not in line and "right" not in line
        )
    assert report.as_data()["faults"][0]["name"] == report.faults[0].name


def test_a_module_stays_as_it_was():
    module = nn.MultiheadAttention(32, 4, dropout=0.5, batch_first=True).train()
    before = {name: value.clone() for name, value in module.state_dict().items()}
    inputs = states()
    copied, generator = inputs.clone(), torch.get_rng_state()
    assert names_of(audit(module, inputs, inputs, inputs)) == []
    assert module.training
    assert all(torch.equal(before[name], value) for name, value in module.state_dict().items())
    assert torch.equal(inputs, copied)
    assert torch.equal(torch.get_rng_state(), generator)


def test_modules_of_a_closure_are_put_in_evaluation_and_back():
    module = nn.MultiheadAttention(32, 4, dropout=0.5, batch_first=True).train()
    report = audit(lambda x: module(x, x, x)[0], states())
    assert names_of(report) == []
    assert module.training
    assert module.in_proj_bias.dtype == torch.float32
    assert not module.in_proj_bias.any()


def test_padding_is_taken_by_position_name_or_its_usual_name():
    module, mask = Padded(), mask_of((12, 7))
    for padding in (1, "mask"):
        assert "padding" in audit(module, states(), mask, padding=padding).passed
    assert "padding" not in audit(Heads(), states()).passed
    with pytest.raises(SettingError, match="padding must be the position or the name"):
        audit(module, states(), mask, padding="masks")


def test_keys_that_are_kept_are_not_taken_for_mixed_heads():
    module, inputs, options = FAULTY["kept keys"][1]()
    assert "heads" not in names_of(audit(module, *inputs, **options))


def test_what_fails_or_has_no_tokens_is_an_error():
    with pytest.raises(SettingError, match="module must run on the inputs of one right call"):
        audit(nn.Linear(3, 3), states())
    with pytest.raises(SettingError, match="inputs must have a tensor of states or token ids"):
        audit(lambda x: torch.ones(3), 5)


def test_faults_are_values():
    assert Fault("rows", 0.5, "A row.") == Fault("rows", 0.5, "A row.")
