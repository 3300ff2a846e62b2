"""Trainings that begin with another run's tokenizer and reader."""

import json
import random
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from regard.errors import DataError, Interrupted, RunError, SettingError
from regard.inference import Predictor
from regard.models import Encoder
from regard.runs import Run
from regard.runs.files import checksum, seal, unseal
from regard.runtime.transformer.reader import PreparedReader
from regard.tasks import TASKS, recipe_from_table
from regard.text import BOS_ID, EOS_ID, train_tokenizer
from regard.training.recipes.resolving import resolve
from regard.training.session import fit as train

WORDS = ["the", "cat", "dog", "sat", "ran", "on", "under", "mat", "road", "and", "don't", "very"]
FEW = {"updates": 2, "validate_every": 2, "warmup": 1, "schedule": "constant", "batch_tokens": 300}
MODEL = {"model_dim": 12, "num_heads": 2, "num_layers": 1, "ffn_dim": 16}


def lines(count, seed):
    dice = random.Random(seed)
    return [" ".join(dice.choices(WORDS, k=7)) + "." for _ in range(count)]


TEXT = "the cat sat on the mat. the dog ran."
LABELS = "".join(f"{line}\t{'cat' in line}\n" for line in lines(60, 2))
PAIRS = "".join(f"{line}\tthe cat sat.\t{'cat' in line}\n" for line in lines(60, 3))
ASKED = {"question": "on what?", "context": TEXT, "answers": [{"text": "the mat", "start": 15}]}
CHOICES = {**ASKED, "answers": ["the mat"], "choices": ["the mat", "the road"]}
DOCUMENTS = "".join(f"{line}\t{line.split()[2]}\n" for line in lines(40, 6))
TAGGED = "".join(
    "".join(f"{word}\t{'NOUN' if word in ('cat', 'dog') else 'X'}\n" for word in line.split())
    + "\n"
    for line in lines(40, 5)
)
HEADS = {
    "classification": ("texts.tsv", LABELS, {}),
    "generation": ("documents.tsv", DOCUMENTS, {"max_length": 64}),
    "masked_language_modelling": ("text.txt", "\n".join(lines(300, 1)), {"context": 16}),
    "multiple_choice": ("choices.jsonl", f"{json.dumps(CHOICES)}\n" * 9, {"max_length": 64}),
    "pair_matching": ("pairs.tsv", PAIRS, {"max_length": 64}),
    "question_answering": (
        "asked.jsonl",
        f"{json.dumps(ASKED)}\n" * 9,
        {"max_length": 64, "stride": 32},
    ),
    "tagging": ("tagged.conll", TAGGED, {"max_length": 64}),
}


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder with texts in it, and a masked language model of them at ``pre``."""
    folder = tmp_path_factory.mktemp("pretrained")
    for name, text, _ in HEADS.values():
        (folder / name).write_text(f"{text}\n", encoding="utf-8")
    table = {
        "task": "masked_language_modelling",
        "data": {"train": "text.txt", "context": 16},
        "tokenizer": {"type": "bpe", "vocab_size": 300},
        "model": {**MODEL, "max_length": 300, "dropout": 0.0},
        "training": {**FEW, "learning_rate": 0.01},
    }
    train(recipe_from_table(table, folder=folder), folder / "pre")
    return folder


def test_the_reader_has_the_weights_and_the_ids_of_before(toy, home, begin, tmp_path):
    trained = train(begin("classification"), tmp_path / "run", reporter=toy.Recorder())
    pretrained = Predictor.load(home / "pre")
    ours, theirs = trained.predictor.model.reader, pretrained.model.encoder
    rows = trained.predictor.task.tokenizer.vocab_size
    assert len(theirs.embedding.weight) == rows + 1  # the mask, which a classifier never reads
    torch.testing.assert_close(ours.embedding.weight, theirs.embedding.weight[:rows])
    for name, tensor in ours.layers.state_dict().items():
        torch.testing.assert_close(tensor, theirs.layers.state_dict()[name], msg=name)
    text = "the cat don't."
    assert trained.predictor.task.tokenizer.encode(text) == pretrained.task.tokenizer.encode(text)


@pytest.fixture
def begin(home):
    """A maker of recipes of any task that begin with ``pre``."""

    def make(task, /, **settings):
        name, _, data = HEADS[task]
        data = {**data, "train": name, "valid": name}
        training = {"learning_rate": 1e-12, "label_smoothing": 0.0, "pretrained": str(home / "pre")}
        table = {"task": task, "data": data, "training": {**FEW, **training}, **settings}
        return recipe_from_table(table, folder=home)

    return make


def rows_read(monkeypatch):
    """The texts that encoders, plain or prepared, are given from now on, and their segments.

    Both are without padding.
    """
    rows = []

    def record(kind):
        forward = kind.forward

        def recorded(self, ids, lengths=None, *, segments=None, **rest):
            for row, length in enumerate(lengths.tolist()):
                row_segments = None if segments is None else segments[row, :length].tolist()
                rows.append((ids[row, :length].tolist(), row_segments))
            return forward(self, ids, lengths, segments=segments, **rest)

        monkeypatch.setattr(kind, "forward", recorded)

    record(Encoder)
    record(PreparedReader)
    return rows


@pytest.mark.parametrize("task", sorted(HEADS.keys() - {"generation"}))
def test_every_head_reads_text_as_pretraining_did(toy, begin, tmp_path, monkeypatch, task):
    rows = rows_read(monkeypatch)
    trained = train(begin(task), tmp_path / "run", reporter=toy.Recorder())
    assert rows
    for ids, _ in rows:
        assert (ids[0], ids[-1], ids.count(BOS_ID)) == (BOS_ID, EOS_ID, 1)
    learned = len(rows)
    Predictor.load(tmp_path / "run").use.answers_and_loss(
        trained.predictor.task.read(trained.predictor.task.recipe, "valid")
    )
    assert all(ids[0] == BOS_ID for ids, _ in rows[learned:])
    assert len(rows) > learned


def test_a_writer_reads_a_source_as_pretraining_did(home, toy, begin, tmp_path):
    recipe = begin(
        "generation", model={"type": "transformer", "num_decoder_layers": 1, "copy": True}
    )
    trained = train(recipe, tmp_path / "run", reporter=toy.Recorder())
    predictor, pretrained = trained.predictor, Predictor.load(home / "pre")
    ids = predictor.tokenizer.source.encode("the cat sat on the mat.")
    assert ids == pretrained.task.tokenizer.encode("the cat sat on the mat.")
    row = torch.tensor([[BOS_ID, *ids, EOS_ID]])
    with torch.no_grad():
        theirs = pretrained.model.eval()(row, torch.tensor([row.shape[1]]))[:, 1:]
        memory, _ = predictor.model.eval()._encode(row[:, 1:], torch.tensor([len(ids) + 1]), None)
    torch.testing.assert_close(memory, theirs, atol=1e-5, rtol=1e-5)
    saved = Run.open(tmp_path / "run").recipe["model"]
    assert (saved["num_encoder_layers"], saved["source_begin"], saved["copy"]) == (1, True, True)
    texts = ["the cat sat.", "the dog ran on the road."]
    assert Predictor.load(tmp_path / "run").translate(texts) == predictor.translate(texts)
    train(recipe, tmp_path / "run", reporter=toy.Recorder())  # the same command goes on with it


def encoder_of_a_writer(model):
    """Copies of the weights with which a source is read, and of all others."""
    parts = ("source_embedding", "source_norm", "positions", "encoder", "encoder_norm")
    weights = {name: p.detach().clone() for name, p in model.named_parameters()}
    names = {name for name in weights if name.split(".")[0] in parts}
    return {name: weights.pop(name) for name in names}, weights


def test_an_encoder_learns_at_the_rate_of_its_own(home, toy, begin, tmp_path):
    weights = {}
    for rates in ((1e-12, 1e-12), (0.01, 1e-12), (1e-12, 0.01)):
        training = {**FEW, "pretrained": str(home / "pre")}
        training |= dict(zip(("learning_rate", "encoder_rate"), rates, strict=True))
        model = {"type": "transformer", "num_decoder_layers": 1, "dropout": 0.0}
        recipe = begin("generation", model=model, training=training)
        trained = train(recipe, tmp_path / f"{rates}", reporter=toy.Recorder())
        weights[rates] = encoder_of_a_writer(trained.predictor.model)
        train(recipe, tmp_path / f"{rates}", reporter=toy.Recorder())  # and goes on with it
    [(encoder, others), (still, learned), (read, kept)] = weights.values()
    for before, after in ((encoder, still), (others, kept)):
        torch.testing.assert_close(after, before)
    for before, after in ((others, learned), (encoder, read)):
        moved = [(after[name] - tensor).abs().max() for name, tensor in before.items()]
        assert min(moved) > 0.005


def test_an_encoder_that_has_read_much_learns_slowly_beside_a_new_decoder(home, toy, tmp_path):
    over = {"training.updates": 1, "data.train": [str(home / "documents.tsv")]}
    over |= {"data.max_length": 64, "training.pretrained": str(wide(home))}
    recipe = resolve("generation-pretrained", settings=over)
    for _ in range(2):  # the same command goes on with it
        trained = train(recipe, tmp_path / "run", reporter=toy.Recorder())
    chosen = trained.predictor.task.recipe.training
    assert (chosen["learning_rate"], chosen["encoder_rate"]) == (1e-3, 1e-4)
    # One of before there was such a rate goes on as it was begun.
    path = tmp_path / "run"
    text = (path / "recipe.toml").read_text().replace("encoder_rate = 0.0001\n", "")
    card = unseal((path / "run.json").read_bytes(), where=path)
    (path / "recipe.toml").write_text(text)
    (path / "run.json").write_bytes(seal(card | {"recipe": checksum(text.encode())}))
    for checkpoint in Run.open(path).checkpoints():
        checkpoint.delete()
    trained = train(recipe, path, reporter=toy.Recorder())
    assert trained.predictor.task.recipe.training.get("encoder_rate") is None


def test_segments_stay_where_pretraining_had_two_and_else_begin_alike(home, toy, begin, tmp_path):
    before = Predictor.load(home / "pre").model.encoder.segments
    assert not torch.equal(before[0], before[1])
    trained = train(begin("pair_matching"), tmp_path / "run", reporter=toy.Recorder())
    segments = trained.predictor.model.reader.segments
    torch.testing.assert_close(segments, before[:1].expand(2, -1))
    data = {"train": "text.txt", "valid": "text.txt", "context": 16, "next_sentence": True}
    halves = begin("masked_language_modelling", data=data)
    before = train(halves, tmp_path / "halves", reporter=toy.Recorder()).predictor.model.encoder
    training = {**FEW, "learning_rate": 1e-12, "pretrained": str(tmp_path / "halves")}
    recipe = begin("pair_matching", training=training)
    trained = train(recipe, tmp_path / "next", reporter=toy.Recorder())
    torch.testing.assert_close(trained.predictor.model.reader.segments, before.segments)


def test_words_that_have_an_id_each_keep_it(toy, begin, tmp_path):
    model = {"type": "transformer", **MODEL}
    training = {**FEW, "label_smoothing": 0.0, "learning_rate": 0.01}
    recipe = begin("tagging", model=model, training=training)
    trained = train(recipe, tmp_path / "run", reporter=toy.Recorder())
    assert trained.predictor.task.tokenizer is None
    assert "tokenizer" not in Run.open(tmp_path / "run").recipe
    training["pretrained"] = str(tmp_path / "run")
    resumed = train(begin("tagging", training=training), tmp_path / "next", reporter=toy.Recorder())
    assert resumed.predictor.task.words == trained.predictor.task.words
    recipe = begin("tagging", tokenizer={"type": "words"}, training=training)
    with pytest.raises(SettingError, match="must name a run whose text is cut as tagging cuts it"):
        train(recipe, tmp_path / "other", reporter=toy.Recorder())


def test_a_begin_counts_where_positions_are_learned(toy, begin, tmp_path):
    name = HEADS["classification"][0]
    recipe = begin("classification", data={"train": name, "max_length": 298})
    train(recipe, tmp_path / "run", reporter=toy.Recorder())
    recipe = begin("classification", data={"train": name, "max_length": 299})
    with pytest.raises(SettingError, match=r"model.max_length must be at least 301, .*; got 300"):
        train(recipe, tmp_path / "other", reporter=toy.Recorder())


def test_a_run_that_reads_without_begin_resumes_so(toy, begin, tmp_path, monkeypatch):
    """As those do that were fine-tuned before there was ``tokenizer.begin``."""
    kind = TASKS["masked_language_modelling"]
    monkeypatch.setitem(TASKS, "masked_language_modelling", replace(kind, begins=False))
    recipe = begin("classification")
    trained = train(recipe, tmp_path / "run", reporter=toy.Recorder())
    assert "begin" not in Run.open(tmp_path / "run").recipe["tokenizer"]
    predictions = trained.predictor.predict(["the cat sat."])
    monkeypatch.undo()
    rows = rows_read(monkeypatch)
    reloaded = Predictor.load(tmp_path / "run")
    assert reloaded.predict(["the cat sat."]) == predictions
    assert rows[0][0] == [*reloaded.task.tokenizer.encode("the cat sat."), EOS_ID]
    train(recipe, tmp_path / "run", reporter=toy.Recorder())  # the same command goes on with it
    # What begins with it reads as it does.
    training = {**FEW, "pretrained": str(tmp_path / "run")}
    rows.clear()
    train(begin("classification", training=training), tmp_path / "next", reporter=toy.Recorder())
    assert all(BOS_ID not in ids for ids, _ in rows)


def test_a_begin_can_be_set_without_pretraining(toy, begin, tmp_path, monkeypatch):
    training = {**FEW, "learning_rate": 0.01}
    for has_begin in (True, False):
        rows = rows_read(monkeypatch)
        recipe = begin(
            "classification",
            tokenizer={"type": "words", "begin": has_begin},
            model={"type": "transformer", **MODEL},
            training=training,
        )
        train(recipe, tmp_path / f"{has_begin}", reporter=toy.Recorder())
        assert all((ids[0] == BOS_ID) is has_begin for ids, _ in rows)
        monkeypatch.undo()


def test_a_begin_with_parts_is_refused(toy, begin, tmp_path):
    recipe = begin(
        "classification",
        tokenizer={"type": "words", "begin": True},
        model={"type": "transformer", **MODEL, "parts": "bag"},
        training=FEW,
    )
    with pytest.raises(SettingError, match=r"tokenizer.begin must be left out where model.parts"):
        train(recipe, tmp_path / "run", reporter=toy.Recorder())


def test_what_the_recipe_leaves_out_is_as_it_was(home, toy, begin, tmp_path):
    recipe = begin("classification", model={"type": "transformer", "dropout": 0.25})
    train(recipe, tmp_path / "run", reporter=toy.Recorder())
    saved = Predictor.load(tmp_path / "run").task.recipe
    assert (saved.model.model_dim, saved.model.max_length, saved.model.dropout) == (12, 300, 0.25)
    assert saved.tokenizer.vocab_size == 300
    # The same command goes on; and so does a run whose beginning is not there any more.
    train(recipe, tmp_path / "run", reporter=toy.Recorder())


def test_a_run_resumes_without_the_one_it_was_initialised_from(home, toy, tmp_path):
    shutil.copytree(home / "pre", tmp_path / "pre")
    shutil.copy(home / "texts.tsv", tmp_path)
    training = {**FEW, "updates": 4, "learning_rate": 0.01, "pretrained": "pre"}
    table = {"task": "classification", "data": {"train": "texts.tsv"}, "training": training}
    recipe = recipe_from_table(table, folder=tmp_path)
    train(recipe, tmp_path / "whole", reporter=toy.Recorder())

    with pytest.raises(Interrupted):
        train(recipe, tmp_path / "run", reporter=toy.stopping(2))
    shutil.rmtree(tmp_path / "pre")
    train(recipe, tmp_path / "run", reporter=toy.Recorder())
    assert toy.contents(tmp_path / "run") == toy.contents(tmp_path / "whole")


def test_a_run_keeps_the_commit_of_the_hub_and_resumes_offline(
    home, toy, begin, tmp_path, monkeypatch
):
    folder = Path(shutil.copytree(home / "pre", tmp_path / ("a" * 40)))
    fetched = []

    def fetch(name, *, revision=None):
        fetched.append((name, revision))
        return folder

    monkeypatch.setattr("regard.training.pretrained.fetch", fetch)
    training = {**FEW, "updates": 4, "learning_rate": 0.01, "pretrained": "hf:me/bert"}
    recipe = begin("classification", training=training)
    with pytest.raises(Interrupted):
        train(recipe, tmp_path / "early", reporter=toy.stopping(2))
    assert Run.open(tmp_path / "early").card["pretrained_commit"] == "a" * 40
    fetched.clear()
    shutil.rmtree(tmp_path / "early" / "checkpoints")  # as if killed before there was one
    with pytest.raises(Interrupted):
        train(recipe, tmp_path / "early", reporter=toy.stopping(2))
    assert {*fetched} == {("hf:me/bert", "a" * 40)}  # whatever the newest is now

    def unreachable(name, *, revision=None):
        raise AssertionError

    monkeypatch.setattr("regard.training.pretrained.fetch", unreachable)
    shutil.rmtree(folder)
    train(recipe, tmp_path / "early", reporter=toy.Recorder())
    assert Run.open(tmp_path / "early").recipe["training"]["pretrained"] == "hf:me/bert"


def test_masked_words_go_on_with_the_head_of_before(home, toy, begin, tmp_path):
    before = Predictor.load(home / "pre").model
    after = train(begin("masked_language_modelling"), tmp_path / "run", reporter=toy.Recorder())
    for name, tensor in before.state_dict().items():
        if not name.startswith(("pooler.", "next_sentence.", "encoder.segments")):
            torch.testing.assert_close(after.predictor.model.state_dict()[name], tensor, msg=name)


def wide(home):
    """The folder of a masked language model as wide as a small BERT."""
    if not (home / "wide").exists():
        table = {
            "task": "masked_language_modelling",
            "data": {"train": "text.txt", "context": 16},
            "tokenizer": {"type": "bpe", "vocab_size": 300},
            "model": {**MODEL, "model_dim": 384, "dropout": 0.1},
            "training": {**FEW, "learning_rate": 1e-12},
        }
        train(recipe_from_table(table, folder=home), home / "wide")
    return home / "wide"


def fine_tuned(toy, home, run, pretrained, **settings):
    """The resolved recipe of a packaged one, and the lines about its training."""
    lines = []
    reporter = toy.Recorder()
    reporter.on_start = lambda about, **_: lines.extend(about)
    over = {"training.pretrained": str(pretrained), "training.updates": 1, **settings}
    over |= {"data.train": [str(home / "texts.tsv")]}
    recipe = resolve("classification-pretrained", settings=over)
    return train(recipe, run, reporter=reporter).predictor.task.recipe, lines


def test_what_a_training_begins_with_chooses_rate_and_dropout(toy, home, tmp_path):
    small, about_small = fine_tuned(toy, home, tmp_path / "small", home / "pre")
    large, about_large = fine_tuned(toy, home, tmp_path / "large", wide(home))
    assert (small.training["learning_rate"], large.training["learning_rate"]) == (1e-3, 1e-4)
    assert (small.model.dropout, large.model.dropout) == (0.2, 0.1)
    assert (small.head.dropout, large.head.dropout) == (0.3, 0.1)
    assert (small.training["label_smoothing"], large.training["label_smoothing"]) == (0.1, 0.0)
    assert any(
        line.startswith("begins with pre, 12 wide: learning rate 0.001") for line in about_small
    )
    assert any(
        line.startswith("begins with wide, 384 wide: learning rate 0.0001") for line in about_large
    )


def test_settings_that_are_given_win(toy, home, tmp_path):
    given = {"training.learning_rate": 2e-5, "model.dropout": 0.0, "head.dropout": 0.25}
    recipe, lines = fine_tuned(toy, home, tmp_path / "run", wide(home), **given)
    assert recipe.training["learning_rate"] == 2e-5
    assert (recipe.model.dropout, recipe.head.dropout) == (0.0, 0.25)
    assert any("learning rate 2e-05" in line and "dropout 0," in line for line in lines)


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        (
            {"model": {"type": "transformer", "model_dim": 32}},
            r"model.model_dim must be 12, as in .*pre, .*; got 32. Leave model.model_dim out",
        ),
        ({"model": {"type": "bag"}}, "model.type must be 'transformer', as in .*; got 'bag'"),
        ({"tokenizer": {"type": "words"}}, "tokenizer.type must be 'bpe', as in .*; got 'words'"),
        ({"tokenizer": {"vocab_size": 280}}, "tokenizer.vocab_size must be 300, as in .*got 280"),
        (
            {"task": "language_modelling", "data": {"train": "text.txt"}},
            "whose model reads text for language_modelling; got one of masked_language_modelling",
        ),
        (
            {"task": "tagging", "data": {"train": "tagged.conll", "drop_words": 0.5}},
            r"data.drop_words must be left out where words are cut into pieces",
        ),
        (
            {"task": "generation", "model": {"type": "transformer", "norm": "pre"}},
            r"model.norm must be 'post', as in .*; got 'pre'",
        ),
        (
            {"task": "generation", "model": {"type": "rnn_seq2seq"}},
            r"model.type must be 'transformer', as in .*; got 'rnn_seq2seq'",
        ),
        ({"task": "translation"}, "training.pretrained must be left out for translation"),
    ],
)
def test_a_pretrained_run_that_does_not_fit_is_named(toy, begin, tmp_path, sections, message):
    with pytest.raises(SettingError, match=message):
        train(begin("classification", **sections), tmp_path / "run", reporter=toy.Recorder())
    assert not (tmp_path / "run").exists()


def test_a_folder_without_a_run_is_named(toy, begin, tmp_path):
    recipe = begin("classification", training={**FEW, "pretrained": "nowhere"})
    with pytest.raises(RunError, match=r"must name a run, or a folder with a .*nowhere', no such"):
        train(recipe, tmp_path / "run", reporter=toy.Recorder())


def test_a_saved_tokenizer_is_taken_as_it_is(home):
    tokenizer = {"folder": "pre/tokenizer/text"}
    table = {"task": "classification", "data": {"train": "texts.tsv"}, "tokenizer": tokenizer}
    recipe = recipe_from_table(table, folder=home)
    assert train_tokenizer([], recipe.tokenizer).vocab_size == 300
    tokenizer["type"] = "words"
    with pytest.raises(SettingError, match=r"tokenizer.type must be 'bpe', that of the tokenizer"):
        train_tokenizer([], recipe_from_table(table, folder=home).tokenizer)


def test_a_text_without_a_blank_is_refused(home):
    with pytest.raises(DataError, match=r"record 1: text must have a blank to fill in, \[MASK\]"):
        Predictor.load(home / "pre").predict(["dog and dog."])
