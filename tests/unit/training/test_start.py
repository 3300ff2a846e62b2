"""Whole trainings of the translation task, small ones."""

import random

import pytest

from regard.errors import DataError, Interrupted, RunError, SettingError
from regard.inference import Predictor
from regard.runs import Run
from regard.tasks import recipe_from_table
from regard.training import resume
from regard.training.recipes.resolving import with_minutes
from regard.training.session import fit as train

TRANSFORMER = {"type": "transformer", "model_dim": 64, "num_heads": 4, "ffn_dim": 128}
TRANSFORMER |= {"num_encoder_layers": 1, "num_decoder_layers": 1}
SMALL = {"type": "rnn_seq2seq", "embed_dim": 8, "hidden_dim": 8, "attention_dim": 8}


def digit_rows(count, seed=1):
    """Different strings of 3 to 6 digits."""
    dice = random.Random(seed)
    rows: set[str] = set()
    while len(rows) < count:
        rows.add("".join(dice.choices("0123456789", k=dice.randint(3, 6))))
    return dice.sample(sorted(rows), count)


def write_pairs(path, rows):
    path.write_text("".join(f"{row}\t{row[::-1]}\n" for row in rows), encoding="utf-8")


@pytest.fixture
def make_recipe(tmp_path):
    """A maker of small recipes on 80 pairs of digit strings."""
    write_pairs(tmp_path / "train.tsv", digit_rows(80))
    write_pairs(tmp_path / "valid.tsv", digit_rows(90)[-9:])

    def make(model=None, tokenizer=None, data=None, **training):
        defaults = {"updates": 6, "batch_tokens": 120, "learning_rate": 0.01, "warmup": 3}
        defaults |= {"validate_every": 3, "validation_pairs": 2, "precision": "float32"}
        table = {
            "data": {"train": "train.tsv", "valid": "valid.tsv"} | (data or {}),
            "tokenizer": tokenizer or {"type": "characters"},
            "model": model or SMALL,
            "training": defaults | training,
            "decoding": {"max_ratio": 0.5},
        }
        return recipe_from_table(table, folder=tmp_path)

    return make


# Shapes are checked where a training has a few updates; elsewhere they would be half of the time.
@pytest.mark.slow
@pytest.mark.usefixtures("unchecked_shapes")
@pytest.mark.parametrize(
    ("model", "training"),
    [
        (
            {"type": "rnn_seq2seq", "embed_dim": 32, "hidden_dim": 48, "attention_dim": 32},
            {"updates": 180, "warmup": 30},
        ),
        (TRANSFORMER | {"model_dim": 32, "ffn_dim": 64}, {"updates": 300, "warmup": 50}),
    ],
    ids=["rnn_seq2seq", "transformer"],
)
def test_digit_strings_are_learned_to_be_reversed(tmp_path, toy, make_recipe, model, training):
    settings = {"batch_tokens": 512, "schedule": "linear", "clip_norm": 1.0, "precision": "auto"}
    settings |= {"validate_every": 1000, "validation_pairs": 0, "label_smoothing": 0.0}
    recipe = make_recipe(model | {"dropout": 0.0}, **settings, **training)
    rows = digit_rows(3300)
    write_pairs(tmp_path / "train.tsv", rows[:3000])
    write_pairs(tmp_path / "valid.tsv", rows[3000:3100])
    trained = train(recipe, tmp_path / "run", reporter=toy.Recorder())
    unseen = rows[3100:]
    translations = trained.predictor.translate(unseen, beam_size=1)
    num_correct = sum(
        outputs[0].text == row[::-1] for outputs, row in zip(translations, unseen, strict=True)
    )
    assert num_correct / len(unseen) >= 0.95
    reloaded = Predictor.load(tmp_path / "run").translate(unseen, beam_size=1)
    assert reloaded == translations


SAMPLED = {"type": "bpe", "vocab_size": 290, "dropout": 0.3}


@pytest.mark.usefixtures("unchecked_shapes")
def test_segmentations_are_drawn_anew_each_epoch(toy, tmp_path, make_recipe):
    tokens = []
    for name, tokenizer in (("sampled", SAMPLED), ("fixed", SAMPLED | {"dropout": 0.0})):
        recorder = toy.Recorder()
        train(
            make_recipe(tokenizer=tokenizer, updates=None, epochs=4, batch_tokens=10_000),
            tmp_path / name,
            reporter=recorder,
        )
        tokens.append([figures["tokens"] for figures in recorder.figures])
    sampled, fixed = tokens
    assert len(set(fixed)) == 1
    assert min(sampled) > fixed[0]
    assert len(set(sampled)) > 1


@pytest.mark.usefixtures("unchecked_shapes")
@pytest.mark.parametrize("kind", ["sampled", "words"])
def test_an_interrupted_training_resumes_to_the_same_bytes(toy, tmp_path, make_recipe, kind):
    tokenizer = {"sampled": SAMPLED, "words": {"type": "words", "shared": False}}[kind]
    recipe = make_recipe(tokenizer=tokenizer, updates=8, ema=0.9, accumulate=2)
    train(recipe, tmp_path / "whole", reporter=toy.Recorder())
    with pytest.raises(Interrupted):
        train(recipe, tmp_path / "run", reporter=toy.stopping(5))
    recorder = toy.Recorder()
    trained = resume(tmp_path / "run", reporter=recorder)
    assert ("resumed", 5) in recorder.events
    assert toy.contents(tmp_path / "run") == toy.contents(tmp_path / "whole")
    assert trained.summary["updates"] == 8


def test_the_same_recipe_gives_the_same_bytes_and_another_seed_does_not(toy, tmp_path, make_recipe):
    bytes_of = []
    for name, seed in (("one", 1), ("same", 1), ("other", 2)):
        train(make_recipe(seed=seed), tmp_path / name, reporter=toy.Recorder())
        bytes_of.append((tmp_path / name / "model.safetensors").read_bytes())
    assert bytes_of[0] == bytes_of[1] != bytes_of[2]


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"tokenizer": {"type": "bpe", "vocab_size": 9000}}, SettingError, "vocab_size"),
        ({"data": {"train": "none.tsv"}}, DataError, "none.tsv"),
        (
            {"data": {"max_length": 2}},
            DataError,
            "data.max_length must let in at least one pair; got 2, and all of 80 pairs are longer",
        ),
        ({"update": 3}, SettingError, "training.update is not a setting"),
        ({"device": "cuda:99"}, SettingError, r"training\.device must be"),
        ({"metric": "chrf"}, SettingError, "training.metric must be one of bleu, loss; got 'chrf'"),
        (
            {"model": {"type": "transformer", "positions": "learned", "max_length": 9}},
            SettingError,
            "model.max_length must be above",
        ),
    ],
)
def test_what_cannot_be_trained_leaves_no_folder(
    toy, tmp_path, make_recipe, change, error, message
):
    with pytest.raises(error, match=message):
        train(make_recipe(**change), tmp_path / "run", reporter=toy.Recorder())
    assert not (tmp_path / "run").exists()


@pytest.mark.usefixtures("unchecked_shapes")
def test_token_budget_and_pairs_to_translate_count(toy, tmp_path, make_recipe):
    tokens, figures = [], []
    changes = ({}, {"batch_tokens": 60}, {"validation_pairs": 0})
    for number, change in enumerate(changes):
        recorder = toy.Recorder()
        trained = train(make_recipe(**change), tmp_path / str(number), reporter=recorder)
        tokens.append(max(figure["tokens"] for figure in recorder.figures))
        figures.append(set(trained.summary["validation"]))
    assert 60 < tokens[0] <= 120
    assert tokens[1] <= 60
    assert figures[0] == {"loss", "perplexity", "bleu"}
    assert figures[2] == {"loss", "perplexity"}


def test_facts_are_reported_before_training(toy, tmp_path, make_recipe):
    with (tmp_path / "train.tsv").open("a", encoding="utf-8") as file:
        file.write("no tab here\n\n" + "1" * 300 + "\t1\n")
    recorder = toy.Recorder()
    train(make_recipe(data={"on_bad_line": "skip"}), tmp_path / "run", reporter=recorder)
    facts = recorder.facts
    assert facts[:2] == [
        "80 pairs to train on, 9 to validate on",
        "characters tokenizer: 15 shared pieces",
    ]
    assert facts[2].startswith("rnn_seq2seq with ")
    assert facts[-1].startswith("training ends after 6 updates (1.2 epochs), about ")
    assert facts[3:-1] == [
        f"1 blank lines left out: {tmp_path}/train.tsv:82",
        "left out 1 lines that cannot be read: columns, 1 (first "
        f"{tmp_path}/train.tsv:81: expected 2 columns, found 1. "
        "A tab must stand between the sentences.)",
        f"cut or left out 1 pairs too long: source too long, 1 (first {tmp_path}/train.tsv:83: "
        "the source must be at most 256 tokens long; got 300. Raise max_length, or split the "
        "sentence.)",
    ]


@pytest.mark.usefixtures("unchecked_shapes")
def test_changed_text_is_noticed_before_training_resumes(toy, tmp_path, make_recipe):
    with pytest.raises(Interrupted):
        train(make_recipe(), tmp_path / "run", reporter=toy.stopping(4))
    before = (tmp_path / "train.tsv").read_text("utf-8")
    write_pairs(tmp_path / "train.tsv", digit_rows(81))
    with pytest.raises(RunError, match="must go on with the text it began with"):
        resume(tmp_path / "run", reporter=toy.Recorder())
    (tmp_path / "train.tsv").write_text(before, "utf-8")
    assert resume(tmp_path / "run", reporter=toy.Recorder()).summary["updates"] == 6


@pytest.mark.usefixtures("unchecked_shapes")
def test_languages_that_no_recipe_names_are_inferred_and_saved(toy, tmp_path, make_recipe):
    rows = "the cat is not here\t猫不在这里\nI am in the house\t我在房子里\n"
    (tmp_path / "mixed.tsv").write_text(20 * rows, "utf-8")
    data, short = {"train": "mixed.tsv", "valid": []}, {"updates": 2, "warmup": 1}
    mixed, recorder = make_recipe(data=data, **short), toy.Recorder()
    trained = train(mixed, tmp_path / "run", reporter=recorder)
    assert trained.predictor.recipe.data.target_language == "zh"
    assert "en → zh" in recorder.facts
    assert Run.open(tmp_path / "run").recipe["data"]["source_language"] == "en"
    train(mixed, tmp_path / "run", reporter=toy.Recorder())  # the same recipe goes on
    named = make_recipe(data=data | {"target_language": "ja"}, **short)
    with pytest.raises(RunError, match=r"data\.target_language"):
        train(named, tmp_path / "run", reporter=toy.Recorder())


def test_minutes_stand_in_place_of_updates_that_are_not_named():
    unlimited = {"training.updates": None, "training.epochs": None}
    assert with_minutes(2, {}) == {**unlimited, "training.minutes": 2.0}
    assert with_minutes(2, {"training.updates": 9})["training.updates"] == 9
    assert with_minutes(None, {"training.updates": 9}) == {"training.updates": 9}
