"""Lists of what answers may be made of."""

import numpy as np
import torch

from regard.models.shortlist import Shortlist

SOURCES, TARGETS = 11, 17


def shortlist():
    likely = np.random.default_rng(3).integers(0, TARGETS, (SOURCES, 3)).astype(np.int32)
    return Shortlist(likely, np.array([0, 1, 2, 3]), TARGETS)


def test_a_list_has_what_is_likely_and_what_is_always_there():
    made = shortlist()
    source, lengths = torch.randint(0, SOURCES, (5, 7)), torch.tensor([7, 1, 0, 3, 5])
    mask = made.of(source, lengths)
    for row, ids, length in zip(mask, source.tolist(), lengths.tolist(), strict=True):
        right = {0, 1, 2, 3}.union(*(made.likely[each].tolist() for each in ids[:length]))
        assert set(np.flatnonzero(row).tolist()) == right


def test_what_is_added_is_on_every_list():
    nothing = torch.zeros(2, 0, dtype=torch.long), torch.zeros(2, dtype=torch.long)
    mask = shortlist().adding([13, 3, 16]).of(*nothing)
    assert [row.nonzero()[0].tolist() for row in mask] == [[0, 1, 2, 3, 13, 16]] * 2


def test_it_is_made_again_of_what_is_kept():
    made = shortlist()
    again = Shortlist.of_tensors({k: v.clone() for k, v in made.tensors().items()})
    source = torch.randint(0, SOURCES, (5, 7)), torch.full((5,), 7)
    assert (again.of(*source) == made.of(*source)).all()
    assert (again.target_vocab, again.likely.dtype) == (TARGETS, np.int32)
