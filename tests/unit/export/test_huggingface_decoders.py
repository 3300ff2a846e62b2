"""Language models in transformers: the same logits and outputs there, and back here."""

import re

import pytest
import torch
import transformers
from tests.unit.export.random_runs import LLAMA, language_model, opened

from regard.export import export_run
from regard.export.huggingface import HuggingFace
from regard.interop import load_checkpoint

pytestmark = pytest.mark.slow


@pytest.mark.parity
@pytest.mark.parametrize(
    ("layout", "model"),
    [
        ("gpt2", {}),
        ("gpt2", {"tie_embeddings": False, "activation": "gelu_tanh", "norm_eps": 1e-3}),
        ("gpt2", {"positions": "sinusoidal", "activation": "relu"}),
        ("gpt_neox", {"positions": "rotary"}),
        ("gpt_neox", {"positions": "rotary", "tie_embeddings": False, "norm_eps": 1e-3}),
        ("llama", LLAMA | {"num_key_heads": 2}),
        ("llama", LLAMA | {"tie_embeddings": False, "norm_eps": 1e-3}),
    ],
)
def test_a_language_model_has_the_same_logits_there_again_there_and_here(tmp_path, layout, model):
    predictor = language_model(tmp_path / "run", **model)
    export_run(tmp_path / "run", "huggingface", tmp_path / "out")
    ids = torch.randint(4, predictor.task.tokenizer.vocab_size, (3, 11))
    theirs = opened(tmp_path / "out", "AutoModelForCausalLM")
    assert theirs.config.model_type == layout
    theirs.save_pretrained(tmp_path / "again")
    with torch.no_grad():
        wanted = predictor.model.project(predictor.model(ids))
        again = opened(tmp_path / "again", "AutoModelForCausalLM")
        found = [each(input_ids=ids).logits for each in (theirs, again)]
        for name in ("out", "again"):
            back = load_checkpoint(tmp_path / name)
            assert not back.absent
            assert not back.unused
            found.append(back.model.project(back.model(ids)))
    for each in found:
        torch.testing.assert_close(each, wanted, atol=1e-4, rtol=0)


@pytest.mark.parity
@pytest.mark.parametrize("one_line", [True, False])
def test_generate_goes_on_as_ours_does(tmp_path, one_line):
    model = LLAMA | {"tie_embeddings": False}  # a table of its own says something else than before
    predictor = language_model(tmp_path / "run", decoding={"one_line": one_line}, **model)
    export_run(tmp_path / "run", "huggingface", tmp_path / "out")
    theirs = opened(tmp_path / "out", "AutoModelForCausalLM")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    for prompt in ("I lo", "This is", "W"):
        batch = tokenizer([prompt], return_tensors="pt")
        assert batch["input_ids"].tolist() == [[3, *predictor.task.tokenizer.encode(prompt)]]
        (ids,) = theirs.generate(**batch).tolist()
        (found,) = predictor.predict(prompt)
        text = tokenizer.decode(ids[1:]).replace("</s>", "\n")
        assert text.removesuffix("\n") == found.text().removesuffix("\n")


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"positions": "alibi"}, "model.positions is 'alibi', and"),
        ({"norm": "post"}, "model.norm is 'post', and"),
        ({"window": 3}, "model.window is 3, and"),
        ({"norm_kind": "rms"}, "model.norm_kind is 'rms', and"),
        ({"activation": "swiglu"}, "model.activation is 'swiglu', and .* learned positions"),
        ({"num_key_heads": 2}, "model.num_key_heads is 2, and"),
        (LLAMA | {"norm_kind": "layer"}, "model.activation is 'swiglu', and .* unless norm_kind"),
        (LLAMA | {"activation": "gelu"}, "model.norm_kind is 'rms', and"),
        (LLAMA | {"window": 3}, "model.window is 3, and"),
        ({"type": "recurrent"}, "model.type is 'recurrent' of language_modelling, which"),
    ],
)
def test_a_language_model_that_no_layout_holds_is_refused_by_the_option(settings, reason):
    assert re.match(reason, HuggingFace().refuse(language_model(None, **settings)))
