"""Language models that go on with texts: windows, streams, lines, samples."""

import json

import pytest
import torch

from regard.cli.app import run_command
from regard.errors import RunError, SettingError
from regard.inference import Predictor, preparation
from regard.models import Decoder, DecoderConfig
from regard.runtime import prepared
from regard.runtime.transformer.models import PreparedDecoder
from regard.tasks import DecodingConfig, recipe_from_table
from regard.tasks.running_text.language_modelling import LanguageModelling
from regard.text import EOS_ID, TokenizerConfig, train_tokenizer
from regard.training.session import fit as train

CONTEXT = 8
MODELS = {
    "decoder": {"model_dim": 12, "num_heads": 2, "num_layers": 1, "ffn_dim": 16, "max_length": 8},
    "recurrent": {"cell": "gru", "embed_dim": 8, "hidden_dim": 12},
}


def continuations_of(predictor, prompts, decoding=None):
    """The texts of all continuations of each prompt."""
    use = predictor.use
    predictions = use.answer([use.parse(each, "") for each in prompts], decoding=decoding)
    return [[each.text for each in continuations] for continuations in predictions]


def continuations(predictor, prompt, decoding=None):
    """The texts of all continuations of a prompt."""
    return continuations_of(predictor, [prompt], decoding)[0]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder with a run of each architecture, hardly trained."""
    folder = tmp_path_factory.mktemp("continuing")
    (folder / "text.txt").write_text("abc abd\nacb bad\n" * 80, "utf-8")
    for name, model in MODELS.items():
        table = {
            "task": "language_modelling",
            "data": {"train": "text.txt", "context": CONTEXT, "valid_share": 0.4},
            "tokenizer": {"type": "characters"},
            "model": {"type": name, **model},
            "training": {"updates": 3, "batch_tokens": 80, "validate_every": 3, "warmup": 1},
            "decoding": {"method": "greedy", "max_tokens": 11},
        }
        train(recipe_from_table(table, folder=folder), folder / name)
    return folder


@pytest.mark.parametrize("name", sorted(MODELS))
@pytest.mark.parametrize("method", ["greedy", "sample"])
@pytest.mark.parametrize("one_line", [False, True])
def test_a_stream_writes_what_is_found_at_once(home, name, method, one_line):
    continuer = Predictor.load(home / name)
    decoding = DecodingConfig(
        method=method, max_tokens=21, one_line=one_line, repetition_penalty=1.3
    )
    (whole,) = continuations(continuer, "ab", decoding)
    assert "".join(continuer.stream("ab", decoding)) == whole
    if one_line:
        assert "\n" not in whole
    else:
        assert len(whole) == 21


def test_a_window_is_as_long_as_in_training_and_slides_by_half():
    tokenizer = train_tokenizer(["abcdefg"], TokenizerConfig(type="characters"))
    read = []

    class Counting(Decoder):
        """The letter after the last, and a note of what is read."""

        def start(self, prompt, lengths):
            read.append(tokenizer.decode([t for t in prompt[0].tolist() if t != EOS_ID]))
            return super().start(prompt, lengths)

        def step(self, token, state):
            last = token if state.pending is None else state.pending
            log_probs, state = super().step(token, state)
            letters = tokenizer.encode("abcdefg")
            index = letters.index(int(last[0])) if int(last[0]) in letters else -1
            log_probs = torch.full_like(log_probs, -50.0)
            log_probs[:, letters[(index + 1) % 7]] = 0.0
            return log_probs, state

    config = DecoderConfig(**MODELS["decoder"])
    recipe = recipe_from_table(
        {"task": "language_modelling", "data": {"context": CONTEXT}, "model": {"type": "decoder"}}
    )
    task = LanguageModelling(recipe, tokenizer)
    continuer = Predictor(Counting(config, vocab_size=tokenizer.vocab_size), task)
    (text,) = continuations(continuer, "ab", DecodingConfig(method="greedy", max_tokens=15))
    assert text == "cdefgabcdefgabc"
    # A line's end and two letters, then five more are a window; then the last four of those.
    assert read == ["ab", "defg", "abcd", "efga"]


@pytest.fixture
def wide():
    """A decoder that reads and writes more, its weights far apart so that texts differ."""
    recipe = recipe_from_table(
        {"task": "language_modelling", "data": {"context": 60}, "model": {"type": "decoder"}}
    )
    tokenizer = train_tokenizer(["the quick brown fox jumps"], TokenizerConfig(type="characters"))
    config = DecoderConfig(**{**MODELS["decoder"], "positions": "rotary"})
    model = Decoder(config, vocab_size=tokenizer.vocab_size)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return Predictor(model, LanguageModelling(recipe, tokenizer))


DECODINGS = {
    "greedy": {"method": "greedy"},
    "greedy lines": {"method": "greedy", "one_line": True, "min_length": 3},
    "samples": {"method": "sample", "top_k": 9, "top_p": 0.9, "n_best": 3},
    "samples of all": {"method": "sample", "temperature": 1.5},
    "penalties": {"method": "sample", "repetition_penalty": 1.4, "no_repeat_ngram": 2},
    "beam": {"beam_size": 3},
}


@pytest.mark.parametrize("decoding", DECODINGS.values(), ids=DECODINGS)
def test_a_prepared_model_writes_what_the_model_writes(wide, decoding, monkeypatch):
    prompts, decoding = ["the", "", "qu"], DecodingConfig(max_tokens=70, **decoding)
    models = []

    def recorded(model):
        models.append(prepared(model))
        return models[-1]

    monkeypatch.setattr(preparation, "prepared", recorded)
    monkeypatch.setattr(wide.use, "preparation", preparation.Preparation())
    continued = [continuations(wide, prompt, decoding) for prompt in prompts]
    assert [type(each) for each in models] == [PreparedDecoder]  # once for all prompts
    monkeypatch.setattr(preparation.Preparation, "of", lambda self, model: model.eval())
    assert continued == [continuations(wide, prompt, decoding) for prompt in prompts]
    assert len({text for texts in continued for text in texts}) >= 3


@pytest.mark.parametrize("decoding", DECODINGS.values(), ids=DECODINGS)
@pytest.mark.parametrize("most", [5, 70])
def test_prompts_of_different_lengths_get_what_each_gets_alone(wide, decoding, most):
    decoding = DecodingConfig(max_tokens=most, batch_tokens=900, **decoding)
    prompts = ["the quick", "", "fox", "j", "brown fox jumps the brown quick fox " * 2, "fox"]
    outputs = continuations_of(wide, prompts, decoding)
    assert outputs == [continuations(wide, prompt, decoding) for prompt in prompts]
    assert continuations_of(wide, [], decoding) == []


def test_samples_differ_and_are_drawn_again_alike(home):
    continuer = Predictor.load(home / "recurrent")
    decoding = DecodingConfig(method="sample", n_best=3, max_tokens=9)
    samples = continuations(continuer, "b", decoding)
    assert len(set(samples)) > 1
    assert samples == continuations(continuer, "b", decoding)
    assert samples != continuations(continuer, "b", decoding.changed(seed=1))


def test_a_beam_is_as_long_as_it_is_to_be_and_keeps_its_beginning(home):
    continuer = Predictor.load(home / "decoder")
    decoding = DecodingConfig(beam_size=3, max_tokens=13, prefix="cab")
    (text,) = continuations(continuer, "a", decoding)
    assert len(text) == 13
    assert text.startswith("cab")
    assert text.count("cab") < 4


def test_what_cannot_be_is_named(home, tmp_path):
    continuer = Predictor.load(home / "decoder")
    with pytest.raises(SettingError, match="n_best must be 1 for a language model unless samples"):
        continuations(continuer, "a", DecodingConfig(n_best=2))
    with pytest.raises(SettingError, match="method must be greedy or sample, and n_best 1"):
        continuer.stream("a", DecodingConfig())
    with pytest.raises(RunError):
        Predictor.load(tmp_path)


def test_predict_continues_lines(home, tmp_path, capsys):
    (tmp_path / "prompts.txt").write_text("ab\nba\n", "utf-8")
    arguments = ["predict", str(home / "decoder"), str(tmp_path / "prompts.txt")]
    assert run_command(arguments) == 0
    (first, second) = (continuations(Predictor.load(home / "decoder"), p)[0] for p in ("ab", "ba"))
    assert capsys.readouterr().out == f"ab{first}\n\nba{second}\n\n"
    assert run_command([*arguments, "--output-format", "jsonl", "--max-tokens", "3"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["prompt"] for line in lines] == ["ab", "ba"]
    assert lines[0]["continuations"] == [first[:3]]
    assert run_command([*arguments, "--method", "sample", "--n-best", "2", "--one-line"]) == 0
    assert len(capsys.readouterr().out.split("\n\n")) == 5
    assert run_command([*arguments, "--score"]) == 0
    assert [float(line) > 0 for line in capsys.readouterr().out.split()] == [True, True]
    assert run_command([*arguments, "--attention"]) == 2
    assert "--attention must be left out for a language model" in capsys.readouterr().err
