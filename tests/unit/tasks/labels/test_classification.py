"""Texts to labels: words read from their parts, words dropped, answers joined."""

from dataclasses import replace

import pytest
import torch

from regard.errors import RunError, SettingError
from regard.inference import Predictor
from regard.inference.evaluation.comparison import Ensemble
from regard.tasks import TASKS, recipe_from_table
from regard.tasks.labels.classification import LabelledText
from regard.tasks.labels.word_parts import Speller
from regard.text import PAD_ID, UNK_ID, TokenizerConfig

TEXTS = ["a watchable film", "an unwatchable bore", "so watchable", "a bore"]


def job(texts=TEXTS, *, kind="words", data=None, model=None, head=None):
    recipe = recipe_from_table(
        {
            "task": "classification",
            "data": data or {},
            "tokenizer": {"type": kind},
            "model": {"type": "bag", "embed_dim": 6, **(model or {})},
            "head": head or {},
        }
    )
    examples = [
        LabelledText(text, "no" if "bore" in text else "yes", None, f"a.tsv:{line}")
        for line, text in enumerate(texts, 1)
    ]
    return TASKS["classification"].task.learn(recipe, examples), examples


def test_the_penalty_of_the_head_is_in_the_loss_that_is_trained_on():
    def losses(penalty, train):
        torch.manual_seed(0)
        head = {"pooling": "structured", "num_hops": 3, "penalty": penalty, "dropout": 0.0}
        learned, examples = job(head=head, model={"dropout": 0.0})
        batch = learned.collate(learned.encode(examples))
        model = learned.build_model().train(train)
        loss, count = learned.loss(model, batch)
        assert count == len(TEXTS)
        states = model.reader(batch["ids"], batch["lengths"])
        return loss, model.pooling.penalty(states, batch["lengths"]).sum()

    (with_it, penalty), (without, _) = losses(2.0, True), losses(0.0, True)
    torch.testing.assert_close(with_it - without, 2 * penalty)
    torch.testing.assert_close(losses(2.0, False)[0], losses(0.0, False)[0])  # when measured


def spelled(kind="words", parts="ngrams", texts=TEXTS):
    return Speller.learn(texts, TokenizerConfig(type=kind), parts)


def test_a_word_that_training_did_not_have_shares_parts_with_those_it_had():
    speller = spelled()
    known, unknown = speller.encode("watchable watchably").parts
    word = speller.encode("watchable watchably").words
    assert word[0] > UNK_ID
    assert word[1] == UNK_ID
    shared = set(known.tolist()) & set(unknown.tolist()) - {PAD_ID, UNK_ID}
    names = {speller.grams.units[number - 2] for number in shared}
    assert {"\x02wa", "tchab", "hab"} <= names
    assert "ble" not in names


def test_chinese_characters_are_read_with_their_neighbours():
    speller = spelled("characters", "neighbours", ["很好吃", "不好吃 了"])
    assert speller.grams.units == ["好 吃"]
    encoded = speller.encode("好吃 好")
    assert encoded.words == [speller.words.ids(unit)[0] for unit in ("好", "吃", "好")]
    assert encoded.parts.tolist() == [[1, 2], [2, 1], [1, 1]]


def test_phrases_end_at_each_word_and_are_parts_where_enough_texts_have_them():
    texts = ["很好吃 很好吃", "不好吃", "不好吃"]
    speller = spelled("characters", "phrases", texts)
    assert speller.encode("不好吃").parts.shape == (3, 3)
    assert set(speller.grams.units) == {"不", "好", "吃", "不 好", "好 吃", "不 好 吃"}
    twice = Speller.learn(texts, TokenizerConfig(type="characters"), "phrases", parts_min_count=3)
    assert set(twice.grams.units) == {"好", "吃", "好 吃"}


def test_words_are_dropped_in_training_alone_and_their_parts_stay():
    task, examples = job(
        [" ".join(TEXTS[::2])] * 50 + ["a bore"], data={"drop_words": 0.3}, model={"parts": "bag"}
    )
    encoded = task.encode(examples)
    undropped = task.collate(encoded)
    assert not (undropped["ids"] == UNK_ID).any()
    dropped = task.collate(encoded, generator=torch.Generator().manual_seed(1))
    is_dropped = (dropped["ids"] == UNK_ID) & (undropped["ids"] != PAD_ID)
    assert 0.25 < is_dropped.sum() / (undropped["ids"] != PAD_ID).sum() < 0.35
    assert dropped["ids"][~is_dropped].equal(undropped["ids"][~is_dropped])
    assert dropped["parts"].equal(undropped["parts"])
    task.data = replace(task.data, drop_words=0.0, drop_parts=0.3)
    parts = task.collate(encoded, generator=torch.Generator().manual_seed(1))["parts"]
    can_drop, is_lost = (
        undropped["parts"] > UNK_ID,
        (parts == UNK_ID) & (undropped["parts"] > UNK_ID),
    )
    assert 0.25 < is_lost.sum() / can_drop.sum() < 0.35
    task.data = replace(task.data, drop_words=0.3, drop_parts=0.0)
    repeated = task.collate(encoded, generator=torch.Generator().manual_seed(1))
    assert repeated["ids"].equal(dropped["ids"])


@pytest.mark.parametrize(("kind", "works"), [("words", True), ("characters", True), ("bpe", False)])
def test_words_are_read_from_parts_where_text_is_cut_into_words(kind, works):
    if works:
        job(kind=kind, model={"parts": "bag"})
        return
    with pytest.raises(
        SettingError,
        match=r"tokenizer\.type must be characters or words where model\.parts is set; got 'bpe'",
    ):
        job(kind=kind, model={"parts": "bag"})


@pytest.mark.parametrize("parts", ["bag", "none"])
def test_scores_of_ngrams_are_added_and_their_keys_are_those_of_training(parts):
    head, model = {"ngram_scores": True, "dropout": 0.0}, {"parts": parts, "dropout": 0.0}
    learned, examples = job(TEXTS + TEXTS, data={"parts": "phrases"}, model=model, head=head)
    built, samples = learned.build_model().eval(), learned.encode(examples)
    learned.initialise(built, samples)
    assert built.ngrams.keys.ne(0).any()
    torch.nn.init.normal_(built.ngrams.values)
    batch = learned.collate(samples)
    logits, _ = learned.logits(built, batch)
    ngrams, built.ngrams = built.ngrams, None
    without, _ = learned.logits(built, batch)
    torch.testing.assert_close(logits, without + ngrams(batch["parts"]))
    again = learned.build_model()
    built.ngrams = ngrams
    again.load_state_dict(built.state_dict())
    torch.testing.assert_close(learned.logits(again.eval(), batch)[0], logits)


def test_each_aspect_has_scores_of_ngrams_besides():
    task, _ = job(head={"ngram_scores": True, "pooling": "aspect"})
    model = task.build_model()
    assert len(model.ngrams.keys) == (len(task.aspects) + 2) * len(task.tokenizer.grams)
    assert model.reader.parts is None


def test_an_ensemble_answers_with_the_mean_of_its_members():
    task, examples = job()
    members = [Predictor(task.build_model(), task) for _ in range(3)]
    ensemble = Ensemble(members)
    every = [member.answers(examples) for member in members]
    counted = []
    for index, answer in enumerate(ensemble.answers(examples, progress=counted.append)):
        expected = sum(answers[index].probabilities["yes"] for answers in every) / 3
        assert answer.probabilities["yes"] == pytest.approx(expected)
    assert sum(counted) == len(examples)
    halves = Ensemble([Ensemble(members[:2]), members[2]])  # two that count as one
    for index, answer in enumerate(halves.answers(examples)):
        one, two, three = (answers[index].probabilities["yes"] for answers in every)
        assert answer.probabilities["yes"] == pytest.approx((one + two) / 4 + three / 2)


def test_runs_that_make_no_ensemble_are_named():
    task, _ = job()
    other_task, _ = job()
    other_task.labels = ["bad", "good"]
    with pytest.raises(RunError, match=r"runs with the same labels; got no, yes and bad, good\."):
        Ensemble([Predictor(each.build_model(), each) for each in (task, other_task)])
    with pytest.raises(RunError, match="must have runs; got none"):
        Ensemble([])
    pictures = TASKS["image_classification"].task
    known = {
        "labels": task.labels,
        "shape": (2, 2, 1),
        "mean": 0.0,
        "deviation": 1.0,
        "darkest": 0.0,
    }
    drawn = pictures(recipe_from_table({"task": "image_classification", "data": {}}), **known)
    with pytest.raises(RunError, match="one task; got classification and image_classification"):
        Ensemble([Predictor(task.build_model(), each) for each in (task, drawn)])
    tagger = TASKS["tagging"].task
    recipe = recipe_from_table({"task": "tagging", "data": {}})
    words = tagger(recipe, words=["a"], parts=["a"], tags=["O"], rare=[])
    with pytest.raises(RunError, match="runs that are classifiers; got one of tagging"):
        Ensemble([Predictor(task.build_model(), words)])
