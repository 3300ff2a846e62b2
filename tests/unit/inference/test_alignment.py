from dataclasses import replace

import pytest
import torch

from regard.errors import DataError, SettingError
from regard.inference import Predictor, alignment
from regard.inference.alignment import alignment_errors, word_links
from regard.inference.look import cross_maps
from regard.tasks import Recipe
from regard.tasks.sequences.translation import TranslationTask
from regard.text import TokenizerConfig, train_pair_tokenizer
from regard.text.phrasebook import Phrase


def maps_of(predictor, sources, targets, **options):
    return cross_maps(
        predictor.model, predictor.sequence_task, sources, targets, batch_tokens=99, **options
    )


@pytest.mark.parametrize("source_end", [True, False])
def test_maps_of_a_batch_are_those_of_looking_at_each_alone(predictor, phrases, source_end):
    data = replace(predictor.recipe.data, source_end=source_end)
    task = TranslationTask(replace(predictor.recipe, data=data), predictor.tokenizer)
    predictor = Predictor(predictor.model, task)
    sources = [predictor.tokenizer.source.encode(phrase.source) for phrase in phrases]
    targets = [predictor.tokenizer.target.encode(phrase.target) for phrase in phrases]
    maps = dict(maps_of(predictor, sources, targets))
    assert sorted(maps) == [0, 1]
    for index, phrase in enumerate(phrases):
        single = predictor.attention(phrase.source, phrase.target).cross()
        torch.testing.assert_close(maps[index], single)
        assert maps[index].shape[1] == len(sources[index]) + source_end
    assert len(word_links(predictor, phrases)) == 2


def test_one_layer_can_be_selected(predictor, phrases):
    ids = [[predictor.tokenizer.source.encode(phrases[0].source)], [[5, 6]]]
    (_, first), *_ = maps_of(predictor, *ids, layers=[0])
    torch.testing.assert_close(first, predictor.attention(phrases[0].source, [5, 6]).cross(0))
    with pytest.raises(SettingError, match=r"this one does not in layers 7\."):
        next(maps_of(predictor, *ids, layers=[7]))


def attends(monkeypatch, rows):
    """Make every model look as ``rows`` say, by the place of the pair."""

    def maps(*_, **__):
        return ((index, torch.tensor(weights)) for index, weights in rows.items())

    monkeypatch.setattr(alignment, "cross_maps", maps)


@pytest.fixture
def words():
    """A translator of the words of the pair below, of which only the tokenizer is used."""
    settings = TokenizerConfig(type="words", shared=False)
    tokenizer = train_pair_tokenizer(["a b"], ["x the y"], settings)
    return Predictor(torch.nn.Identity(), TranslationTask(Recipe(), tokenizer))


@pytest.fixture
def pair():
    links = frozenset({(1, 0), (0, 2)})
    words = {"source_words": ((0, 1), (2, 3)), "target_words": ((0, 1), (2, 5), (6, 7))}
    return Phrase(
        "a b", "x the y", **words, sure=links, possible=links, constructions=(), references=()
    )


def test_errors_count_words_with_links_and_all_words(monkeypatch, words, pair):
    end = [0.0, 0.0, 1.0]
    rows = [[0.1, 0.8, 0.1], [0.5, 0.3, 0.2], [0.9, 0.1, 0.0], end]
    attends(monkeypatch, {0: rows})
    assert word_links(words, [pair]) == [[(1, 0), (0, 1), (0, 2)]]
    errors = alignment_errors(words, [pair])
    # The link of "the" is the only wrong one: 1 - (2 + 2) / (3 + 2).
    assert (errors.linked, errors.overall) == (0.0, pytest.approx(0.2))
    # The diagonal links x-a, the-b and y-b.
    assert (errors.diagonal_linked, errors.diagonal_overall) == (1.0, 1.0)
    assert "0.000 over output words that have a link (diagonal: 1.000), 0.200 over all" in str(
        errors
    )
    assert errors.to_dict()["pairs"] == 1


def test_a_word_that_looks_at_the_end_has_no_link(monkeypatch, words, pair):
    end = [0.0, 0.0, 1.0]
    attends(monkeypatch, {0: [[0.1, 0.8, 0.1], end, [0.9, 0.1, 0.0], end]})
    assert word_links(words, [pair]) == [[(1, 0), (0, 2)]]
    assert alignment_errors(words, [pair]).overall == 0.0


def test_there_must_be_pairs(predictor):
    with pytest.raises(DataError, match="pairs must hold sentences with gold links; got none"):
        alignment_errors(predictor, [])
