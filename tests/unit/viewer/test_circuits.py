"""Circuits and neurons as a document has them."""

from dataclasses import replace

import pytest

from regard.errors import DataError, SettingError
from regard.viewer import Document, Example, HeadCircuit, StrongNeuron

WORDS = (("me", 0.5), ("I", 0.25))
CIRCUIT = HeadCircuit(
    kind="decoder",
    layer=1,
    head=0,
    queries=("a", "b"),
    keys=("c",),
    scores=((1.0,), (-2.0,)),
    key_scores=(0.5,),
    liked=(WORDS, WORDS),
    promoted=(WORDS,),
    suppressed=(WORDS,),
    own=((0.25, 3),),
    copying=-0.5,
)
NEURON = StrongNeuron(
    kind="encoder", layer=0, position=2, token="a", number=7, activation=-1.5, size=2.0
)


def test_a_document_keeps_circuits_and_neurons():
    sides = {"source": "", "output": "", "source_tokens": (), "output_tokens": ()}
    example = Example(**sides, circuits=(CIRCUIT,), feed_forward=(NEURON,))
    document = Document(title="", task="", model="", examples=(example,))
    assert Document.from_json(document.to_json()) == document


def test_wrong_numbers_are_named():
    with pytest.raises(DataError, match="scores must be 2 × 1 numbers"):
        replace(CIRCUIT, scores=((1.0,),))
    with pytest.raises(DataError, match="scores must be 2 × 1 numbers"):
        replace(CIRCUIT, scores=((1.0, 2.0), (1.0, 2.0)))
    with pytest.raises(DataError, match="liked must be one for each of 2; got 1"):
        replace(CIRCUIT, liked=(WORDS,))
    with pytest.raises(DataError, match="own must be one for each of 1; got 2"):
        replace(CIRCUIT, own=((0.5, 1), (0.5, 1)))
    with pytest.raises(DataError, match="values must be finite; got nan"):
        replace(CIRCUIT, promoted=((("me", float("nan")),),))
    with pytest.raises(SettingError, match="kind must be one of"):
        replace(NEURON, kind="other")
    with pytest.raises(SettingError, match="number must be at least 0; got -1"):
        replace(NEURON, number=-1)
    with pytest.raises(DataError, match="values must be finite; got inf"):
        replace(NEURON, size=float("inf"))
