"""Texts to labels: words read from their parts, words dropped, answers joined."""

from dataclasses import replace

import pytest
import torch

from regard.errors import RunError, SettingError
from regard.inference import Predictor
from regard.inference.evaluation.comparison import Ensemble
from regard.tasks import TASKS, recipe_from_table
from regard.tasks.labels.classification import Classification, LabelledText
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


def with_ngrams(kind="words", texts=TEXTS * 2, **head):
    return job(texts, kind=kind, head={"ngram_scores": True, **head}, model={"dropout": 0.0})


def test_scores_of_ngrams_are_added_where_the_model_is_used_alone():
    learned, examples = with_ngrams(dropout=0.0)
    built, samples = learned.build_model(), learned.encode(examples)
    learned.initialise(built, samples)
    batch = learned.collate(samples)
    trained, _ = learned.logits(built.train(), batch)
    used, _ = learned.logits(built.eval(), batch)
    torch.testing.assert_close(used, trained + built.ngrams(batch["ngrams"], batch["ngram_values"]))
    assert (built.ngrams(batch["ngrams"], batch["ngram_values"]).argmax(1) == batch["label"]).all()


def test_scores_of_ngrams_are_of_the_whole_text_and_saved_with_the_task(tmp_path):
    learned, examples = with_ngrams()
    short = replace(learned.data, max_length=1)
    samples = learned.encode(examples)
    learned.data = short
    for cut, sample in zip(learned.encode(examples), samples, strict=True):
        assert len(cut["ids"]) < len(sample["ids"])
        assert cut["ngrams"].tolist() == sample["ngrams"].tolist()
    learned.save(tmp_path)
    again = Classification.load(learned.recipe, tmp_path)
    assert again.encode(examples)[0]["ngrams"].tolist() == samples[0]["ngrams"].tolist()
    (tmp_path / "ngrams.json").unlink()
    with pytest.raises(RunError, match=r"ngrams\.json must exist"):
        Classification.load(learned.recipe, tmp_path)


@pytest.mark.parametrize("kind", ["words", "characters", "bpe"])
def test_a_drawing_says_which_ngrams_counted_and_leaves_them_out_with_their_token(kind):
    learned, examples = with_ngrams(kind)
    model = learned.build_model().eval()
    learned.initialise(model, learned.encode(examples))
    (sample,) = learned.encode(examples[:1])
    (answer,) = learned.predict(model, learned.collate([sample]))
    drawing = learned.draw(model, examples[0], sample, answer)
    scores, losses = drawing.importances
    assert (scores.method, losses.method) == ("scores of n-grams", "leave one out")
    label = learned.labels.index(answer.label)
    ids, values = map(torch.from_numpy, (sample["ngrams"], sample["ngram_values"]))
    assert sum(scores.values) == pytest.approx(
        model.ngrams.log_odds(ids, values, label).sum().item()
    )
    assert len(scores.values) == len(losses.values) == len(sample["ids"])
    model.scale_logits(network=0.0, ngrams=0.1)  # now only n-grams tell
    (answer,) = learned.predict(model, learned.collate([sample]))
    losses = learned.draw(model, examples[0], sample, answer).importances[1]
    assert any(abs(loss) > 1e-3 for loss in losses.values)


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
