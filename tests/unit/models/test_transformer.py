import pytest
import torch

from regard.attention import observe
from regard.errors import SettingError
from regard.layers import MultiHeadAttention
from regard.models import Transformer, TransformerConfig

B, S, T, V = 3, 5, 7, 23
SMALL = {
    "model_dim": 12,
    "num_heads": 3,
    "ffn_dim": 17,
    "num_encoder_layers": 2,
    "num_decoder_layers": 2,
    "dropout": 0.2,
}


def build(shared=True, source_vocab=V, **settings):
    torch.manual_seed(1)
    config = TransformerConfig(**SMALL | settings)
    return Transformer(config, source_vocab=source_vocab, target_vocab=V, shared_vocab=shared)


def count(model):
    return sum(p.numel() for p in model.parameters())


def batch():
    generator = torch.Generator().manual_seed(2)
    source, target = (torch.randint(4, V, (B, n), generator=generator) for n in (S, T))
    return source, torch.tensor([5, 2, 3]), target


def test_tables_that_are_not_tied_are_counted_separately():
    tied_three, tied_two, untied = (build(tie_embeddings=t) for t in ("all", "target", "none"))
    assert count(tied_two) == count(tied_three) + V * 12
    assert count(untied) == count(tied_three) + 2 * V * 12
    assert tied_two.output is tied_two.target_embedding is not tied_two.source_embedding
    assert untied.output is not untied.target_embedding
    assert untied.output.scale == 1


def test_two_vocabularies_tie_the_targets_tables_only():
    model = build(shared=False, source_vocab=V + 8)
    assert model.output is model.target_embedding is not model.source_embedding
    assert model.source_embedding.weight.shape == (V + 8, 12)
    source, lengths, target = batch()
    assert model.project(model(source + 8, lengths, target)[0]).shape == (B, T, V)


@pytest.mark.parametrize("layer", ["encoder", "decoder", "cross"])
def test_weights_are_dropped_wherever_there_is_attention_and_in_training_alone(layer):
    model = build(dropout=0.0, attention_dropout=0.5)
    attend = {
        "encoder": lambda: model.encoder[0].attend,
        "decoder": lambda: model.decoder[0].attend,
        "cross": lambda: model.decoder[0].cross_attend,
    }[layer]()
    assert attend.dropout == 0.5
    source, lengths, target = batch()
    one, other = (model.train()(source, lengths, target)[0] for _ in range(2))
    assert (one - other).abs().max() > 1e-3
    one, other = (model.eval()(source, lengths, target)[0] for _ in range(2))
    assert torch.equal(one, other)


def test_embeddings_as_values_bring_words_without_their_surroundings():
    model = build(values="embeddings").eval()
    source, lengths, _ = batch()
    changed = source.clone()
    changed[:, 1] = (source[:, 1] - 4 + 1) % (V - 4) + 4
    one, other = (model.start(ids, lengths).memory[0] for ids in (source, changed))
    others = [0, 2, 3, 4]
    assert torch.equal(one.value[:, :, others], other.value[:, :, others])
    assert not torch.equal(one.value[:, :, 1], other.value[:, :, 1])
    assert not torch.equal(one.key[:, :, others], other.key[:, :, others])
    mixed = [build().eval().start(ids, lengths).memory[0].value for ids in (source, changed)]
    assert not torch.equal(mixed[0][:, :, others], mixed[1][:, :, others])


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_batch_norm_leaves_padding_out_while_training(norm):
    model = build(norm_kind="batch", norm=norm, dropout=0.0).train()
    other = build(norm_kind="batch", norm=norm, dropout=0.0).train()
    source, lengths, target = batch()
    target_lengths = torch.tensor([7, 3, 5])
    longer = torch.cat([source, torch.full((B, 4), 7)], 1)
    later = torch.cat([target, torch.full((B, 2), 9)], 1)
    one = model(source, lengths, target, target_lengths)[0]
    two = other(longer, lengths, later, target_lengths)[0]
    for row, length in enumerate(target_lengths.tolist()):
        torch.testing.assert_close(one[row, :length], two[row, :length], rtol=1e-4, atol=1e-5)
    for (name, buffer), (_, same) in zip(model.named_buffers(), other.named_buffers(), strict=True):
        torch.testing.assert_close(buffer, same, msg=name)
    moved = model.encoder[0].attend_residual.norm.mean.abs().max()
    assert moved > 1e-3


def test_a_window_hides_what_is_far_on_either_side_or_before():
    calls = []
    with observe(calls.append):
        build(window=1).eval()(*batch())
    masks = {call.kind: call.mask for call in calls if call.layer == 0}
    assert masks["decoder"].draw(4, 4) == "1 . . .\n1 1 . .\n. 1 1 .\n. . 1 1"
    assert masks["encoder"].draw(5, 5).split("\n\n")[2] == (
        "1 1 . . .\n1 1 1 . .\n. 1 1 . .\n. . 1 . .\n. . . . ."
    )


def test_one_head_of_keys_serves_all_queries():
    model = build(num_key_heads=1).eval()
    state = model.start(*batch()[:2])
    assert state.memory[0].key.shape == (B, 1, S, 4)
    assert state.past[0].key.shape == (B, 1, 0, 4)


def test_a_dot_product_is_the_scaled_one_of_longer_queries():
    model, scaled = build(score="dot").eval(), build().eval()
    heads = [m for m in model.modules() if isinstance(m, MultiHeadAttention)]
    assert len(heads) == 6
    with torch.no_grad():
        for layer in heads:
            name = "query" if layer.query_key_value is None else "query_key_value"
            asking = getattr(layer, name).weight[: SMALL["model_dim"]]
            asking /= 2  # √D; the queries' rows come first
    torch.testing.assert_close(model(*batch())[0], scaled(*batch())[0])


def test_additive_scores_have_weights_of_their_own_in_every_layer():
    model = build(score="additive").eval()
    source, lengths, target = batch()
    calls = []
    with observe(calls.append):
        states = model(source, lengths, target)[0]
    weights = [each.score.w for each in calls]
    assert len({id(w) for w in weights}) == len(weights) == 6
    states.sum().backward()
    assert all(w.shape == (3, 4) and w.grad.any() for w in weights)
    assert count(model) == count(build()) + 6 * 12


def test_relative_positions_alone_know_no_absolute_position():
    # A sentence's states are those it has behind another, out of sight.
    for positions in ("rotary", "relative", "t5", "alibi", "none"):
        model = build(positions=positions, num_heads=2, window=1, num_encoder_layers=1).eval()
        source = torch.randint(4, V, (1, 6))
        ahead = torch.cat([torch.randint(4, V, (1, 2)), source], 1)
        one = model.start(source, torch.tensor([6])).memory[0].key[:, :, 1:]
        two = model.start(ahead, torch.tensor([8])).memory[0].key[:, :, 3:]
        torch.testing.assert_close(one, two, rtol=1e-4, atol=1e-5)


def test_learned_positions_are_one_table_under_one_name():
    names = [name for name in build(positions="learned").state_dict() if "positions" in name]
    assert names == ["positions.table"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"num_heads": 5}, "model_dim must be divisible by num_heads; got model_dim=12, num_heads"),
        (
            {"embedding_norm": True, "norm_kind": "batch"},
            "embedding_norm must be off where norm_kind is batch",
        ),
        (
            {"num_key_heads": 2},
            "num_heads must be divisible by num_key_heads; got num_heads=3, num_key_heads=2",
        ),
    ],
)
def test_wrong_setting_is_named(settings, message):
    with pytest.raises(SettingError, match=message):
        TransformerConfig(**SMALL | settings)
