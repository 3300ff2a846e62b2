"""Translators in transformers: the same logits and outputs there, and back here."""

import json
import re

import pytest
import torch
import transformers
from tests.unit.export.random_runs import (
    LEARNED,
    PAIRS,
    PRE,
    opened,
    translator,
)

from regard.export import export_run
from regard.export.huggingface import HuggingFace
from regard.interop import load_checkpoint

pytestmark = pytest.mark.slow


def logits_here(model, source, lengths, target):
    with torch.no_grad():
        return model.project(model(source, lengths, target)[0])


def logits_there(model, source, lengths, target):
    mask = (torch.arange(source.shape[1]) < lengths[:, None]).long()
    with torch.no_grad():
        return model(input_ids=source, attention_mask=mask, decoder_input_ids=target).logits


def a_batch(predictor):
    generator = torch.Generator().manual_seed(1)
    sizes = predictor.tokenizer.source.vocab_size, predictor.tokenizer.target.vocab_size
    lengths = torch.tensor([11, 3, 7])
    source = torch.randint(4, sizes[0], (3, 11), generator=generator)
    source = source.masked_fill(torch.arange(11) >= lengths[:, None], 0)
    target = torch.randint(4, sizes[1], (3, 5), generator=generator)
    target[:, 0] = 2
    return source, lengths, target


@pytest.mark.parity
@pytest.mark.parametrize(
    ("layout", "model", "tokenizer"),
    [
        ("marian", {}, {}),
        ("marian", {"activation": "gelu_tanh", "output_bias": True, "norm_eps": 1e-5}, {}),
        ("marian", {"tie_embeddings": "target", "scale_embeddings": False}, {}),
        ("marian", {"tie_embeddings": "none", "num_key_heads": 2}, {}),
        ("marian", {"tie_embeddings": "target"}, {"shared": False}),
        ("marian", {}, {"shared": False}),
        ("marian", {"tie_embeddings": "none", "own_positions": True}, {"shared": False}),
        ("pegasus", PRE | {"activation": "silu"}, {}),
        ("pegasus", PRE | {"model_dim": 15, "num_heads": 3}, {}),
        ("blenderbot", PRE | LEARNED, {}),
        ("blenderbot", PRE | LEARNED | {"own_positions": True, "output_bias": True}, {}),
        ("bart", LEARNED | {"embedding_norm": True, "activation": "gelu"}, {}),
    ],
)
def test_a_translator_has_the_same_logits_there_again_there_and_here(
    tmp_path, layout, model, tokenizer
):
    predictor = translator(tmp_path / "run", tokenizer=tokenizer, **model)
    export_run(tmp_path / "run", "huggingface", tmp_path / "out")
    batch = a_batch(predictor)
    wanted = logits_here(predictor.model, *batch)
    theirs = opened(tmp_path / "out")
    assert theirs.config.model_type == layout
    theirs.save_pretrained(tmp_path / "again")
    back = load_checkpoint(tmp_path / "out")
    assert not back.absent
    assert not back.unused
    for found in (
        logits_there(theirs, *batch),
        logits_there(opened(tmp_path / "again"), *batch),
        logits_here(back.model, *batch),
        logits_here(load_checkpoint(tmp_path / "again").model, *batch),
    ):
        torch.testing.assert_close(found, wanted, atol=1e-4, rtol=0)


@pytest.mark.parity
@pytest.mark.parametrize(
    ("model", "beam_size"),
    [({}, 1), ({}, 4), (PRE, 3), (PRE | LEARNED, 2)],
    ids=["marian, greedy", "marian", "pegasus", "blenderbot"],
)
def test_generate_writes_what_our_search_writes(tmp_path, model, beam_size):
    predictor = translator(tmp_path / "run", **model)
    export_run(tmp_path / "run", "huggingface", tmp_path / "out")
    theirs = opened(tmp_path / "out")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    sources = [source for source, _ in PAIRS[:3]]
    found = predictor.translate(sources, beam_size=beam_size, length_penalty=0.0)
    for source, (best, *_) in zip(sources, found, strict=True):
        batch = tokenizer([source], return_tensors="pt")
        most = int(batch["input_ids"].shape[1] * predictor.decoding.max_ratio) + 10
        (ids,) = theirs.generate(
            **batch, num_beams=beam_size, length_penalty=0.0, max_new_tokens=most
        ).tolist()
        assert ids[0] == 2
        assert tuple(ids[1:-1] if ids[-1] == 3 else ids[1:]) == best.tokens
        assert tokenizer.decode(ids, skip_special_tokens=True) == best.text


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"positions": "rotary"}, "model.positions is 'rotary', and"),
        ({"positions": "alibi"}, "model.positions is 'alibi', and"),
        ({"positions": "relative"}, "model.positions is 'relative', and"),
        ({"positions": "t5"}, "model.positions is 't5', and"),
        ({"positions": "none"}, "model.positions is 'none', and"),
        ({"norm_kind": "rms"}, "model.norm_kind is 'rms', and .* layer norms"),
        ({"norm_kind": "batch"}, "model.norm_kind is 'batch', and"),
        ({"norm_eps": 1e-6}, "model.norm_eps is 1e-06, and"),
        ({"num_key_heads": 1}, "model.num_key_heads is 1, and"),
        ({"activation": "swiglu"}, "model.activation is 'swiglu', and"),
        ({"score": "additive"}, "model.score is 'additive', and"),
        ({"window": 3}, "model.window is 3, and"),
        ({"source_begin": True}, "model.source_begin is true, and"),
        ({"values": "embeddings"}, "model.values is 'embeddings', and"),
        ({"copy": True}, "model.copy is true, and"),
        ({"embedding_norm": True}, "model.embedding_norm is true, which none of"),
        (LEARNED, "model.embedding_norm is false, which none of .* learned positions"),
        (PRE | {"tie_embeddings": "target"}, "model.tie_embeddings is 'target', and"),
        (PRE | {"tokenizer": {"shared": False}}, "tokenizer.shared is false, and"),
    ],
)
def test_what_no_layout_holds_is_refused_by_the_option(settings, reason):
    assert re.match(reason, HuggingFace().refuse(translator(None, **settings)))


def test_its_settings_are_ours(tmp_path):
    translator(tmp_path / "run", attention_dropout=0.25)
    export_run(tmp_path / "run", "huggingface", tmp_path / "out")
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert config["attention_dropout"] == 0.25
    assert config["architectures"] == ["MarianMTModel"]
    search = json.loads((tmp_path / "out" / "generation_config.json").read_text())
    assert search["num_beams"] == 5
    assert search["suppress_tokens"] == [0, 1, 2]
