"""Masked language models: masking, requests, predictions."""

import random
from dataclasses import replace

import pytest
import torch

from regard.errors import SettingError
from regard.tasks import TASKS, recipe_from_table
from regard.text import BOS_ID, EOS_ID, PAD_ID
from regard.text.masking import WholeWords

WORDS = ["cat", "dog", "sat", "ran", "under", "mattress", "road", "don't"]
CHINESE = [first + second for first in "酒房服早我不" for second in "店间务餐们错很"]


def lines(count, seed, words=WORDS, between=" "):
    dice = random.Random(seed)
    return [between.join(dice.choices(words, k=dice.randint(4, 9))) + "." for _ in range(count)]


@pytest.fixture
def make(tmp_path):
    """A maker of a job with its examples."""

    def make_task(text=None, **data):
        (tmp_path / "text.txt").write_text("\n".join(text or lines(250, 1)) + "\n", "utf-8")
        table = {
            "task": "masked_language_modelling",
            "data": {"train": "text.txt", "context": 24, **data},
            "tokenizer": {"type": "characters"},
            "model": {"model_dim": 12, "num_heads": 2, "num_layers": 1, "ffn_dim": 16},
        }
        recipe = recipe_from_table(table, folder=tmp_path)
        kind = TASKS["masked_language_modelling"].task
        examples = kind.read(recipe, "train")
        return kind.learn(recipe, examples), examples

    return make_task


def dice(seed=1):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("next_sentence", [False, True])
def test_windows_are_full_begin_with_begin_and_mask_the_given_fraction(make, next_sentence):
    job, examples = make(next_sentence=next_sentence)
    encoded = job.encode(examples, training=True)
    batch = job.collate(encoded, generator=dice())
    assert batch["ids"][:, 0].eq(BOS_ID).all()
    rows = range(len(batch["ids"]))
    assert all(batch["ids"][row, batch["lengths"][row] - 1] == EOS_ID for row in rows)
    assert int(batch["lengths"].min()) >= 24 - 2
    assert batch["ids"].shape[1] <= 24
    share = batch["chosen"].sum() / (batch["ids"] > EOS_ID).sum()
    assert 0.12 < share < 0.22
    masked = (batch["ids"][batch["chosen"]] == job.mask_id).float().mean()
    same = (batch["ids"] == batch["tokens"])[batch["chosen"]].float().mean()
    assert 0.74 < masked < 0.86
    assert 0.05 < same < 0.2
    assert not batch["chosen"][(batch["ids"] == PAD_ID) | (batch["ids"] == BOS_ID)].any()
    assert batch["tokens"].max() < job.mask_id
    if next_sentence:
        assert 0.25 < batch["follows"].float().mean() < 0.75
        assert batch["segments"].max() == 1
        first_of_second = batch["segments"].argmax(1)
        before = batch["ids"].gather(1, first_of_second[:, None] - 1)
        assert before.eq(EOS_ID).float().mean() > 0.9  # halves are cut where a line ends
    else:
        assert len(batch["follows"]) == 0


def test_halves_that_follow_are_the_text_and_others_are_not(make):
    job, examples = make(next_sentence=True, rate=0.01)
    encoded = job.encode(examples, training=True)
    batch = job.collate(encoded, generator=dice(3))
    text = "".join(map(chr, encoded[0].ids.tolist()))
    for row, follows in enumerate(batch["follows"].tolist()):
        ids = batch["ids"][row].clone()
        unmasked = ~batch["chosen"][row]
        inner = ids[1 : batch["lengths"][row] - 1]
        if not unmasked[1 : batch["lengths"][row] - 1].all():
            continue
        is_in_text = "".join(map(chr, inner.tolist())) in text
        assert is_in_text or not follows


def test_whole_words_are_masked_together(make):
    job, examples = make()
    batch = job.collate(job.encode(examples, training=True), generator=dice())
    letters = set(job.tokenizer.encode("catdogsnruemo'"))
    num_partial = 0
    for row in range(len(batch["ids"])):
        chosen = batch["chosen"][row].tolist()
        for position in range(2, int(batch["lengths"][row]) - 1):
            neighbours = {int(batch["ids"][row, position + step]) for step in (-1, 0, 1)}
            if chosen[position] and neighbours <= letters | {job.mask_id}:
                num_partial += not (chosen[position - 1] or chosen[position + 1])
    assert num_partial == 0
    job, examples = make(masking="pieces")
    batch = job.collate(job.encode(examples, training=True), generator=dice())
    runs = (batch["chosen"][:, 1:] & batch["chosen"][:, :-1]).sum() / batch["chosen"].sum()
    assert runs < 0.35


@pytest.mark.parametrize("next_sentence", [False, True])
def test_parts_of_a_batch_are_masked_as_the_whole_is(make, next_sentence):
    job, examples = make(next_sentence=next_sentence)
    encoded = job.encode(examples, training=True)[:7]
    whole = job.collate(encoded, generator=dice())
    cuts = [slice(0, 3), slice(3, 4), slice(4, 7)]
    parts = [job.collate_part(encoded, rows, generator=dice()) for rows in cuts]
    for name in ("ids", "lengths", "segments", "chosen", "tokens", "follows"):
        joined = torch.cat([part[name] for part in parts])
        assert joined.equal(whole[name]), name
    assert [part["owners"].tolist() for part in parts] == [[0, 1, 2], [0], [0, 1, 2]]
    assert [part["count"] for part in parts] == [3, 1, 3]


def test_the_loss_is_of_what_is_masked_and_never_of_the_mask(make):
    job, examples = make()
    model = job.build_model().eval()
    batch = job.collate(job.encode(examples))
    loss, count = job.loss(model, batch)
    answers = job.predict(model, batch)
    assert count == int(batch["chosen"].sum()) == sum(answer.count for answer in answers)
    assert loss.item() == pytest.approx(sum(answer.nats for answer in answers), rel=1e-5)
    figures = job.score(answers, examples)
    assert figures["masked accuracy"] == 100 * sum(a.right for a in answers) / count
    assert all(piece != "[MASK]" for a in answers for each in a.likeliest for piece, _ in each)
    # Guessing by frequency costs less than guessing blindly.
    (baseline,) = job.baselines(examples, examples).values()
    assert job.score(baseline, examples)["perplexity"] < job.tokenizer.vocab_size


def test_next_sentences_weigh_as_much_as_all_words(make):
    job, examples = make(next_sentence=True)
    model = job.build_model().eval()
    batch = job.collate(job.encode(examples))
    loss, count = job.loss(model, batch)
    answers = job.predict(model, batch)
    words = sum(answer.nats for answer in answers)
    states = model(batch["ids"], batch["lengths"], segments=batch["segments"])
    nats = torch.nn.functional.cross_entropy(model.follows(states), 1 - batch["follows"])
    assert loss.item() == pytest.approx(words + count * nats.item(), rel=1e-5)
    pairs = job.score(answers, examples)["next sentence accuracy"]
    right = (model.follows(states)[:, 0] > model.follows(states)[:, 1]) == (batch["follows"] == 1)
    assert pairs == pytest.approx(100 * float(right.float().mean()), rel=1e-5)


@pytest.mark.parametrize(
    ("data", "model", "message"),
    [
        ({"context": 600}, {"max_length": 512}, "max_length must be at least data.context = 600"),
        ({"next_sentence": True}, {"num_segments": 1}, "num_segments must be at least 2 with"),
    ],
)
def test_windows_beyond_the_positions_are_named(make, data, model, message):
    job, _ = make(**data)
    job.recipe = replace(job.recipe, model=replace(job.recipe.model, **model))
    with pytest.raises(SettingError, match=f"model.{message}"):
        job.build_model()


def test_chinese_words_are_found_by_what_is_repeated(tmp_path):
    words = WholeWords.learn(lines(400, 2, CHINESE, ""))
    text = "我们房间, ok 早餐!"
    segmented = [text[start:end] for start, end in words.spans(text)]
    assert "".join(segmented) == text.replace(" ", "")
    assert {"我们", "房间", "早餐", "ok"} & set(segmented) > {"ok"}
    assert all("," not in word or word == "," for word in segmented)
    words.save(tmp_path / "words")
    assert WholeWords.load(tmp_path / "words").spans(text) == words.spans(text)
    # Characters it has never seen are words by themselves, each once.
    assert words.spans("薛") == [(0, 1)]
    assert WholeWords.load(tmp_path / "nothing").spans("中国") == [(0, 1), (1, 2)]
