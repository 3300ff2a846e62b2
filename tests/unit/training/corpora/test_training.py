"""Training from disk: the same samples, in an order that a later run takes up anywhere."""

from functools import partial

import pytest

from regard.errors import RunError
from regard.runs import Run
from regard.text import Batches
from regard.training import ConsoleReporter
from regard.training.corpora import stored_text
from regard.training.session import fit as train
from regard.training.start import with_test

MODEL = {"model_dim": 8, "ffn_dim": 8, "num_heads": 2, "dropout": 0.1}
SETTINGS = {
    "updates": 24,
    "batch_tokens": 40,
    "validate_every": 20,
    "validation_pairs": 0,
    "warmup": 1,
    "corpus": "disk",
}


@pytest.fixture(autouse=True)
def small_windows(monkeypatch):
    """Windows of four blocks of four, so that a small text has several of both; one process."""
    monkeypatch.setattr(Batches, "of_stored", partial(Batches.of_stored, window=16, block=4))
    monkeypatch.setattr(stored_text, "count_cores", lambda: 1)


@pytest.fixture
def small(recipe, tmp_path):
    def make(**training):
        model = {"type": "transformer", **MODEL, "num_encoder_layers": 1, "num_decoder_layers": 1}
        settings = {**SETTINGS, "cache": str(tmp_path / "cache"), **training}
        return recipe(model=model, training=settings)

    return make


class Quiet(ConsoleReporter):
    """Says nothing, and stops at an update as Ctrl-C does."""

    def __init__(self, stop=None):
        super().__init__(quiet=True)
        self.stop, self.facts = stop, []

    def on_start(self, facts, **_):
        self.facts = list(facts)

    def on_update(self, update):
        if update.number == self.stop:
            raise KeyboardInterrupt


def weights(path):
    return (path / "model.safetensors").read_bytes()


def test_resumed_is_undisturbed(small, tmp_path):
    reporter = Quiet()
    whole = train(small(), tmp_path / "whole", reporter=reporter)
    assert reporter.facts[0] == "54 pairs to train on, 6 to validate on"
    assert whole.summary["epochs"] >= 1
    for stop in (3, 22):
        with pytest.raises(KeyboardInterrupt):
            train(small(), tmp_path / "broken", reporter=Quiet(stop))
    train(small(), tmp_path / "broken", reporter=Quiet())
    assert weights(tmp_path / "broken") == weights(tmp_path / "whole")


def test_a_run_resumes_with_the_text_it_began_with(small, tmp_path, pairs):
    train(small(updates=2), tmp_path / "run", reporter=Quiet())
    assert Run.open(tmp_path / "run").recipe["training"]["corpus"] == "disk"
    with pytest.raises(RunError, match=r"training\.corpus"):
        train(small(updates=2, corpus="memory"), tmp_path / "run", may_change=True)
    train(small(updates=2, corpus="auto"), tmp_path / "run", reporter=Quiet())
    (pairs / "a.tsv").write_text("one\ttwo\n" * 20, encoding="utf-8")
    with pytest.raises(RunError, match="must go on with the text it began with"):
        train(small(updates=2), tmp_path / "run", reporter=Quiet())


def test_no_test_is_held_out_of_a_text_on_disk(small, tmp_path):
    assert with_test(small(), tmp_path / "run").data.test == ()
    assert with_test(small(corpus="auto"), tmp_path / "run").data.test == "held out"


RUNNING = {
    "language_modelling": {"type": "decoder", "num_layers": 1},
    "masked_language_modelling": {"type": "transformer", "num_layers": 1},
}


@pytest.mark.parametrize("task", RUNNING)
def test_running_text_is_learned_from_disk(recipe, tmp_path, task):
    lines = [" ".join(f"w{(n * m) % 20}" for m in range(1, 9)) for n in range(300)]
    (tmp_path / "text.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    running = recipe(
        task,
        data={"train": "text.txt", "context": 8},
        model={**RUNNING[task], **MODEL},
        training={
            **SETTINGS,
            "updates": 6,
            "label_smoothing": 0.0,
            "cache": str(tmp_path / "cache"),
        },
    )
    reporter = Quiet()
    train(running, tmp_path / "run", reporter=reporter)
    assert reporter.facts[0].endswith("windows of text to train on, 3 passages to validate on")
    with pytest.raises(KeyboardInterrupt):
        train(running, tmp_path / "broken", reporter=Quiet(stop=3))
    train(running, tmp_path / "broken", reporter=Quiet())
    assert weights(tmp_path / "broken") == weights(tmp_path / "run")
