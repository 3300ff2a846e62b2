"""The end-to-end memory network against its formulas, and on questions of one and two facts."""

import pytest
import torch
from torch.nn import functional as F

from regard.attention import observe
from regard.errors import ShapeError
from regard.models import MemoryNetwork, MemoryNetworkConfig

from .conftest import train

B, M, J, Q, VOCAB = 2, 5, 4, 3, 17


def made(hops=2, dim=6, **settings):
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
            place = (1 - j / count) - (k / d) * (1 - 2 * j / count)
            total[k - 1] += (place if encoding == "position" else 1) * table[word, k - 1]
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
    return m @ u if model.answer is None else model.answer.weight @ u


@pytest.mark.parametrize("counted_from", ["last", "first"])
@pytest.mark.parametrize(("hops", "encoding"), [(1, "position"), (3, "position"), (3, "bag")])
def test_logits_are_the_papers_and_padding_is_not_in_them(hops, encoding, counted_from):
    model = made(hops, encoding=encoding, counted_from=counted_from)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    sentences, question = torch.randint(1, VOCAB, (B, M, J)), torch.randint(1, VOCAB, (B, Q))
    sentences[0, 1, 2:] = question[1, 1:] = 0
    counts = torch.tensor([5, 2])
    logits = model(sentences, counts, question)
    for row, count in enumerate(counts.tolist()):
        want = by_formula(model, sentences[row], count, question[row])
        torch.testing.assert_close(logits[row, :count], want, rtol=1e-4, atol=1e-3)
    assert logits[1, 2:].eq(-torch.inf).all()
    wider = F.pad(sentences, (0, 3, 0, 2))
    again = model(wider, counts, F.pad(question, (0, 2)))
    torch.testing.assert_close(again[:, :M], logits, rtol=1e-4, atol=1e-3)
    logits[:, 0].sum().backward()
    assert all(each.grad.any() for each in model.parameters())


def test_with_words_to_answer_with_the_logits_are_those_of_a_last_layer():
    config = MemoryNetworkConfig(model_dim=6, num_hops=2, max_sentences=7, dropout=0.0)
    model = MemoryNetwork(config, vocab_size=VOCAB, num_answers=11)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    sentences, question = torch.randint(1, VOCAB, (B, M, J)), torch.randint(1, VOCAB, (B, Q))
    counts = torch.tensor([5, 2])
    logits = model(sentences, counts, question)
    assert logits.shape == (B, 11)
    for row, count in enumerate(counts.tolist()):
        want = by_formula(model, sentences[row], count, question[row])
        torch.testing.assert_close(logits[row], want, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize(("counted_from", "found"), [("last", [4, 2, 0]), ("first", [0, 0, 0])])
def test_place_0_is_that_of_the_sentence_nearest_to_the_question(counted_from, found):
    """In texts of any length, of sentences that are all alike."""
    model, words = made(1, counted_from=counted_from), torch.ones(3, M, J).long()
    asked = model._read(words[:1, 0], model.match)[0]
    with torch.no_grad():
        model.match_order.zero_()[0] = asked
    logits = model(words, torch.tensor([5, 3, 1]), words[:, 0])
    assert logits.argmax(-1).tolist() == found
    assert MemoryNetworkConfig().counted_from == "last"


def test_every_hop_is_seen():
    seen = []
    with observe(seen.append):
        made(3)(torch.ones(B, M, J).long(), torch.tensor([5, 2]), torch.ones(B, Q).long())
    assert [(each.kind, each.layer) for each in seen] == [("cross", hop) for hop in range(3)]


@pytest.mark.parametrize(("facts", "hops"), [(1, 1), (2, 3)])
@pytest.mark.slow
def test_finds_the_sentence_that_answers(facts, hops):
    """ "a b": the question is a, the answer the sentence that begins with it; or with its b."""
    torch.manual_seed(0)
    model = made(hops, dim=32)
    generator = torch.Generator().manual_seed(0)

    def case(count):
        names = torch.stack([torch.randperm(8, generator=generator) for _ in range(count)])
        first, second = names[:, :5] + 1, names[:, 1:6] + 9
        order = torch.stack([torch.randperm(5, generator=generator) for _ in range(count)])
        sentences = torch.stack([first, second], -1).gather(1, order[..., None].expand(-1, -1, 2))
        asked = torch.randint(0, 4, (count,), generator=generator)
        # A second fact: what stands behind a name, as 9 to 16, is another's name, as 1 to 8.
        answer = (order == (asked + facts - 1)[:, None]).long().argmax(1)
        return sentences, names.gather(1, asked[:, None]) + 1, answer

    five = torch.full((64,), 5)

    def loss_of(_):
        sentences, question, answer = case(64)
        return F.cross_entropy(model(sentences, five, question), answer)

    train(model, loss_of, steps=350 if facts == 2 else 150, lr=5e-3, clip=40)
    sentences, question, answer = case(64)
    assert (model(sentences, five, question).argmax(-1) == answer).float().mean() > 0.85


def test_too_many_sentences_are_named(unchecked_shapes):
    with pytest.raises(ShapeError, match="sentences must be at most max_sentences=7; got 8"):
        made()(torch.ones(1, 8, J).long(), torch.tensor([8]), torch.ones(1, Q).long())
