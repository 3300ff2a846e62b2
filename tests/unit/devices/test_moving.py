from collections import namedtuple
from dataclasses import dataclass

import pytest
import torch

from regard.devices import moved
from regard.devices.moving import Ahead

META = torch.device("meta")


@dataclass(frozen=True, slots=True)
class Inner:
    ids: torch.Tensor
    text: str = "a"


@dataclass(frozen=True, slots=True)
class Outer:
    inner: Inner
    made_of: list[Inner]
    none: torch.Tensor | None = None


Pair = namedtuple("Pair", "one two")


def test_tensors_of_a_batch_are_sent_and_what_it_was_made_of_is_not():
    inner = Inner(torch.zeros(2))
    batch = moved(Outer(inner, [inner]), META)
    assert batch.inner.ids.device == META
    assert batch.inner.text == "a"
    assert batch.made_of[0] is inner
    assert batch.none is None
    plain = Inner("no tensor")
    assert moved(plain, META) is plain
    pair = moved(Pair({"x": torch.zeros(1)}, 3), META)
    assert isinstance(pair, Pair)
    assert (pair.one["x"].device, pair.two) == (META, 3)


def drawn(drawn_numbers):
    for number in range(3):
        drawn_numbers.append(number)
        yield number


def test_a_batch_is_made_while_there_is_work():
    numbers = []
    batches = Ahead(drawn(numbers), META)
    assert next(batches) == 0
    assert numbers == [0]
    batches.reach()
    batches.reach()
    assert numbers == [0, 1]
    assert list(batches) == [1, 2]
    batches.reach()  # there is no other
    with pytest.raises(StopIteration):
        next(batches)


def test_a_cpu_makes_batches_on_demand():
    numbers = []
    batches = Ahead(drawn(numbers), torch.device("cpu"))
    batches.reach()
    assert numbers == []
    assert list(batches) == [0, 1, 2]
