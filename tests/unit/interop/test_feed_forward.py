"""The strongest neurons of feed-forward parts, against plain loops and against the whole part."""

import pytest
import torch
from tests.unit.interop.test_decomposition import HUGGING_FACE, IDS, OF_OURS, OURS, filled, ours
from tests.unit.interop.tiny_models import gpt2, llama
from torch.nn import functional as F

import regard as rg
from regard.errors import SettingError, ShapeError

NEURONS = {"gpt2": 48, "neox": 7}


def model_of(name):
    if name in OURS:
        return filled(ours(**OURS[name])), OF_OURS
    make, inputs, _ = HUGGING_FACE[name]
    return filled(make()), inputs


@torch.no_grad()
def test_neurons_of_a_gated_part_are_those_worked_out_by_hand():
    model = filled(llama()).double()
    made = rg.feed_forward_neurons(model, IDS, layer=1, position=2, top=7, words=4)
    part, given = model.model.layers[1].mlp, []
    hook = part.register_forward_pre_hook(lambda _, args: given.append(args[0][0, 2]))
    last = []
    other = model.model.norm.register_forward_pre_hook(lambda _, args: last.append(args[0][0, 2]))
    model(IDS)
    hook.remove()
    other.remove()
    norm = model.model.norm
    deviation = (last[0].square().mean() + norm.variance_epsilon).sqrt()
    rows = {}
    for number in range(7):
        gate = F.silu(part.gate_proj.weight[number] @ given[0])
        activation = float(gate * (part.up_proj.weight[number] @ given[0]))
        written = activation * part.down_proj.weight[:, number]
        logits = model.lm_head.weight @ (written / deviation * norm.weight)
        rows[number] = activation, float(written.norm()), logits
    order = sorted(rows, key=lambda number: -rows[number][1])
    assert [one.number for one in made.neurons] == order
    for one in made.neurons:
        activation, size, logits = rows[one.number]
        assert (one.kind, one.layer, one.position) == ("decoder", 1, 2)
        assert (one.activation, one.size) == pytest.approx((activation, size), rel=1e-5)
        for pairs, sign in ((one.promoted, 1), (one.suppressed, -1)):
            best = (sign * logits).topk(4)
            assert [token for token, _ in pairs] == best.indices.tolist()
            values = [sign * value for _, value in pairs]
            assert values == pytest.approx(best.values.tolist(), rel=1e-5)


@pytest.mark.parametrize("name", [*HUGGING_FACE, *OURS])
def test_neurons_together_add_what_their_part_adds(name):
    model, inputs = model_of(name)
    count = 48 if name == "gpt2" else 24 if name == "neox" else 7
    V = 9 if name == "classes" else 23
    position = 0 if name == "classes" else 4
    made = rg.feed_forward_neurons(model, inputs, position=position, top=10_000, words=V)
    parts = rg.logit_attribution(model, inputs, target=5)
    wanted = {
        (part.attention, part.layer): value
        for part, value in zip(parts.parts, parts.values.tolist(), strict=True)
        if part.kind == "feed-forward"
    }
    assert len(wanted) >= 2
    biases = biases_of(model, inputs, made, wanted)
    for (kind, layer), value in wanted.items():
        neurons = made.of(layer, position, kind)
        total = sum(dict(one.promoted)[5] for one in neurons)
        assert len(neurons) >= min(count, 7)
        assert total + biases[kind, layer] == pytest.approx(value, rel=1e-3, abs=1e-4)


def biases_of(model, inputs, made, wanted):
    """Sum of the biases of the last matrices: the output of a part whose neurons are all off."""
    from regard.interop.attribution.direct_path import DirectPath
    from regard.interop.attribution.input_vectors import named_inputs

    inputs = named_inputs(model, inputs)
    path, found = DirectPath(model, inputs), {}
    for site, module in path.run.feed_forward.items():
        if site not in wanted:
            continue
        names = ("outer", "c_proj", "dense_4h_to_h", "down_proj", "wo", "fc2")
        inner = [each for name, each in module.named_modules() if name.rpartition(".")[2] in names]
        bias = getattr(inner[-1] if inner else module, "bias", None)
        if bias is None:
            found[site] = 0.0
        else:
            position = made.neurons[0].position
            found[site] = float(path.effects(site, bias[None].detach(), positions=[position])[0, 5])
    return found


def test_a_model_without_logits_has_neurons_without_words():
    made = rg.feed_forward_neurons(filled(gpt2()).transformer, IDS, top=3)
    assert not made.has_words
    assert len(made.neurons) == 2 * 5 * 3
    assert all(one.promoted == one.suppressed == () for one in made.neurons)
    assert "promotes" not in str(made)
    encoder = [one for one in model_neurons("t5") if one.kind == "encoder"]
    assert encoder
    assert all(one.promoted == () for one in encoder)


def model_neurons(name):
    model, inputs = model_of(name)
    return rg.feed_forward_neurons(model, inputs, top=2).neurons


def test_the_strongest_of_all_come_first_in_the_table():
    made = rg.feed_forward_neurons(filled(gpt2()), IDS, top=2, words=2)
    sizes = [one.size for one in made.strongest(6)]
    assert sizes == sorted((one.size for one in made.neurons), reverse=True)[:6]
    lines = made.table(lambda token: f"<{token}>", count=3).splitlines()
    assert len(lines) == 4
    first = made.strongest(1)[0]
    assert lines[1].split()[:3] == [str(first.layer), str(first.position), str(first.number)]
    assert f"<{first.promoted[0][0]}>" in lines[1]


def test_wrong_arguments():
    model = filled(gpt2())
    with pytest.raises(SettingError, match="layer must be one of 0, 1; got 2"):
        rg.feed_forward_neurons(model, IDS, layer=2)
    with pytest.raises(SettingError, match="position must be one of 5; got -6"):
        rg.feed_forward_neurons(model, IDS, position=-6)
    with pytest.raises(SettingError, match="top must be at least 1"):
        rg.feed_forward_neurons(model, IDS, top=0)
    with pytest.raises(ShapeError, match="inputs must be of one text"):
        rg.feed_forward_neurons(model, IDS.expand(2, -1))

    class Plain(torch.nn.Module):
        """A model that only attends."""

        def __init__(self):
            super().__init__()
            self.tokens = torch.nn.Embedding(23, 8)

        def forward(self, ids):
            heads = self.tokens(ids).unflatten(-1, (2, 4)).transpose(1, 2)
            mixed = F.scaled_dot_product_attention(heads, heads, heads, is_causal=True)
            return mixed.transpose(1, 2).flatten(2)

    with pytest.raises(SettingError, match="feed-forward parts that end with a matrix"):
        rg.feed_forward_neurons(Plain().eval(), IDS)
