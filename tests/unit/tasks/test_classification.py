"""Texts to labels: words read from their parts, words dropped, answers joined."""

from dataclasses import replace

import pytest
import torch

from regard.errors import RunError, SettingError
from regard.inference import Predictor
from regard.inference.ensemble import Ensemble
from regard.tasks import TASKS, recipe_from_table
from regard.tasks.classification import LabelledText
from regard.tasks.word_parts import Speller
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
    found = speller.encode("好吃 好")
    assert found.words == [speller.words.ids(unit)[0] for unit in ("好", "吃", "好")]
    assert found.parts.tolist() == [[1, 2], [2, 1], [1, 1]]


def test_words_are_dropped_in_training_alone_and_their_parts_stay():
    made, examples = job(
        [" ".join(TEXTS[::2])] * 50 + ["a bore"], data={"drop_words": 0.3}, model={"parts": "bag"}
    )
    encoded = made.encode(examples)
    whole = made.collate(encoded)
    assert not (whole["ids"] == UNK_ID).any()
    dropped = made.collate(encoded, generator=torch.Generator().manual_seed(1))
    gone = (dropped["ids"] == UNK_ID) & (whole["ids"] != PAD_ID)
    assert 0.25 < gone.sum() / (whole["ids"] != PAD_ID).sum() < 0.35
    assert dropped["ids"][~gone].equal(whole["ids"][~gone])
    assert dropped["parts"].equal(whole["parts"])
    again = made.collate(encoded, generator=torch.Generator().manual_seed(1))
    assert again["ids"].equal(dropped["ids"])


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


def test_an_ensemble_answers_with_the_mean_of_its_members():
    made, examples = job()
    members = [Predictor(made.build_model(), made) for _ in range(3)]
    ensemble = Ensemble(members)
    every = [member.answers(examples) for member in members]
    counted = []
    for place, answer in enumerate(ensemble.answers(examples, progress=counted.append)):
        wanted = sum(answers[place].probabilities["yes"] for answers in every) / 3
        assert answer.probabilities["yes"] == pytest.approx(wanted)
    assert sum(counted) == len(examples)
    assert ensemble.predict(["a bore"]) == ensemble.answers([replace(examples[3], label=None)])
    halves = Ensemble([Ensemble(members[:2]), members[2]])  # two that count as one
    for place, answer in enumerate(halves.answers(examples)):
        one, two, three = (answers[place].probabilities["yes"] for answers in every)
        assert answer.probabilities["yes"] == pytest.approx((one + two) / 4 + three / 2)


def test_runs_that_cannot_answer_together_are_named():
    made, _ = job()
    other, _ = job()
    other.labels = ["bad", "good"]
    with pytest.raises(RunError, match=r"runs with the same labels; got no, yes and bad, good\."):
        Ensemble([Predictor(each.build_model(), each) for each in (made, other)])
    with pytest.raises(RunError, match="must have runs; got none"):
        Ensemble([])
    tagger = TASKS["tagging"].task
    recipe = recipe_from_table({"task": "tagging", "data": {}})
    words = tagger(recipe, words=["a"], parts=["a"], tags=["O"], rare=[])
    with pytest.raises(RunError, match="runs that are classifiers; got one of tagging"):
        Ensemble([Predictor(made.build_model(), words)])
