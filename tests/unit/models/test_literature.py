from itertools import product

import pytest
import torch
from torch.nn.functional import cross_entropy

from regard.attention import Additive, observe, weights
from regard.errors import ShapeError
from regard.layers import FeedForward, MultiHeadAttention, Residual
from regard.models import RnnSeq2Seq, RnnSeq2SeqConfig, Transformer, TransformerConfig

from .conftest import train

B, S, T, V = 3, 7, 5, 17


def transformer(**settings):
    sizes = {"model_dim": 16, "num_heads": 2, "ffn_dim": 32}
    layers = {"num_encoder_layers": 2, "num_decoder_layers": 2}
    config = TransformerConfig(**{**sizes, **layers, **settings})
    return Transformer(config, source_vocab=V, target_vocab=V, shared_vocab=True).eval()


def recurrent(**settings):
    config = RnnSeq2SeqConfig(embed_dim=8, hidden_dim=12, attention_dim=10, **settings)
    return RnnSeq2Seq(config, source_vocab=V, target_vocab=V).eval()


def batch():
    source, target = torch.randint(4, V, (B, S)), torch.randint(4, V, (B, T))
    return source, torch.full((B,), S), target


def count(module):
    return sum(p.numel() for p in module.parameters())


def test_base_settings_are_the_papers():
    config = TransformerConfig()
    assert (config.num_encoder_layers, config.num_decoder_layers) == (6, 6)
    assert (config.model_dim, config.num_heads, config.ffn_dim) == (512, 8, 2048)
    assert config.model_dim // config.num_heads == 64
    assert config.ffn_dim == 4 * config.model_dim
    assert (config.norm, config.activation, config.positions) == ("post", "relu", "sinusoidal")
    assert (config.dropout, config.tie_embeddings) == (0.1, "all")


def test_the_base_model_has_the_papers_number_of_parameters():
    C, F, vocab = 512, 2048, 37_000
    attention, feed, norm = 4 * (C * C + C), 2 * C * F + F + C, 2 * C
    encoder_layer = attention + feed + 2 * norm
    decoder_layer = 2 * attention + feed + 3 * norm
    by_hand = vocab * C + 6 * (encoder_layer + decoder_layer)
    with torch.device("meta"):
        model = Transformer(
            TransformerConfig(), source_vocab=vocab, target_vocab=vocab, shared_vocab=True
        )
    assert count(model) == by_hand == 63_082_496


def test_encoder_layers_have_two_sublayers_and_decoder_layers_three():
    model = transformer()

    def number(layer, kind):
        return sum(isinstance(part, kind) for part in layer.children())

    for layer, sublayers in ((model.encoder[0], 2), (model.decoder[0], 3)):
        assert number(layer, FeedForward) == 1
        assert number(layer, MultiHeadAttention) == sublayers - 1
        assert number(layer, Residual) == sublayers


def test_three_embeddings_are_one_table():
    model = transformer()
    assert model.source_embedding is model.target_embedding is model.output
    assert transformer(tie_embeddings="none").output is not model.target_embedding


def test_keys_and_values_of_cross_attention_come_from_the_encoder():
    calls = []
    with observe(calls.append):
        transformer()(*batch())
    shapes = {call.kind: (call.query.shape[-2], call.key.shape[-2]) for call in calls}
    assert shapes == {"encoder": (S, S), "decoder": (T, T), "cross": (T, S)}
    assert [(call.kind, call.layer) for call in calls] == [
        *(("encoder", layer) for layer in range(2)),
        *((kind, layer) for layer in range(2) for kind in ("decoder", "cross")),
    ]


@pytest.mark.parametrize("cell", ["rnn", "gru", "lstm"])
def test_without_attention_every_sentence_goes_through_one_vector_of_one_size(cell):
    model = recurrent(cell=cell, attention="none")
    for length in (1, S, 40):
        source = torch.randint(4, V, (B, length))
        state = model.start(source, torch.full((B,), length))
        assert state.memory.shape == (B, 24)
        after = model.step(source[:, 0], state)[1]
        assert after.memory is state.memory


def test_with_attention_every_step_has_a_context_of_its_own():
    model = recurrent()
    source, source_lengths, target = batch()
    state = model.start(source, source_lengths)
    memory, looked = state.memory, []
    for t in range(T):
        with observe(looked.append):
            _, after = model.step(target[:, t], state)
        # The query is the state before this step, and the score is additive.
        (query,) = looked[t].query.unbind(1)
        torch.testing.assert_close(query, model.attention.query(state.layers[-1]))
        assert isinstance(looked[t].score, Additive)
        state = after
    alphas = torch.cat(
        [weights(call.query, call.key, score=call.score, mask=call.mask) for call in looked], 1
    )
    assert alphas.shape == (B, T, S)
    torch.testing.assert_close(alphas.sum(-1), torch.ones(B, T))
    contexts = alphas @ memory.values
    assert memory.values.shape == (B, S, 24)
    assert (contexts[:, 1:] - contexts[:, :-1]).abs().amax(-1).min() > 1e-5


# Shapes are checked by the tests above; here they would be half of the time.
@pytest.mark.usefixtures("unchecked_shapes")
@pytest.mark.slow
def test_the_weights_of_a_held_out_sentence_are_its_alignment():
    """我爱中国: I looks at 我, love at 爱, China at 中 and 国."""
    people = {"我": "I", "你": "you", "他": "he", "她": "she", "它": "it"}
    verbs = {"爱": "love", "怕": "fear", "懂": "know", "想": "miss", "看": "see"}
    # No character names its word alone (中 is also in Mideast, 国 in every country): the last word
    # can only be told by looking at two.
    objects = {
        **{"中国": "China", "英国": "England", "法国": "France", "中东": "Mideast"},
        **{"中文": "Chinese", "英文": "English", "法文": "French"},
    }
    sources = ["".join(parts) for parts in product(people, verbs, objects)]
    targets = list(product(people.values(), verbs.values(), objects.values()))
    characters = sorted(set("".join(sources)))
    words = sorted({word for target in targets for word in target})
    source = torch.tensor([[4 + characters.index(c) for c in row] for row in sources])
    target = torch.tensor([[4 + words.index(word) for word in row] for row in targets])
    config = RnnSeq2SeqConfig(
        embed_dim=32, hidden_dim=32, attention_dim=32, values="embeddings", dropout=0.0
    )
    model = RnnSeq2Seq(config, source_vocab=4 + len(characters), target_vocab=4 + len(words))

    def logits(rows):
        shifted = torch.cat([torch.full((len(rows), 1), 2), target[rows, :-1]], 1)
        return model.project(model(source[rows], torch.full((len(rows),), 4), shifted)[0])

    held_out = torch.tensor([sources.index("我爱中国")])
    others = torch.arange(len(sources))
    others = others[others != held_out]
    labels = target[others].flatten()
    train(model, lambda _: cross_entropy(logits(others).flatten(0, 1), labels), steps=150)
    calls = []
    with torch.no_grad(), observe(calls.append):
        answer = logits(held_out)[0].argmax(-1)
        alphas = torch.cat(
            [weights(call.query, call.key, score=call.score, mask=call.mask)[0] for call in calls]
        )
    assert [words[i - 4] for i in answer.tolist()] == ["I", "love", "China"]
    assert alphas[:2].argmax(-1).tolist() == [0, 1]
    assert alphas[2, 2:].sum() > 0.7


def test_positions_may_be_learned_up_to_a_length():
    model = transformer(positions="learned", max_length=T)
    assert model.positions.table.shape == (T, 16)
    source = torch.randint(4, V, (B, T))
    states, _ = model(source, torch.full((B,), T), source)
    states.sum().backward()
    assert model.positions.table.grad.abs().sum(-1).min() > 0
    with pytest.raises(ShapeError, match="positions must be at most max_length=5; got 7"):
        model(torch.randint(4, V, (B, S)), torch.full((B,), S), source)
