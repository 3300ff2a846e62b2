"""Models of two texts: a reader with another text, and the memory network."""

import pytest
import torch
from torch.nn import functional as F

from regard.attention import observe
from regard.errors import SettingError, ShapeError
from regard.models import MatchReader, MatchReaderConfig, MemoryNetwork, MemoryNetworkConfig

N, M, FEATURES, V = 7, 5, 3, 17


def reader_and_inputs(**settings):
    torch.manual_seed(0)
    config = MatchReaderConfig(embed_dim=11, hidden_dim=6, dropout=0.0, **settings)
    reader = MatchReader(config, vocab_size=V, num_features=FEATURES).eval()
    ids, other = torch.randint(2, V, (2, N)), torch.randint(2, V, (2, M))
    return reader, ids, other, torch.rand(2, N, FEATURES)


def read(reader, ids, other, features, lengths=(N, N), other_lengths=(M, M)):
    return reader(
        ids,
        torch.tensor(lengths[: len(ids)]),
        other=other,
        other_lengths=torch.tensor(other_lengths[: len(other)]),
        features=features,
    )


SETTINGS = [
    {},
    {"compares": True},
    {"num_layers": 3},
    {"compares": True, "num_layers": 2, "similarity": "trilinear"},
]


@pytest.mark.parametrize("settings", SETTINGS)
def test_padding_of_either_text_changes_nothing(settings):
    reader, ids, other, features = reader_and_inputs(**settings)
    whole = read(reader, ids, other, features, (4, N), (2, M))
    alone = read(reader, ids[:1, :4], other[:1, :2], features[:1, :4], (4,), (2,))
    torch.testing.assert_close(whole[:1, :4], alone)
    assert whole.shape == (2, N, reader.output_dim)
    assert whole[0, 4:].eq(0).all()


@pytest.mark.parametrize("compares", [False, True])
def test_another_text_read_once_serves_several_rows(compares):
    reader, ids, other, features = reader_and_inputs(compares=compares)
    ids, features = torch.cat([ids, ids.flip(0)]), torch.cat([features, features])
    shared = read(reader, ids, other, features, (N,) * 4)
    repeated = read(reader, ids, other.repeat_interleave(2, 0), features, (N,) * 4, (M,) * 4)
    torch.testing.assert_close(shared, repeated)
    with pytest.raises(ShapeError, match="other must have as many rows as ids, or divide them"):
        read(reader, ids[:3], other, features[:3], (N,) * 3)


def inputs_of(reader, *args):
    captured = {}
    hook = reader.read.register_forward_pre_hook(
        lambda _, arguments: captured.update(inputs=arguments[0])
    )
    read(reader, *args)
    hook.remove()
    return captured["inputs"]


@pytest.mark.parametrize(("alignment", "scale"), [("dot", 1.0), ("scaled_dot", 11**-0.5)])
def test_the_alignment_is_drqas(alignment, scale):
    """Σ_j softmax_j(relu(W e_i) · relu(W o_j)) o_j, over the real words alone."""
    reader, ids, other, features = reader_and_inputs(alignment=alignment)
    inputs = inputs_of(reader, ids, other, features, (N, N), (M, 2))
    tokens, other_tokens = reader.embedding(ids), reader.embedding(other)
    torch.testing.assert_close(inputs[..., :11], tokens)
    torch.testing.assert_close(inputs[..., -FEATURES:], features)
    for row, length in enumerate((M, 2)):
        words = other_tokens[row, :length]
        queries, keys = (reader.align(each).relu() for each in (tokens[row], words))
        expected = (scale * queries @ keys.T).softmax(-1) @ words
        torch.testing.assert_close(inputs[row, :, 11:22], expected, atol=1e-5, rtol=1e-5)


def test_layers_read_the_one_before_and_stand_side_by_side():
    """DrQA's three layers, of the text and of the other, whose outputs are joined."""
    reader, ids, other, features = reader_and_inputs(num_layers=3)
    states = read(reader, ids, other, features, (N, 4), (M, 2))
    assert reader.output_dim == 3 * 2 * 6
    inputs = inputs_of(reader, ids, other, features, (N, 4), (M, 2))
    want = [reader.read(inputs, torch.tensor([N, 4]))[0]]
    for layer in reader.read_on:
        want.append(layer(want[-1], torch.tensor([N, 4]))[0])
    assert len(want) == 3
    torch.testing.assert_close(states, torch.cat(want, -1))
    theirs = [reader.read_other(reader.embedding(other), torch.tensor([M, 2]))[0]]
    for layer in reader.read_other_on:
        theirs.append(layer(theirs[-1], torch.tensor([M, 2]))[0])
    whole = reader.pool(torch.cat(theirs, -1), torch.tensor([M, 2]))
    torch.testing.assert_close(inputs[:, 0, 22:-FEATURES], whole)
    assert reader.pool.pool.queries.shape == (1, 36)


def test_one_layer_has_the_weights_it_always_had():
    names = {name.partition(".")[0] for name in reader_and_inputs(compares=True)[0].state_dict()}
    assert names == {"embedding", "align", "read_other", "pool", "read", "compare", "read_again"}


def test_the_similarity_is_bidafs():
    """softmax_j(w · [h_i; q_j; h_i ⊙ q_j]) of both texts' states, whatever w₁ is."""
    reader, ids, other, features = reader_and_inputs(compares=True, similarity="trilinear")
    torch.nn.init.normal_(reader.similarity.of_key)
    torch.nn.init.normal_(reader.similarity.of_product)
    calls, captured = [], {}
    reader.read.register_forward_hook(lambda *hooked: captured.update(states=hooked[2][0]))
    with observe(calls.append):
        read(reader, ids, other, features, (N, N), (M, 2))
    (call,) = [each for each in calls if each.layer == 2]
    rows = call.weights()
    w = torch.cat([torch.randn(12), reader.similarity.of_key, reader.similarity.of_product])
    for row, length in enumerate((M, 2)):
        for h, weights_of_row in zip(captured["states"][row], rows[row], strict=True):
            scores = torch.stack([w @ torch.cat([h, q, h * q]) for q in call.key[row, :length]])
            expected = F.pad(scores.softmax(0), (0, M - length))
            torch.testing.assert_close(weights_of_row, expected, atol=1e-5, rtol=1e-5)


def test_the_similarity_changes_what_is_read_and_is_learned():
    reader, *batch = reader_and_inputs(compares=True, similarity="trilinear")
    before = read(reader, *batch)
    before.square().sum().backward()
    assert reader.similarity.of_key.grad.any()
    assert reader.similarity.of_product.grad.any()
    torch.nn.init.normal_(reader.similarity.of_product)
    assert (read(reader, *batch) - before).abs().max() > 1e-4
    with pytest.raises(SettingError, match="similarity must be dot where compares is false; got"):
        MatchReaderConfig(similarity="trilinear")


B, SENTENCES, J, Q, VOCAB = 2, 5, 4, 3, 17


def network(hops=2, dim=6, **settings):
    config = MemoryNetworkConfig(
        model_dim=dim, num_hops=hops, max_sentences=7, dropout=0.0, **settings
    )
    return MemoryNetwork(config, vocab_size=VOCAB)


def total_of(ids, table, encoding):
    """Σ_j l_j ⊙ A x_j with l_kj = (1 − j/J) − (k/d)(1 − 2j/J), j and k from 1, or with l_kj = 1."""
    words = [i for i in ids if i]
    count, d = max(1, len(words)), table.shape[1]
    total = torch.zeros(d)
    for j, word in enumerate(words, start=1):
        for k in range(1, d + 1):
            weight = (1 - j / count) - (k / d) * (1 - 2 * j / count)
            total[k - 1] += (weight if encoding == "position" else 1) * table[word, k - 1]
    return total


@torch.no_grad()
def by_formula(model, sentences, count, question):
    def memory(words, order):
        read = [total_of(ids, words, model.config.encoding) for ids in sentences.tolist()[:count]]
        turned = model.config.counted_from == "last"  # sentence i of n is n − 1 − i from the end
        return torch.stack(
            [each + order[count - 1 - i if turned else i] for i, each in enumerate(read)]
        )

    u = total_of(question.tolist(), model.match, model.config.encoding)
    m, c = memory(model.match, model.match_order), memory(model.mix, model.mix_order)
    for _ in range(model.config.num_hops):
        u = model.between.weight @ u + (m @ u).softmax(0) @ c
    return m @ u


def shaken(model):
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return model


def sentence_batch():
    """Sentences, how many are real, and a question; some of them are short."""
    sentences = torch.randint(1, VOCAB, (B, SENTENCES, J))
    question = torch.randint(1, VOCAB, (B, Q))
    sentences[0, 1, 2:] = question[1, 1:] = 0
    return sentences, torch.tensor([5, 2]), question


@pytest.mark.parametrize("counted_from", ["last", "first"])
@pytest.mark.parametrize(("hops", "encoding"), [(1, "position"), (3, "position"), (3, "bag")])
def test_logits_are_the_papers_and_padding_is_not_in_them(hops, encoding, counted_from):
    model = shaken(network(hops, encoding=encoding, counted_from=counted_from))
    sentences, counts, question = sentence_batch()
    logits = model(sentences, counts, question)
    for row, count in enumerate(counts.tolist()):
        want = by_formula(model, sentences[row], count, question[row])
        torch.testing.assert_close(logits[row, :count], want, rtol=1e-4, atol=1e-3)
    assert logits[1, 2:].eq(-torch.inf).all()
    wider = F.pad(sentences, (0, 3, 0, 2))
    again = model(wider, counts, F.pad(question, (0, 2)))
    torch.testing.assert_close(again[:, :SENTENCES], logits, rtol=1e-4, atol=1e-3)
    logits[:, 0].sum().backward()
    assert all(each.grad.any() for each in model.parameters())


def test_overlap_features_of_a_sentence_and_its_neighbours_are_added_to_every_match():
    config = MemoryNetworkConfig(model_dim=6, num_hops=2, max_sentences=7, dropout=0.0)
    model = MemoryNetwork(config, vocab_size=VOCAB, num_features=3)
    sentences, question = torch.randint(1, VOCAB, (B, SENTENCES, J)), torch.ones(B, Q).long()
    counts, overlap = torch.tensor([5, 2]), torch.randn(B, SENTENCES, 3)
    overlap[1, 2:] = 0
    query, zeros = model._read(question, model.match)[0], torch.zeros(3)
    rows = [zeros, *overlap[0], zeros]
    around = [
        torch.cat([rows[i], rows[i - 1], rows[i + 1], query]) for i in range(1, SENTENCES + 1)
    ]
    score = model.overlap(torch.stack(around)).squeeze(-1)
    logits = model(sentences, counts, question, overlap)
    single = model(sentences[1:, :2], counts[1:], question[1:], overlap[1:, :2])
    torch.testing.assert_close(single, logits[1:, :2])
    with torch.no_grad():  # the hops find nothing, whatever they look at
        for table in (model.mix, model.mix_order):
            table.zero_()
    added = model(sentences, counts, question, overlap) - model(sentences, counts, question)
    torch.testing.assert_close(added[0], score)
    assert not torch.allclose(model(sentences, counts, question, overlap), logits)


@pytest.mark.parametrize(("counted_from", "expected"), [("last", [4, 2, 0]), ("first", [0, 0, 0])])
def test_position_0_is_that_of_the_sentence_nearest_to_the_question(counted_from, expected):
    """In texts of any length, of sentences that are all alike."""
    model, words = network(1, counted_from=counted_from), torch.ones(3, SENTENCES, J).long()
    with torch.no_grad():
        model.match_order.zero_()[0] = model._read(words[:1, 0], model.match)[0]
    logits = model(words, torch.tensor([5, 3, 1]), words[:, 0])
    assert logits.argmax(-1).tolist() == expected
    assert MemoryNetworkConfig().counted_from == "last"


def test_every_hop_is_observed():
    calls = []
    with observe(calls.append):
        network(3)(*sentence_batch())
    assert [(each.kind, each.layer) for each in calls] == [("cross", hop) for hop in range(3)]


def test_too_many_sentences_are_named(unchecked_shapes):
    with pytest.raises(ShapeError, match="sentences must be at most max_sentences=7; got 8"):
        network()(torch.ones(1, 8, J).long(), torch.tensor([8]), torch.ones(1, Q).long())
