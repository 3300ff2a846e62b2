"""Scores and logits are sums over what wrote to the residual stream, in models of every shape."""

import pytest
import torch
from tests.unit.interop.tiny_models import SIZES, V, gpt2, llama, tiny
from torch import nn
from torch.nn import functional as F

import regard as rg
from regard.errors import SettingError, ShapeError
from regard.interop.attribution.linear_functions import StreamPart
from regard.models import Transformer, TransformerConfig

IDS, OTHER = torch.tensor([[4, 9, 5, 7, 9]]), torch.tensor([[0, 3, 7, 2, 6]])
OF_TEXT = {"input_ids": IDS}
OF_PAIR = {"input_ids": IDS, "decoder_input_ids": OTHER}
KINDS = ("encoder", "decoder", "cross")
WIDE = SIZES | {"hidden_size": 16, "num_attention_heads": 4, "num_key_value_heads": 2}
WRITER = {
    "vocab_size": V,
    "d_model": 12,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_ffn_dim": 7,
    "decoder_ffn_dim": 7,
    "encoder_attention_heads": 3,
    "decoder_attention_heads": 3,
    "decoder_start_token_id": 0,
    "pad_token_id": 0,
    "eos_token_id": 1,
    "forced_eos_token_id": 1,
}


def small_t5():
    sizes = {"vocab_size": V, "d_model": 12, "d_kv": 4, "d_ff": 7, "num_layers": 2, "num_heads": 3}
    return tiny("T5ForConditionalGeneration", "T5Config", **sizes, decoder_start_token_id=0)


HUGGING_FACE = {
    "gpt2": (gpt2, OF_TEXT, (None,)),
    "llama": (llama, OF_TEXT, (None,)),
    "qwen3": (
        lambda: tiny("Qwen3ForCausalLM", "Qwen3Config", **WIDE, head_dim=4),
        OF_TEXT,
        (None,),
    ),
    "gemma2": (
        lambda: tiny("Gemma2ForCausalLM", "Gemma2Config", **WIDE, head_dim=4),
        OF_TEXT,
        (None,),
    ),
    "neox": (
        lambda: tiny("GPTNeoXForCausalLM", "GPTNeoXConfig", **SIZES | {"hidden_size": 24}),
        OF_TEXT,
        (None,),
    ),
    "bert": (lambda: tiny("BertForMaskedLM", "BertConfig", **SIZES), OF_TEXT, (None,)),
    "classes": (
        lambda: tiny("BertForSequenceClassification", "BertConfig", num_labels=9, **SIZES),
        OF_TEXT,
        (None,),
    ),
    "t5": (small_t5, OF_PAIR, KINDS),
    "marian": (lambda: tiny("MarianMTModel", "MarianConfig", **WRITER), OF_PAIR, KINDS),
}
OURS = {
    "post": {},
    "pre": {"norm": "pre", "positions": "learned", "activation": "relu"},
    "rotary": {
        "norm": "pre",
        "norm_kind": "rms",
        "positions": "rotary",
        "num_key_heads": 1,
        "activation": "swiglu",
    },
    "alibi": {"positions": "alibi"},
    "relative": {"positions": "relative"},
}


def filled(model):
    """Weights of a size at which every part counts."""
    torch.manual_seed(3)
    for each in model.parameters():
        each.data = torch.randn_like(each) * 0.4 + (each.dim() == 1)
    return model.eval()


def ours(**options):
    sizes = {"model_dim": 12, "num_heads": 3, "ffn_dim": 7}
    config = TransformerConfig(**sizes, num_encoder_layers=2, num_decoder_layers=2, **options)
    return Transformer(config, source_vocab=V, target_vocab=V)


OF_OURS = {"source": IDS, "source_lengths": torch.tensor([5]), "target": OTHER}


def check_sums(model, inputs, kinds, tolerance):
    for kind in kinds:
        for head in (0, 2):
            parts = rg.decompose_score(model, inputs, layer=1, head=head, query=3, key=1, kind=kind)
            assert parts.sum == pytest.approx(parts.score, rel=tolerance)
            names = {part.name for part in parts.key_parts}
            assert {"token", "layer 0 head 2", "layer 0 feed-forward"} <= names
    made = rg.logit_attribution(model, inputs, target=3, against=8)
    assert made.sum == pytest.approx(made.output, rel=tolerance)
    assert {"token", "layer 1 head 2", "layer 1 feed-forward"} <= {one.name for one in made.parts}


@pytest.mark.parametrize("name", HUGGING_FACE)
def test_parts_sum_to_scores_and_logits(name):
    make, inputs, kinds = HUGGING_FACE[name]
    model = filled(make())
    check_sums(model, inputs, kinds, 1e-4)
    # Those of Llama's kin have norms of float32 in a model of float64.
    exact = 1e-9 if name not in ("llama", "qwen3", "gemma2") else 1e-5
    check_sums(model.double(), inputs, kinds, exact)


@pytest.mark.parametrize("name", OURS)
def test_parts_sum_to_scores_and_logits_of_our_own(name):
    model = filled(ours(**OURS[name]))
    check_sums(model, OF_OURS, KINDS, 1e-4)
    check_sums(model.double(), OF_OURS, KINDS, 1e-9)


@torch.no_grad()
def by_hand(model, position):
    """Parts of GPT-2's residual stream at a position before its second layer."""
    body, C = model.transformer, 12
    made, block = {}, body.h[0]
    made["token"], made["position"] = body.wte(IDS)[0, position], body.wpe.weight[position]
    states = body.wte(IDS)[0] + body.wpe.weight[:5]
    query, key, value = (
        each.view(5, 3, 4).transpose(0, 1)
        for each in block.attn.c_attn(block.ln_1(states)).split(C, -1)
    )
    mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True)  # (H, N, D)
    for head in range(3):
        rows = block.attn.c_proj.weight[head * 4 : head * 4 + 4]
        made[f"layer 0 head {head}"] = mixed[head, position] @ rows
    after = states + block.attn.c_proj(mixed.transpose(0, 1).flatten(1))
    made["layer 0 feed-forward"] = block.mlp(block.ln_2(after))[position]
    stream = after[position] + made["layer 0 feed-forward"]
    norm, attention = body.h[1].ln_1, body.h[1].attn
    deviation = (stream.var(correction=0) + norm.eps).sqrt()

    def vectors(state):
        centred = (state - state.mean()) / deviation * norm.weight
        return (centred @ attention.c_attn.weight).split(C)

    return {name: vectors(state) for name, state in made.items()}


def test_pairs_are_those_worked_out_by_hand():
    model = filled(gpt2()).double()
    parts = rg.decompose_score(model, IDS, layer=1, head=2, query=4, key=1)
    queries, keys = by_hand(model, 4), by_hand(model, 1)
    rows = [part.name for part in parts.query_parts]
    columns = [part.name for part in parts.key_parts]
    assert rows == [*queries, "biases"]
    for name, (query, _, _) in queries.items():
        for other, (_, key, _) in keys.items():
            value = float(query[8:] @ key[8:]) / 2
            found = float(parts.values[rows.index(name), columns.index(other)])
            assert found == pytest.approx(value, rel=1e-9, abs=1e-9)


@torch.no_grad()
def test_a_logit_is_what_each_part_adds_by_hand():
    class Toy(nn.Module):
        """Two tokens, one head, no norm."""

        def __init__(self):
            super().__init__()
            self.tokens, self.places = nn.Embedding(9, 4), nn.Parameter(torch.randn(5, 4))
            self.out, self.head = nn.Linear(4, 4), nn.Linear(4, 9)

        def forward(self, ids):
            states = self.tokens(ids) + self.places[: ids.shape[1]]
            mixed = F.scaled_dot_product_attention(*[states[:, None]] * 3)[:, 0]
            self.mixed = mixed
            return self.head(states + self.out(mixed))

    model = Toy().double().eval()
    ids = torch.tensor([[1, 4, 2]])
    made = rg.logit_attribution(model, ids, target=5)
    row = model.head.weight[5]
    expected = {
        "token": row @ model.tokens.weight[2],
        "position": row @ model.places[2],
        "layer 0 head 0": row @ model.out.weight @ model.mixed[0, 2],
        "biases": row @ model.out.bias + model.head.bias[5],
    }
    assert [part.name for part in made.parts] == list(expected)
    for value, each in zip(made.values.tolist(), expected.values(), strict=True):
        assert value == pytest.approx(float(each))
    assert made.target == (2, 5, None)
    assert made.sum == pytest.approx(float(model(ids)[0, 2, 5]))


def test_the_model_is_left_as_it_was():
    model = filled(gpt2())
    flags = [each.requires_grad for each in model.parameters()]
    model.requires_grad_(False)
    before = model(IDS).logits
    one = rg.logit_attribution(model, IDS, target=3).values
    with torch.no_grad():
        two = rg.logit_attribution(model.requires_grad_(True), IDS, target=3).values
    assert torch.equal(one, two)
    assert torch.equal(model(IDS).logits, before)
    assert [each.requires_grad for each in model.parameters()] == flags
    assert not any(each.grad is not None for each in model.parameters())


def test_a_head_before_its_soft_cap_is_taken_apart():
    model = filled(HUGGING_FACE["gemma2"][0]())
    parts = rg.decompose_score(model, IDS, layer=0, head=0, query=3, key=3)
    with rg.watch(model, keep=True) as seen:
        model(IDS)
    call = seen[0].attention
    raw = float(call.query[0, 0, 3] @ call.key[0, 0, 3]) * call.score.scale
    assert parts.score == pytest.approx(raw, rel=1e-5)
    assert parts.weight == pytest.approx(float(seen.rows(0, [3])[0, 0, 0, 3]), rel=1e-5)


class Bent(nn.Module):
    """A causal model whose blocks do something else than to add."""

    def __init__(self, bend):
        super().__init__()
        self.tokens, self.head, self.bend = nn.Embedding(V, 8), nn.Linear(8, V), bend

    def forward(self, ids):
        states = self.tokens(ids)
        for _ in range(2):
            heads = states.unflatten(-1, (2, 4)).transpose(1, 2)
            mixed = F.scaled_dot_product_attention(heads, heads, heads, is_causal=True)
            states = self.bend(states + mixed.transpose(1, 2).flatten(2))
        return self.head(states)


@pytest.mark.parametrize(
    ("bend", "match"),
    [
        (F.relu, "with an activation there"),
        (lambda states: states + F.gelu(states), "with an activation there"),
        (lambda states: states.clamp(min=0), "Clamp"),
        (lambda states: states * states, "parts sum to"),
    ],
)
def test_what_is_no_sum_is_refused(bend, match):
    model = Bent(bend).eval()
    with pytest.raises(SettingError, match=match):
        rg.decompose_score(model, IDS, layer=1, head=0, query=3, key=1)
    if bend is not F.relu:  # after the last layer it may be the head's
        with pytest.raises(SettingError, match=match):
            rg.logit_attribution(model, IDS, target=3)


def test_wrong_arguments():
    model = filled(gpt2())
    with pytest.raises(
        SettingError, match="layer and kind must name one attention: decoder 0, dec"
    ):
        rg.decompose_score(model, IDS, layer=2, head=0, query=3, key=1)
    with pytest.raises(SettingError, match="head must be one of 3; got 3"):
        rg.decompose_score(model, IDS, layer=0, head=3, query=3, key=1)
    with pytest.raises(SettingError, match="query must be a position from 0 to 4; got 5"):
        rg.decompose_score(model, IDS, layer=0, head=0, query=5, key=1)
    with pytest.raises(SettingError, match="key must be one that the query sees; got query 1 and"):
        rg.decompose_score(model, IDS, layer=0, head=0, query=1, key=3)
    last = rg.decompose_score(model, IDS, layer=0, head=0, query=-1, key=-2)
    assert (last.query, last.key) == (4, 3)
    with pytest.raises(SettingError, match="evaluation mode"):
        rg.decompose_score(model.train(), IDS, layer=0, head=0, query=3, key=1)
    with pytest.raises(ShapeError, match="inputs must be of one text"):
        rg.logit_attribution(model.eval(), IDS.expand(2, -1))
    layer = rg.use(nn.TransformerEncoderLayer(8, 2, batch_first=True)).eval()
    with pytest.raises(SettingError, match="look its tokens up"):
        rg.decompose_score(layer, torch.randn(1, 5, 8), layer=0, head=0, query=3, key=1)
    model = ours(score="additive").eval()
    with pytest.raises(SettingError, match="score must be a product"):
        rg.decompose_score(model, OF_OURS, layer=0, head=0, query=3, key=1, kind="cross")


def test_tables():
    model = filled(gpt2())
    text = str(rg.decompose_score(model, IDS, layer=1, head=2, query=4, key=1))
    assert text.splitlines()[0].split() == ["query", "key", "value"]
    assert text.splitlines()[-1].split()[0] == "sum"
    assert "others" in text
    assert "layer 0 feed-forward" in str(rg.logit_attribution(model, IDS, target=3))
    assert StreamPart("head", "cross", 3, 1).name == "layer 3 cross head 1"
