"""Models of Hugging Face with the engine in them give what their own eager attention gives."""

import sys
from collections import Counter

import pytest
import torch
from tests.parity.hugging_face_models import FAMILIES, WRITERS, B, H, V, inputs, make, places, real
from tests.profiling import profiled
from torch.testing import assert_close

import regard as rg

pytestmark = [pytest.mark.parity, pytest.mark.slow]

CLOSE = {"atol": 1e-5, "rtol": 1e-5}
SIDES = [
    (name, side)
    for name, family in FAMILIES.items()
    for side in (("none", "left", "right") if family.kind in ("text", "pairs") else ("none",))
]
NAMES = {"encoder": "encoder_attentions", "decoder": "decoder_attentions"}


def eager_weights(name, output):
    """The weights (B, H, N, M) of every kind and layer, as the model gives them."""
    by_kind = {"cross": output.get("cross_attentions")}
    if FAMILIES[name].kind in ("pairs", "sounds"):
        by_kind |= {kind: output[key] for kind, key in NAMES.items()}
    else:
        by_kind["decoder" if name in WRITERS else "encoder"] = output.attentions
    return {
        (kind, layer): weights
        for kind, layers in by_kind.items()
        for layer, weights in enumerate(layers or ())
    }


def assert_summary_is_of(summary, weights, counted):
    """All that a summary says, from the weights themselves; rows that do not count are left out."""
    assert_close(summary.pooled, weights * counted[:, None, :, None], **CLOSE)
    assert_close(summary.received, summary.pooled.sum(dim=-2), **CLOSE)
    K = summary.top_keys.shape[-1]
    want = {
        "entropy": -(weights * weights.clamp_min(1e-30).log()).sum(-1),
        "first": weights[..., 0],
        "top_weights": weights.topk(K, dim=-1).values,
    }
    for field, expected in want.items():
        chosen = counted[:, None].expand(expected.shape[:3])
        assert_close(getattr(summary, field)[chosen], expected[chosen], **CLOSE)


def counted_of(name, batch, kind):
    if kind == "encoder" and "attention_mask" in batch:
        return batch["attention_mask"].bool()
    if kind == "encoder":
        return torch.ones(B, 11 if FAMILIES[name].kind == "sounds" else 10, dtype=torch.bool)
    return real(name, batch)


@pytest.mark.parametrize(("name", "side"), SIDES)
def test_outputs_and_summaries_are_those_of_the_eager_model(name, side):
    model, batch = make(name), inputs(name, side)
    with torch.no_grad():
        expected = model(**batch, output_attentions=True)
        with rg.watch(model, top=3) as watched:
            out = model(**batch)
    chosen = real(name, batch)
    assert_close(out[0][chosen], expected[0][chosen], **CLOSE)
    weights = eager_weights(name, expected)
    assert {(each.kind, each.layer) for each in watched} == set(weights)
    for each in watched:
        summary = each.summary
        assert max(summary.bucket) == 1
        counted = counted_of(name, batch, each.kind)
        assert_summary_is_of(summary, weights[each.kind, each.layer], counted)


@pytest.mark.parametrize("name", WRITERS)
def test_a_cached_generation_is_that_of_the_eager_model_and_joined(name):
    model, batch = make(name), inputs(name, "left")
    batch = {key: batch[key] for key in ("input_ids", "attention_mask")}
    options = {"max_new_tokens": 7, "do_sample": False, "pad_token_id": FAMILIES[name].pad_id}
    with torch.no_grad():
        expected = model.generate(**batch, **options)
        with rg.watch(model, top=1) as watched:
            out = model.generate(**batch, **options)
        assert out.tolist() == expected.tolist()
        if FAMILIES[name].kind == "pairs":
            full_batch = {**batch, "decoder_input_ids": out[:, :-1]}
        else:
            mask = torch.cat([batch["attention_mask"], torch.ones(B, 6, dtype=torch.long)], dim=1)
            full_batch = {
                "input_ids": out[:, :-1],
                "attention_mask": mask,
                "position_ids": places(mask),
            }
        weights = eager_weights(name, model(**full_batch, output_attentions=True))
    assert Counter((each.kind, each.layer, each.call) for each in watched) == Counter(
        (kind, layer, 0) for kind, layer in weights
    )
    for each in watched:
        counted = counted_of(name, full_batch, each.kind)
        assert_summary_is_of(each.summary, weights[each.kind, each.layer], counted)


@pytest.mark.parametrize("cache", ["static", None])
@pytest.mark.parametrize("name", ["llama", "mistral", "gemma2", "t5"])
def test_generation_with_other_caches(name, cache):
    model, batch = make(name), inputs(name, "left")
    batch = {key: batch[key] for key in ("input_ids", "attention_mask")}
    options = {"max_new_tokens": 5, "do_sample": False, "pad_token_id": 0}
    options |= {"use_cache": False} if cache is None else {"cache_implementation": cache}
    expected = model.generate(**batch, **options)
    rg.use(model)
    assert model.generate(**batch, **options).tolist() == expected.tolist()


@pytest.mark.parametrize("name", FAMILIES)
def test_gradients_in_training_are_those_of_the_eager_model(name):
    model, batch = make(name).train(), inputs(name, "right")
    chosen = real(name, batch)
    grads = []
    for prepare in (lambda model: model, rg.use):
        prepare(model).zero_grad()
        torch.manual_seed(0)
        model(**batch, use_cache=False)[0][chosen].square().mean().backward()
        grads.append({n: p.grad for n, p in model.named_parameters() if p.grad is not None})
    assert grads[0].keys() == grads[1].keys()
    for parameter, grad in grads[0].items():
        assert_close(grads[1][parameter], grad, msg=parameter, atol=2e-5, rtol=1e-4)


def test_dropout_of_the_model_is_the_engines_in_training():
    model = make("bert")
    for layer in model.bert.encoder.layer:
        layer.attention.self.dropout.p = 0.5
    rg.use(model)
    batch = inputs("bert")
    with torch.no_grad():
        in_evaluation = [model(**batch).logits for _ in range(2)]
        model.train()
        in_training = [model(**batch).logits for _ in range(2)]
    assert torch.equal(*in_evaluation)
    assert not torch.allclose(*in_training)


@pytest.mark.parametrize("name", FAMILIES)
def test_nothing_goes_through_the_eager_function_or_takes_its_memory(name, monkeypatch):
    model = make(name)

    def refuse(*args, **options):
        1 / 0  # noqa: B018  (names nothing, which would be a formula that is not understood)

    for home in {type(module).__module__ for module in model.modules()}:
        if hasattr(sys.modules[home], "eager_attention_forward"):
            monkeypatch.setattr(sys.modules[home], "eager_attention_forward", refuse)
    batch = inputs(name)
    with torch.no_grad(), pytest.raises(ZeroDivisionError):
        model(**batch)
    length, kind = 997, FAMILIES[name].kind
    if kind == "text":
        batch = {"input_ids": torch.randint(3, V, (1, length))}
    elif kind == "pairs":
        batch = {
            key: torch.randint(3, V, (1, length)) for key in ("input_ids", "decoder_input_ids")
        }
    elif kind == "sounds":
        batch = {**inputs(name), "decoder_input_ids": torch.randint(3, V, (B, length))}

    calls = []

    def watch():
        with torch.no_grad(), rg.watch(model) as watched:
            model(**batch)
        calls.append(len(watched))

    profile = profiled(watch)
    assert calls == [2 * (3 if kind in ("pairs", "sounds") else 1)]
    # The weights of all heads of one layer; a T5 makes so much of its position bias by itself.
    if name != "t5":
        assert profile.largest < H * length * length * 4 / 2
