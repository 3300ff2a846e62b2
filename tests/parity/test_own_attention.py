"""Models that compute their own attention: what is watched is what output_attentions gives."""

import pytest
import torch
import transformers as hf
from tests.parity.hugging_face_models import SMALL, TWO_SIDED, B, C, F, H, N, T, V, padding
from tests.unit.interop.tiny_models import watched
from torch.testing import assert_close

import regard as rg
from regard.errors import SettingError

pytestmark = [pytest.mark.parity, pytest.mark.slow]

BANDED = {"attention_window": 4, "max_position_embeddings": 60, "pad_token_id": 1}
OTHERS = {"bos_token_id": 2, "eos_token_id": None}

# The model, its configuration, and whether it writes.
READERS = {
    "deberta": ("DebertaForMaskedLM", "DebertaConfig", SMALL),
    "deberta_v2": (
        "DebertaV2ForMaskedLM", "DebertaV2Config",
        {**SMALL, "relative_attention": True, "pos_att_type": ["p2c", "c2p"]},
    ),
    "mpnet": ("MPNetForMaskedLM", "MPNetConfig", SMALL),
    "longformer": ("LongformerForMaskedLM", "LongformerConfig", SMALL | BANDED),
    "funnel": (
        "FunnelModel", "FunnelConfig",
        {
            "vocab_size": V, "block_sizes": [1, 1], "num_decoder_layers": 1, "d_model": C,
            "n_head": H, "d_head": 6, "d_inner": F,
        },
    ),
    "xlnet": (
        "XLNetModel", "XLNetConfig",
        {"vocab_size": V, "d_model": C, "n_layer": 2, "n_head": H, "d_inner": F},
    ),
}  # fmt: skip
WRITERS = {
    "gpt_neo": (
        "GPTNeoForCausalLM", "GPTNeoConfig",
        {
            "vocab_size": V, "hidden_size": C, "num_layers": 2, "num_heads": H, "window_size": 4,
            "attention_types": [[["global", "local"], 1]], "intermediate_size": F, **OTHERS,
        },
    ),
    "bloom": (
        "BloomForCausalLM", "BloomConfig",
        {"vocab_size": V, "hidden_size": C, "n_layer": 2, "n_head": H, **OTHERS},
    ),
    "falcon": (
        "FalconForCausalLM", "FalconConfig",
        {
            "vocab_size": V, "hidden_size": C, "num_hidden_layers": 2, "num_attention_heads": H,
            "alibi": False, **OTHERS,
        },
    ),
}  # fmt: skip
PAIRS = {
    "led": ("LEDForConditionalGeneration", "LEDConfig", TWO_SIDED | {"attention_window": 4}),
    "fsmt": (
        "FSMTForConditionalGeneration", "FSMTConfig",
        {
            **{name: size for name, size in TWO_SIDED.items() if name != "vocab_size"},
            "langs": ["a", "b"], "src_vocab_size": V, "tgt_vocab_size": V,
        },
    ),
}  # fmt: skip
FAMILIES = READERS | WRITERS | PAIRS


def make(name):
    torch.manual_seed(0)
    model, config, options = FAMILIES[name]
    instance = getattr(hf, model)(getattr(hf, config)(**options)).eval()
    with torch.no_grad():
        for parameter in instance.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.2)
    return instance


def inputs(name, side="right"):
    mask = padding(side)
    ids = torch.randint(3, V, (B, N)).masked_fill(mask == 0, 1)
    batch = {"input_ids": ids, "attention_mask": mask}
    if name in PAIRS:
        batch["decoder_input_ids"] = torch.randint(3, V, (B, T))
    return batch


def model_that_gives(model, batch):
    """Its outputs with all weights: those of Falcon need the mask of its eager attention."""
    model.config._attn_implementation = "eager"
    return model(**batch, output_attentions=True)


def weights_of(name, output):
    """The weights by kind and layer, as the model gives them."""
    by_kind = {"cross": output.get("cross_attentions")}
    if name in PAIRS:
        by_kind |= {kind: output[f"{kind}_attentions"] for kind in ("encoder", "decoder")}
    else:
        by_kind["decoder" if name in WRITERS else "encoder"] = output.attentions
    return {(kind, n): each for kind, all_ in by_kind.items() for n, each in enumerate(all_ or ())}


def from_band(weights, others, is_global, reach):
    """Longformer's own weights as its documentation describes them, number by number."""
    matrix = torch.zeros(B, H, N, N)
    global_keys = [row.nonzero().flatten().tolist() for row in is_global]
    x = max(map(len, global_keys))
    for b in range(B):
        for query in range(N):
            for number, key in enumerate(global_keys[b]):
                matrix[b, :, query, key] += weights[b, :, query, number]
            for step in range(-reach, reach + 1):
                if 0 <= query + step < N:
                    matrix[b, :, query, query + step] += weights[b, :, query, x + reach + step]
        for number, query in enumerate(global_keys[b]):
            for key in range(N):
                matrix[b, :, query, key] = others[b, :, key, number]
    return matrix


@pytest.mark.parametrize("name", FAMILIES)
@torch.no_grad()
def test_what_is_watched_is_exactly_what_output_attentions_gives(name):
    model, batch = make(name), inputs(name)
    plain = model(**batch)
    with rg.watch(model, keep=True, top=3) as seen:
        out = model(**batch)
    eager = model_that_gives(model, batch)
    assert list(out) == list(plain)
    assert_close(out[0], plain[0], atol=1e-5, rtol=1e-5)
    expected = weights_of(name, eager)
    if name in ("longformer", "led"):
        none = torch.zeros(B, N, dtype=torch.bool)
        expected |= {
            key: from_band(weights, None, none, 2)
            for key, weights in expected.items()
            if key[0] == "encoder"
        }
    assert {(each.kind, each.layer) for each in seen} == set(expected)
    for each in seen:
        weights = expected[each.kind, each.layer]
        rows = seen.rows(each.layer, range(weights.shape[-2]), each.kind)
        assert torch.equal(rows, weights)
        assert_close(each.summary.top_weights, weights.topk(3).values, atol=0, rtol=0)
        entropy = -(weights * weights.clamp_min(1e-30).log()).sum(-1)
        assert_close(each.summary.entropy, entropy, atol=1e-5, rtol=0)
        assert each.notes == (
            "read from output_attentions: the model makes all N×M weights, "
            f"{4 * weights.numel():,} bytes here",
        )
    assert "the model makes all N×M weights" in repr(seen)
    assert not hasattr(model(**batch), "attentions") or model(**batch).attentions is None


def test_every_attention_is_named_by_the_module_that_makes_it():
    def names(name):
        return [each.name for each in watched(make(name), inputs(name))]

    assert names("deberta") == [f"deberta.encoder.layer.{n}.attention.self" for n in (0, 1)]
    assert names("gpt_neo") == [f"transformer.h.{n}.attn.attention" for n in (0, 1)]
    assert names("longformer") == [f"longformer.encoder.layer.{n}.attention.self" for n in (0, 1)]
    assert names("fsmt")[::2] == [
        "model.encoder.layers.0.self_attn",
        "model.decoder.layers.0.self_attn",
        "model.decoder.layers.0.encoder_attn",
    ]


@pytest.mark.parametrize("name", ["longformer", "led"])
@torch.no_grad()
def test_global_positions_are_put_at_their_rows_and_columns(name):
    model, batch = make(name), inputs(name)
    is_global = torch.zeros(B, N, dtype=torch.bool)
    is_global[0, [0, 3]] = is_global[1, [2, 7, 12]] = True
    batch["global_attention_mask"] = is_global.long()
    expected = model(**batch, output_attentions=True)
    seen = watched(model, batch, keep=True, kinds="encoder")
    local, global_weights = (
        (expected.encoder_attentions, expected.encoder_global_attentions)
        if name == "led"
        else (expected.attentions, expected.global_attentions)
    )
    for layer in (0, 1):
        rows = seen.rows(layer, range(N))
        assert torch.equal(rows, from_band(local[layer], global_weights[layer], is_global, 2))
        real = batch["attention_mask"].bool()[:, None].expand(B, H, N)
        assert_close(rows.sum(-1)[real], torch.ones(int(real.sum())))


@pytest.mark.parametrize("name", WRITERS)
@torch.no_grad()
def test_the_steps_of_a_generation_are_joined(name):
    model, batch = make(name), {"input_ids": torch.randint(3, V, (1, 5))}
    options = {"max_new_tokens": 4, "do_sample": False, "pad_token_id": 0}
    expected = model.generate(**batch, **options)
    with rg.watch(model, keep=True) as seen:
        out = model.generate(**batch, **options)
    assert out.tolist() == expected.tolist()
    assert [(each.kind, each.layer, each.call) for each in seen] == [
        ("decoder", 0, 0),
        ("decoder", 1, 0),
    ]
    expected_weights = model_that_gives(model, {"input_ids": out[:, :-1]}).attentions
    for layer in (0, 1):
        assert_close(seen.rows(layer, range(8)), expected_weights[layer], atol=1e-5, rtol=1e-5)


def test_what_gives_no_weights_is_refused_with_the_reason():
    ids = {"input_ids": torch.randint(3, V, (1, N))}
    scores = hf.SqueezeBertModel(
        hf.SqueezeBertConfig(**SMALL, embedding_size=C, q_groups=1, k_groups=1, v_groups=1)
    )
    with pytest.raises(SettingError, match=r"sums to one; got rows that sum .* SqueezeBertSelfAtt"):
        watched(scores.eval(), ids)
    states = hf.RwkvModel(
        hf.RwkvConfig(vocab_size=V, hidden_size=C, num_hidden_layers=2, attention_hidden_size=C)
    )
    with pytest.raises(SettingError, match=r"weights of \(B, H, N, M\); got \(1, 13, 36\) from Rw"):
        watched(states.eval(), ids)
    with pytest.raises(SettingError, match=r"by name for its weights to be read; got a tuple from"):
        watched(make("bloom"), inputs("bloom") | {"return_dict": False})


def test_its_attention_is_neither_served_nor_edited():
    message = (
        "BloomForCausalLM, which computes its own. It can be watched, and neither served nor ed"
    )
    with pytest.raises(SettingError, match=message):
        rg.use(make("bloom"))
    with pytest.raises(SettingError, match=message), rg.edit(make("bloom")):
        pass


def test_it_is_explained_where_a_token_stands_in_for_another():
    model, batch = make("deberta"), {"input_ids": torch.randint(3, V, (1, N))}
    with pytest.raises(SettingError, match="replacement must be a token, such as the mask, for a"):
        rg.faithfulness(model, batch)
    explained = rg.faithfulness(model, batch, (4, None), replacement=2)
    weights = torch.stack(model(**batch, output_attentions=True).attentions)
    assert_close(explained.evidence["attention"], weights.mean((0, 2))[0, 4])
    assert explained.evidence["removed"].abs().max() > 1e-3
