import pytest
import torch

from regard.errors import SettingError, ShapeError
from regard.text.masking import mask_words, words_of_spans

MASK, VOCAB = 4, 1000


def masked(ids, words, seed=0, **settings):
    generator = torch.Generator().manual_seed(seed)
    defaults = {"mask_id": MASK, "vocab_size": VOCAB, "first_id": 5}
    return mask_words(ids, words, generator=generator, **defaults | settings)


def texts(B=40, N=500):
    ids = torch.randint(5, VOCAB, (B, N), generator=torch.Generator().manual_seed(1))
    return ids, torch.arange(N).expand(B, N)


def test_fifteen_in_a_hundred_are_chosen_and_of_those_eighty_ten_ten():
    ids, words = texts()
    batch = masked(ids, words)
    assert batch.ids[~batch.chosen].equal(ids[~batch.chosen])
    assert masked(ids, words).ids.equal(batch.ids)
    assert not masked(ids, words, 1).ids.equal(batch.ids)
    fraction = batch.chosen.float().mean()
    assert abs(fraction - 0.15) < 0.002
    of_chosen = batch.ids[batch.chosen], ids[batch.chosen]
    is_mask = (of_chosen[0] == MASK).float().mean()
    is_same = (of_chosen[0] == of_chosen[1]).float().mean()
    assert abs(is_mask - 0.8) < 0.02
    assert abs(is_same - 0.1) < 0.02
    others = of_chosen[0][(of_chosen[0] != MASK) & (of_chosen[0] != of_chosen[1])]
    assert others.min() >= 5
    assert others.float().mean() == pytest.approx(VOCAB / 2, rel=0.1)


def test_words_are_predicted_whole():
    ids, _ = texts(30, 60)
    words = (torch.arange(60) // 3).expand(30, 60)
    chosen = masked(ids, words).chosen.view(30, 20, 3)
    assert chosen.all(-1).equal(chosen.any(-1))
    assert chosen.any(-1).sum(1).float().mean() == pytest.approx(3, abs=0.2)


def test_padding_and_separators_are_never_chosen():
    ids, words = texts(20, 30)
    words = words.clone()
    words[:, 0] = words[:, 20:] = -1
    batch = masked(ids, words, rate=0.9)
    assert not batch.chosen[:, 0].any()
    assert not batch.chosen[:, 20:].any()
    assert batch.chosen[:, 1:20].float().mean() > 0.8


def test_short_texts_have_something_to_predict_and_empty_ones_nothing():
    ids = torch.tensor([[7, 0], [0, 0]])
    words = torch.tensor([[0, -1], [-1, -1]])
    assert masked(ids, words).chosen.tolist() == [[True, False], [False, False]]
    assert masked(ids[:, :0], words[:, :0]).ids.shape == (2, 0)


def test_pieces_find_their_words():
    # 我爱|北京 in characters; a piece between words belongs to none.
    assert words_of_spans([(0, 1), (1, 2), (2, 3), (3, 4)], [(0, 2), (2, 4)]) == [0, 0, 1, 1]
    assert words_of_spans([(0, 2), (2, 3), (4, 6)], [(0, 2), (4, 6)]) == [0, -1, 1]
    assert words_of_spans([(0, 1)], []) == [-1]


def test_what_is_wrong_is_named(unchecked_shapes):
    ids, words = texts(2, 3)
    with pytest.raises(SettingError, match="rate must be above 0; got 0"):
        masked(ids, words, rate=0)
    with pytest.raises(SettingError, match=r"kept \+ swapped must be at least 0 and below 1"):
        masked(ids, words, kept=0.6, swapped=0.6)
    with pytest.raises(SettingError, match="vocab_size must be at least 6; got 5"):
        masked(ids, words, vocab_size=5)
    with pytest.raises(ShapeError, match=r"words must have the shape of ids, \(2, 3\); got"):
        masked(ids, words[:, :2])
