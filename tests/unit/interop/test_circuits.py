"""Circuits of heads, against plain loops over the weights and against what models do in a text."""

import math
from contextlib import ExitStack

import numpy as np
import pytest
import torch
from tests.unit.interop.test_decomposition import (
    HUGGING_FACE,
    IDS,
    KINDS,
    OF_OURS,
    OTHER,
    OURS,
    filled,
    ours,
)
from tests.unit.interop.tiny_models import SIZES, V, gpt2, llama, tiny
from torch.nn import functional as F

import regard as rg
from regard.errors import SettingError, ShapeError
from regard.interop.attribution import circuits, direct_path

LISTS = ("liked", "promoted", "suppressed")


def numbers(tensor):
    return tensor.detach().double().numpy()


def normalized(row, weight, eps):
    """A row through layer norm, without its bias."""
    mean = sum(row) / len(row)
    deviation = math.sqrt(sum((each - mean) ** 2 for each in row) / len(row) + eps)
    return [(each - mean) / deviation * gain for each, gain in zip(row, weight, strict=True)]


def root_normalized(row, weight, eps):
    size = math.sqrt(sum(each * each for each in row) / len(row) + eps)
    return [each / size * gain for each, gain in zip(row, weight, strict=True)]


def times(matrix, row):
    return [sum(a * b for a, b in zip(line, row, strict=True)) for line in matrix]


def product(one, other):
    return sum(a * b for a, b in zip(one, other, strict=True))


@torch.no_grad()
def inputs_of(model, modules, position):
    """Return what modules are given at a position of the text."""
    given = {}

    def note(module, args):
        given[module] = numbers(args[0][0, position])

    with ExitStack() as hooks:
        for module in modules:
            hooks.enter_context(module.register_forward_pre_hook(note))
        model(IDS)
    return given


def check(made, queries, keys, scores, pushed):
    """Compare circuits with (V, V) tables: scores[query][key], pushed[key][token]."""
    scores, pushed = np.array(scores), np.array(pushed)
    assert made.scores.numpy() == pytest.approx(scores[queries][:, keys], rel=1e-6)
    assert made.liked.values.numpy() == pytest.approx(-np.sort(-scores[queries])[:, :5], rel=1e-6)
    assert made.promoted.values.numpy() == pytest.approx(-np.sort(-pushed[keys])[:, :5], rel=1e-6)
    assert made.suppressed.values.numpy() == pytest.approx(np.sort(pushed[keys])[:, :5], rel=1e-6)
    for row, query in enumerate(queries):
        assert scores[query, made.liked.ids[row]] == pytest.approx(made.liked.values[row].numpy())
    for row, key in enumerate(keys):
        for one in (made.promoted, made.suppressed):
            assert pushed[key, one.ids[row]] == pytest.approx(one.values[row].numpy())
    if pushed.shape[0] == pushed.shape[1]:
        assert made.own.numpy() == pytest.approx(pushed[keys, keys], rel=1e-6)
        ranks = [int((pushed[key] > pushed[key, key]).sum()) for key in keys]
        assert made.own_rank.tolist() == ranks
        eigenvalues = np.linalg.eigvals(pushed)
        score = eigenvalues.real.sum() / np.abs(eigenvalues).sum()
        assert made.copying == pytest.approx(score, rel=1e-6)


def test_circuits_of_gpt2_are_those_worked_out_by_hand():
    model = filled(gpt2()).double()
    made = rg.head_circuits(model, IDS, layer=1, head=2, position=3, top=5)
    body, block = model.transformer, model.transformer.h[1]
    table = numbers(body.wte.weight)
    norm, attention = block.ln_1, block.attn
    weights = numbers(attention.c_attn.weight).T  # (3C, C)
    query, key, value = (weights[12 * n + 8 : 12 * n + 12] for n in range(3))
    out = numbers(attention.c_proj.weight)[8:12].T  # (C, E)
    row = inputs_of(model, [body.ln_f], 3)[body.ln_f]
    deviation = math.sqrt(row.var() + body.ln_f.eps)
    final = numbers(body.ln_f.weight)

    inputs = [normalized(each, numbers(norm.weight), norm.eps) for each in table]
    queries, keys, values = ([times(m, each) for each in inputs] for m in (query, key, value))
    scores = [[product(one, other) / 2 for other in keys] for one in queries]
    pushed = []
    for each in values:
        written = times(out, each)
        mean = sum(written) / 12
        read = [(n - mean) / deviation * gain for n, gain in zip(written, final, strict=True)]
        pushed.append(times(table, read))
    check(made, IDS[0].tolist(), IDS[0].tolist(), scores, pushed)
    bias = numbers(attention.c_attn.bias)[8:12] + times(query, numbers(norm.bias))
    of_keys = [product(bias, keys[each]) / 2 for each in IDS[0].tolist()]
    assert made.key_scores.numpy() == pytest.approx(of_keys, rel=1e-6)


def test_circuits_of_bert_go_through_all_its_norms():
    model = filled(tiny("BertForMaskedLM", "BertConfig", **SIZES)).double()
    made = rg.head_circuits(model, IDS, layer=1, head=1, position=2, top=5)
    body, layers = model.bert, model.bert.encoder.layer
    table, head = numbers(body.embeddings.word_embeddings.weight), model.cls.predictions
    before = [body.embeddings.LayerNorm, layers[0].attention.output.LayerNorm]
    before.append(layers[0].output.LayerNorm)
    inputs = [list(each) for each in table]
    for norm in before:
        inputs = [normalized(each, numbers(norm.weight), norm.eps) for each in inputs]
    attention = layers[1].attention.self
    query, key, value = (
        numbers(each.weight)[4:8] for each in (attention.query, attention.key, attention.value)
    )
    queries, keys, values = ([times(m, each) for each in inputs] for m in (query, key, value))
    scores = [[product(one, other) / 2 for other in keys] for one in queries]

    # What norms after the head, and the activation, were given at the position.
    after = [layers[1].attention.output.LayerNorm, layers[1].output.LayerNorm]
    after += [layers[2].attention.output.LayerNorm, layers[2].output.LayerNorm]
    after += [head.transform.LayerNorm]
    given = inputs_of(model, [*after, head.transform.transform_act_fn], 2)
    before_gate = torch.tensor(given.pop(head.transform.transform_act_fn))
    gate = numbers(F.gelu(before_gate) / before_gate)
    out = numbers(layers[1].attention.output.dense.weight)[:, 4:8]

    def normed(row, norm):
        deviation = math.sqrt(given[norm].var() + norm.eps)
        mean, gains = sum(row) / len(row), numbers(norm.weight)
        return [(each - mean) / deviation * gain for each, gain in zip(row, gains, strict=True)]

    pushed = []
    for each in values:
        row = times(out, each)
        for norm in after[:-1]:
            row = normed(row, norm)
        row = (np.array(times(numbers(head.transform.dense.weight), row)) * gate).tolist()
        pushed.append(times(numbers(head.decoder.weight), normed(row, after[-1])))
    check(made, IDS[0].tolist(), IDS[0].tolist(), scores, pushed)


def test_circuits_of_llama_have_groups_of_heads_and_no_rotation():
    model = filled(llama()).double()
    made = rg.head_circuits(model, IDS, layer=1, head=3, top=5)
    body, block = model.model, model.model.layers[1]
    attention, norm = block.self_attn, block.input_layernorm
    table = numbers(body.embed_tokens.weight)
    inputs = [root_normalized(row, numbers(norm.weight), norm.variance_epsilon) for row in table]
    query = numbers(attention.q_proj.weight)[12:16]
    key, value = (numbers(each.weight)[4:8] for each in (attention.k_proj, attention.v_proj))
    queries, keys, values = ([times(m, each) for each in inputs] for m in (query, key, value))
    scores = [[product(one, other) / 2 for other in keys] for one in queries]
    row = inputs_of(model, [body.norm], -1)[body.norm]
    size = math.sqrt((row**2).mean() + body.norm.variance_epsilon)
    out, gains = numbers(attention.o_proj.weight)[:, 12:16], numbers(body.norm.weight)
    pushed = [
        times(numbers(model.lm_head.weight), np.array(times(out, v)) / size * gains) for v in values
    ]
    check(made, IDS[0].tolist(), IDS[0].tolist(), scores, pushed)
    assert (made.position, float(made.key_scores.abs().max())) == (4, 0.0)


@pytest.mark.parametrize("name", ["llama", "qwen3", "gemma2"])
def test_in_the_first_layer_circuits_are_what_the_model_does(name):
    """Where no position is added, heads of the first layer read embeddings alone."""
    model = filled(HUGGING_FACE[name][0]())
    made = rg.head_circuits(model, IDS, layer=0, head=2, top=V, vocabulary=False)
    with torch.no_grad(), rg.watch(model, keep=True) as seen:
        model(IDS)
    weights = seen.rows(0, [4])[0, 2, 0]
    parts = rg.logit_attribution(model, IDS, target=7)
    of_parts = dict(zip((part.name for part in parts.parts), parts.values.tolist(), strict=True))
    of_keys = made.promoted.values[made.promoted.ids == 7]
    assert float(weights @ of_keys) == pytest.approx(of_parts["layer 0 head 2"], rel=1e-4)
    for at in (0, 3):  # a token that looks at itself stands at its own position
        found = rg.decompose_score(model, IDS, layer=0, head=2, query=at, key=at)
        assert float(made.scores[at, at]) == pytest.approx(found.score, rel=1e-4)


@pytest.mark.parametrize("name", [*HUGGING_FACE, *OURS])
def test_every_model_has_circuits_in_chunks_of_any_size(name, monkeypatch):
    if name in OURS:
        model, inputs, kinds = filled(ours(**OURS[name])), OF_OURS, KINDS
    else:
        make, inputs, kinds = HUGGING_FACE[name]
        model = filled(make())
    for kind in kinds:
        options = {"layer": 1, "head": 1, "kind": kind, "top": 4}
        whole = rg.head_circuits(model, inputs, **options)
        monkeypatch.setattr(direct_path, "_ROWS", 5)
        monkeypatch.setattr(circuits, "_ROWS", 2)
        monkeypatch.setattr(direct_path.DirectPath, "_idle_blocks", lambda *_: [])
        chunked = rg.head_circuits(model, inputs, **options)
        monkeypatch.undo()
        torch.testing.assert_close(whole.scores, chunked.scores, rtol=1e-4, atol=1e-5)
        for each in LISTS:
            one, other = getattr(whole, each), getattr(chunked, each)
            assert (one is None) == (other is None) == (kind == "encoder" and each != "liked")
            if one is not None:
                torch.testing.assert_close(one.values, other.values, rtol=1e-4, atol=1e-5)
        assert (whole.copying is None) == (chunked.copying is None)
        if whole.copying is not None:
            assert whole.copying == pytest.approx(chunked.copying, rel=1e-3)


def test_blocks_before_a_head_are_left_out_where_they_hand_their_input_on():
    path = direct_path.DirectPath(filled(llama()), {"input_ids": IDS})
    with path._shortened(("decoder", 2)):
        pass
    assert len(path._skipped["decoder", 2]) == 2
    post = direct_path.DirectPath(filled(HUGGING_FACE["bert"][0]()), {"input_ids": IDS})
    with post._shortened(("encoder", 2)):
        pass
    assert post._skipped["encoder", 2] == []


def test_queries_and_keys_of_two_texts():
    model = filled(HUGGING_FACE["marian"][0]())
    inputs = {"input_ids": IDS, "decoder_input_ids": OTHER[:, :4]}
    made = rg.head_circuits(model, inputs, layer=0, head=0, kind="cross", top=3)
    assert (made.queries.tolist(), made.keys.tolist()) == (OTHER[0, :4].tolist(), IDS[0].tolist())
    assert made.scores.shape == (4, 5)
    assert made.own.shape == (5,)


def test_a_model_without_logits_has_scores_alone():
    body = filled(gpt2()).transformer
    made = rg.head_circuits(body, IDS, layer=0, head=1)
    assert (made.promoted, made.suppressed, made.own, made.copying) == (None,) * 4
    assert made.liked.ids.shape == (5, 10)
    assert "promotes" not in str(made)


def test_the_position_of_a_class_is_the_one_that_is_read():
    model = filled(HUGGING_FACE["classes"][0]())
    made = rg.head_circuits(model, IDS, layer=1, head=1, vocabulary=False)
    assert made.position == 0
    assert made.promoted.ids.shape == (5, 9)
    assert (made.own, made.copying, made.liked) == (None,) * 3


def test_wrong_arguments():
    model = filled(gpt2())
    with pytest.raises(SettingError, match="position must be one of 5; got 5"):
        rg.head_circuits(model, IDS, layer=0, head=0, position=5)
    with pytest.raises(SettingError, match="head must be one of 3; got 3"):
        rg.head_circuits(model, IDS, layer=0, head=3)
    with pytest.raises(SettingError, match="layer and kind must name one attention"):
        rg.head_circuits(model, IDS, layer=7, head=0)
    with pytest.raises(SettingError, match="top must be at least 1; got 0"):
        rg.head_circuits(model, IDS, layer=0, head=0, top=0)
    with pytest.raises(ShapeError, match="inputs must be of one text"):
        rg.head_circuits(model, IDS.expand(2, -1), layer=0, head=0)
    with pytest.raises(SettingError, match="score must be a product"):
        rg.head_circuits(ours(score="additive").eval(), OF_OURS, layer=0, head=0, kind="cross")
    with pytest.raises(SettingError, match="evaluation mode"):
        rg.head_circuits(model.train(), IDS, layer=0, head=0)


def test_a_table_names_tokens():
    made = rg.head_circuits(filled(gpt2()), IDS, layer=1, head=2, top=4)
    lines = made.table(lambda token: f"<{token}>").splitlines()
    assert lines[0].startswith("layer 1 head 2, copying ")
    assert lines[1:3] == ["query likes", lines[2]]
    assert lines[2].startswith(f"<4>   <{made.liked.ids[0, 0]}> {made.liked.values[0, 0]:.2f}, ")
    assert len(lines) == 1 + 2 * (1 + 4)  # four tokens are different
