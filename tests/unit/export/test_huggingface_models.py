"""Models in transformers: the same logits and outputs there, and back here."""

import json
import re

import pytest
import torch
import transformers
from tests.unit.export.random_runs import (
    LEARNED,
    LLAMA,
    PAIRS,
    PRE,
    classifier,
    language_model,
    masked_model,
    opened,
    tagger,
    translator,
)

from regard.export import export_run
from regard.export.huggingface import HuggingFace
from regard.interop import load_checkpoint

pytestmark = pytest.mark.slow


def loaded_back(folder):
    back = load_checkpoint(folder)
    assert not back.absent
    assert not back.unused
    return back.model


def exported(folder, kind):
    """A run as transformers opens it, saved there and opened again, and both back here."""
    export_run(folder / "run", "huggingface", folder / "out")
    theirs = opened(folder / "out", kind)
    theirs.save_pretrained(folder / "again")
    again = opened(folder / "again", kind)
    return (theirs, again), [loaded_back(folder / name) for name in ("out", "again")]


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
    (theirs, reloaded), imported = exported(tmp_path, "AutoModelForCausalLM")
    assert theirs.config.model_type == layout
    ids = torch.randint(4, predictor.task.tokenizer.vocab_size, (3, 11))
    with torch.no_grad():
        expected = predictor.model.project(predictor.model(ids))
        outputs = [each(input_ids=ids).logits for each in (theirs, reloaded)]
        outputs += [model_of_ours.project(model_of_ours(ids)) for model_of_ours in imported]
    for each in outputs:
        torch.testing.assert_close(each, expected, atol=1e-4, rtol=0)


@pytest.mark.parity
@pytest.mark.parametrize("one_line", [True, False])
def test_generate_continues_as_ours_does(tmp_path, one_line):
    model = LLAMA | {"tie_embeddings": False}  # a table of its own says something else than before
    predictor = language_model(tmp_path / "run", decoding={"one_line": one_line}, **model)
    export_run(tmp_path / "run", "huggingface", tmp_path / "out")
    theirs = opened(tmp_path / "out", "AutoModelForCausalLM")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    for prompt in ("I lo", "This is", "W"):
        batch = tokenizer([prompt], return_tensors="pt")
        assert batch["input_ids"].tolist() == [[3, *predictor.task.tokenizer.encode(prompt)]]
        (ids,) = theirs.generate(**batch).tolist()
        (prediction,) = predictor.predict(prompt)
        text = tokenizer.decode(ids[1:]).replace("</s>", "\n")
        assert text.removesuffix("\n") == prediction.text().removesuffix("\n")


@pytest.mark.parity
@pytest.mark.parametrize(
    ("tokenizer", "model", "asks"),
    [
        ({}, {}, True),
        ({"type": "characters"}, {"num_segments": 0, "norm_eps": 1e-3}, False),
        ({"type": "unigram"}, {"num_segments": 1}, False),
    ],
)
def test_a_masked_language_model_predicts_alike(tmp_path, tokenizer, model, asks):
    data = {"next_sentence": asks}
    predictor = masked_model(tmp_path / "run", data=data, tokenizer=tokenizer, **model)
    export_run(tmp_path / "run", "huggingface", tmp_path / "out")
    kind = transformers.AutoModelForPreTraining
    theirs, info = kind.from_pretrained(tmp_path / "out", output_loading_info=True)
    assert not any(info.values())
    theirs.eval().save_pretrained(tmp_path / "again")
    reloaded = kind.from_pretrained(tmp_path / "again").eval()
    imported = load_checkpoint(tmp_path / "again").model
    tokenize = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    assert ("token_type_ids" in tokenize("a")) == asks
    task, ours = predictor.task, predictor.model
    for text in ("I love [MASK].", "This is [MASK] [MASK]! </s>", "[MASK]"):
        (encoded,) = task.encode([task.request(text, "here")])
        batch, inputs = task.collate([encoded]), tokenize(text, return_tensors="pt")
        assert inputs["input_ids"].tolist() == batch["ids"].tolist()
        with torch.no_grad():
            states = ours(batch["ids"], batch["lengths"])
            outputs = [each(**inputs) for each in (theirs, reloaded)]
            words = [each.prediction_logits for each in outputs]
            words.append(imported.project(imported(batch["ids"], batch["lengths"])))
            for each in words:
                torch.testing.assert_close(each, ours.project(states), atol=1e-4, rtol=0)
            for each in outputs:
                follows = each.seq_relationship_logits
                torch.testing.assert_close(follows, ours.follows(states), atol=1e-4, rtol=0)


@pytest.mark.parity
@pytest.mark.parametrize(
    ("tokenizer", "model"),
    [
        ({"type": "bpe", "may_shrink": True}, {}),
        ({"type": "characters", "begin": True}, {"positions": "sinusoidal", "num_segments": 0}),
        (None, {"num_segments": 0}),
    ],
)
def test_a_tagger_tags_alike(tmp_path, tokenizer, model):
    predictor = tagger(tmp_path / "run", tokenizer=tokenizer, **model)
    (theirs, reloaded), imported = exported(tmp_path, "AutoModelForTokenClassification")
    assert theirs.config.id2label == dict(enumerate(predictor.task.tags))
    for _, text in PAIRS:
        batch = predictor.task.collate(predictor.task.encode([predictor.task.request(text, "")]))
        ids, lengths = batch["ids"], batch["lengths"]
        if tokenizer is not None:
            tokenize = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
            assert tokenize(text)["input_ids"] == ids[0].tolist()
        with torch.no_grad():
            expected = predictor.model(ids, lengths)
            outputs = [each(input_ids=ids).logits for each in (theirs, reloaded)]
            outputs += [model_of_ours(ids, lengths) for model_of_ours in imported]
        for each in outputs:
            torch.testing.assert_close(each, expected, atol=1e-4, rtol=0)


@pytest.mark.parity
@pytest.mark.parametrize(
    ("tokenizer", "model"),
    [
        ({"begin": True}, {}),
        ({}, {"positions": "sinusoidal"}),
        ({"begin": True}, {"num_segments": 0}),
    ],
)
def test_a_classifier_classifies_alike(tmp_path, tokenizer, model):
    predictor = classifier(tmp_path / "run", tokenizer=tokenizer, **model)
    (theirs, reloaded), (_, imported) = exported(tmp_path, "AutoModelForSequenceClassification")
    tokenize = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    batch = tokenize([text for _, text in PAIRS], padding=True, return_tensors="pt")
    predictions = predictor.predict([text for _, text in PAIRS])
    with torch.no_grad():
        for logits in (
            theirs(**batch).logits,
            reloaded(**batch).logits,
            imported(batch["input_ids"], batch["attention_mask"].sum(1)),
        ):
            for row, answer in zip(logits.softmax(-1).tolist(), predictions, strict=True):
                probabilities = {
                    theirs.config.id2label[index]: probability
                    for index, probability in enumerate(row)
                }
                assert probabilities == pytest.approx(answer.probabilities, abs=1e-4)


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
        ("marian", {"tie_embeddings": "none", "num_key_heads": 2}, {}),
        ("marian", {"tie_embeddings": "target"}, {"shared": False}),
        ("marian", {"tie_embeddings": "none", "own_positions": True}, {"shared": False}),
        ("pegasus", PRE | {"activation": "silu"}, {}),
        ("pegasus", PRE | {"model_dim": 15, "num_heads": 3, "scale_embeddings": False}, {}),
        ("blenderbot", PRE | LEARNED, {}),
        ("blenderbot", PRE | LEARNED | {"own_positions": True, "output_bias": True}, {}),
        ("bart", LEARNED | {"embedding_norm": True, "activation": "gelu"}, {}),
    ],
)
def test_a_translator_has_the_same_logits_there_again_there_and_here(
    tmp_path, layout, model, tokenizer
):
    predictor = translator(tmp_path / "run", tokenizer=tokenizer, **model)
    (theirs, reloaded), imported = exported(tmp_path, "AutoModelForSeq2SeqLM")
    assert theirs.config.model_type == layout
    source, lengths, target = a_batch(predictor)
    inputs = {"input_ids": source, "decoder_input_ids": target}
    inputs["attention_mask"] = (torch.arange(source.shape[1]) < lengths[:, None]).long()
    with torch.no_grad():
        expected, *outputs = (
            each.project(each(source, lengths, target)[0]) for each in (predictor.model, *imported)
        )
        outputs += [each(**inputs).logits for each in (theirs, reloaded)]
    for each in outputs:
        torch.testing.assert_close(each, expected, atol=1e-4, rtol=0)


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
    translations = predictor.translate(sources, beam_size=beam_size, length_penalty=0.0)
    for source, (best, *_) in zip(sources, translations, strict=True):
        batch = tokenizer([source], return_tensors="pt")
        most = int(batch["input_ids"].shape[1] * predictor.decoding.max_ratio) + 10
        (ids,) = theirs.generate(
            **batch, num_beams=beam_size, length_penalty=0.0, max_new_tokens=most
        ).tolist()
        assert ids[0] == 2
        assert tuple(ids[1:-1] if ids[-1] == 3 else ids[1:]) == best.tokens
        assert tokenizer.decode(ids, skip_special_tokens=True) == best.text


@pytest.mark.parametrize(
    ("make", "settings", "reason"),
    [
        (language_model, {"positions": "alibi"}, "model.positions is 'alibi', and"),
        (language_model, {"norm": "post"}, "model.norm is 'post', and"),
        (language_model, {"window": 3}, "model.window is 3, and"),
        (language_model, {"norm_kind": "rms"}, "model.norm_kind is 'rms', and"),
        (
            language_model,
            {"activation": "swiglu"},
            "model.activation is 'swiglu', and .* learned positions",
        ),
        (language_model, {"num_key_heads": 2}, "model.num_key_heads is 2, and"),
        (
            language_model,
            LLAMA | {"norm_kind": "layer"},
            "model.activation is 'swiglu', and .* unless norm_kind",
        ),
        (language_model, LLAMA | {"activation": "gelu"}, "model.norm_kind is 'rms', and"),
        (language_model, LLAMA | {"window": 3}, "model.window is 3, and"),
        (
            language_model,
            {"type": "recurrent"},
            r"it is a recurrent model \(model.type = 'recurrent'\), which",
        ),
        (masked_model, {"positions": "rotary"}, "model.positions is 'rotary', and"),
        (masked_model, {"positions": "sinusoidal"}, "model.positions is 'sinusoidal', and"),
        (masked_model, {"norm": "pre"}, "model.norm is 'pre', and"),
        (masked_model, {"norm_kind": "rms"}, "model.norm_kind is 'rms', and"),
        (masked_model, {"activation": "relu"}, "model.activation is 'relu', and"),
        (tagger, {"head": {"crf": True}}, "head.crf is true, and"),
        (tagger, {"parts": "bag"}, "model.parts is 'bag', and"),
        (classifier, {"head": {"pooling": "mean"}}, "head.pooling is 'mean', and"),
        (classifier, {"head": {"pooler": False}}, "head.pooler is false, and"),
        (translator, {"positions": "rotary"}, "model.positions is 'rotary', and"),
        (translator, {"norm_kind": "rms"}, "model.norm_kind is 'rms', and .* layer norms"),
        (translator, {"norm_eps": 1e-6}, "model.norm_eps is 1e-06, and"),
        (translator, {"num_key_heads": 1}, "model.num_key_heads is 1, and"),
        (translator, {"activation": "swiglu"}, "model.activation is 'swiglu', and"),
        (translator, {"score": "additive"}, "model.score is 'additive', and"),
        (translator, {"window": 3}, "model.window is 3, and"),
        (translator, {"source_begin": True}, "model.source_begin is true, and"),
        (translator, {"values": "embeddings"}, "model.values is 'embeddings', and"),
        (translator, {"copy": True}, "model.copy is true, and"),
        (translator, {"embedding_norm": True}, "model.embedding_norm is true, which none of"),
        (translator, LEARNED, "model.embedding_norm is false, which none of .* learned positions"),
        (translator, PRE | {"tie_embeddings": "target"}, "model.tie_embeddings is 'target', and"),
        (
            translator,
            PRE | {"tokenizer": {"shared": False}},
            "source and target have a vocabulary each",
        ),
    ],
)
def test_what_no_layout_holds_is_refused_by_the_option(make, settings, reason):
    assert re.match(reason, HuggingFace().refuse(make(None, **settings)))


def test_its_settings_are_ours(tmp_path):
    translator(tmp_path / "run", attention_dropout=0.25)
    export_run(tmp_path / "run", "huggingface", tmp_path / "out")
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert config["attention_dropout"] == 0.25
    assert config["architectures"] == ["MarianMTModel"]
    search = json.loads((tmp_path / "out" / "generation_config.json").read_text())
    assert search["num_beams"] == 5
    assert search["suppress_tokens"] == [0, 1, 2]
