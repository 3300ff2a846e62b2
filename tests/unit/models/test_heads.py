"""Heads: formulas, padding, and a toy job that each learns in seconds."""

import pytest
import torch
from torch.nn import functional as F

from regard.attention import observe, weights
from regard.errors import SettingError
from regard.models import (
    READERS,
    Classifier,
    ClassifierConfig,
    Esim,
    EsimConfig,
    MultipleChoice,
    SpanFinder,
    SpanFinderConfig,
    Tagger,
    TaggerConfig,
)
from regard.models.heads import best_spans

from .conftest import train

B, N, VOCAB = 32, 9, 23
SIZES = {
    "bag": {"embed_dim": 16},
    "convolutional": {"embed_dim": 16, "channels": 16, "widths": (1, 3)},
    "recurrent": {"embed_dim": 16, "hidden_dim": 12},
    "transformer": {"model_dim": 16, "num_heads": 2, "num_layers": 1, "ffn_dim": 32},
}


def reader(name):
    config, architecture = READERS[name].config, READERS[name].load()
    return architecture(config(**SIZES[name], dropout=0.0), vocab_size=VOCAB)


def test_a_pooler_is_tanh_of_a_linear_layer():
    ids, lengths = texts(1, 3, 7), torch.tensor([7, 3, 5])
    torch.manual_seed(0)
    classifier = Classifier(
        ClassifierConfig(pooling="first", pooler=True, dropout=0.0),
        reader("transformer"),
        num_classes=4,
    )
    first = classifier.reader(ids, lengths)[:, 0]
    pooled = torch.tanh(first @ classifier.pooler.weight.T + classifier.pooler.bias)
    torch.testing.assert_close(
        classifier(ids, lengths), F.linear(pooled, *classifier.output.parameters())
    )


def texts(seed, *shape):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(1, VOCAB, shape, generator=generator)


def lengths_of(seed, count=B, longest=N):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(3, longest + 1, (count,), generator=generator)


@pytest.mark.parametrize(
    ("name", "pooling"),
    [
        ("transformer", "first"),
        ("bag", "mean"),
        ("convolutional", "maximum"),
        ("convolutional", "query"),
        ("recurrent", "query"),
        ("recurrent", "tanh_query"),
        ("recurrent", "structured"),
        ("recurrent", "state"),
        ("bag", "aspect"),
    ],
)
def test_a_classifier_learns_whether_a_word_is_there(name, pooling):
    """Read for an aspect: whether that aspect's word is there."""
    count = 2 if pooling == "aspect" else 0
    config = ClassifierConfig(pooling=pooling, num_hops=3, attention_dim=16, dropout=0.0)
    model = Classifier(config, reader(name), num_classes=2, num_aspects=count)

    def case(seed):
        ids, lengths = texts(seed, B, N), lengths_of(seed)
        aspects = torch.arange(B) % 2 if count else None
        word = 5 if aspects is None else 5 + aspects[:, None]
        ids = torch.where(torch.rand(B, 1) < 0.5, ids.masked_fill(ids == word, 9), ids)
        ids[torch.arange(N) >= lengths[:, None]] = 5  # in padding it does not count
        real = torch.arange(N) < lengths[:, None]
        labels = ((ids == word) & real).any(1).long()
        return (ids, lengths), labels, {} if aspects is None else {"aspects": aspects}

    def loss_of(seed):
        inputs, labels, more = case(seed)
        return F.cross_entropy(model(*inputs, **more), labels)

    train(model, loss_of, steps=120)
    with torch.no_grad():
        inputs, labels, more = case(1000)
        assert (model(*inputs, **more).argmax(-1) == labels).float().mean() > 0.9


def test_the_penalty_of_hops_is_there_in_training_alone():
    ids, lengths = texts(0, B, N), lengths_of(0)

    def penalty_of(is_training, **settings):
        torch.manual_seed(0)
        config = ClassifierConfig(pooling="structured", num_hops=3, **settings, dropout=0.0)
        model = Classifier(config, reader("recurrent"), num_classes=2).train(is_training)
        logits, penalty = model(ids, lengths, return_penalty=True)
        torch.testing.assert_close(logits, model(ids, lengths))
        assert model.output.in_features == 3 * 24
        return penalty

    one = penalty_of(True)
    assert one.shape == (B,)
    assert (one > 0).all()
    torch.testing.assert_close(penalty_of(True, penalty=0.5), 5 * one)
    assert not penalty_of(True, penalty=0.0).any()
    assert not penalty_of(False).any()
    assert not torch.allclose(penalty_of(True, attention_dim=7), one)


def test_an_answer_that_is_not_there_has_no_penalty():
    config = ClassifierConfig(pooling="structured", num_hops=3, dropout=0.0)
    model = MultipleChoice(config, reader("bag")).train()
    ids, lengths = texts(0, B, 4, N), lengths_of(0, B * 4).view(B, 4)
    both = model(ids[:, :2], lengths[:, :2], return_penalty=True)[1]
    lengths[:, 2:] = 0
    torch.testing.assert_close(model(ids, lengths, return_penalty=True)[1], both)


def test_a_cross_encoder_hands_segments_to_its_reader():
    model = Classifier(ClassifierConfig(pooling="first"), reader("transformer"), num_classes=2)
    ids, lengths = texts(0, B, N), lengths_of(0)
    segments = (torch.arange(N) > 3).long().expand(B, N)
    one, other = model.eval()(ids, lengths), model(ids, lengths, segments=segments)
    assert (one - other).abs().max() > 1e-4


def test_a_choice_is_scored_with_its_question_whatever_the_others_are():
    model = MultipleChoice(ClassifierConfig(dropout=0.0), reader("recurrent")).eval()
    ids, lengths = texts(0, B, 4, N), lengths_of(0, B * 4).view(B, 4)
    lengths[0, 3] = 0
    scores = model(ids, lengths)
    order = torch.tensor([2, 0, 3, 1])
    torch.testing.assert_close(model(ids[:, order], lengths[:, order]), scores[:, order])
    assert scores[0, 3] == -torch.inf
    assert scores.isfinite().sum() == 4 * B - 1
    loss = F.cross_entropy(scores, torch.zeros(B, dtype=torch.long))
    loss.backward()
    assert all(each.grad.isfinite().all() for each in model.parameters())


def test_esim_compares_each_word_with_its_context_from_the_other_text():
    model = Esim(EsimConfig(embed_dim=6, hidden_dim=4), vocab_size=VOCAB).eval()
    first, second = texts(0, 2, 5), texts(1, 2, 3)
    first_lengths, second_lengths = torch.tensor([5, 2]), torch.tensor([1, 3])
    logits, calls = None, []
    with observe(calls.append):
        logits = model(first, first_lengths, second, second_lengths)
    assert [(each.kind, each.layer) for each in calls] == [("cross", 0), ("cross", 1)]
    rows = weights(calls[0].query, calls[0].key, score=calls[0].score, mask=calls[0].mask)
    a = model.read(model.embedding(first), first_lengths)[0]
    b = model.read(model.embedding(second), second_lengths)[0]
    torch.testing.assert_close(rows[1], (a[1] @ b[1].T).softmax(-1))
    aligned = rows @ b
    compared = torch.cat([a, aligned, a - aligned, a * aligned], -1)
    states = model.read_again(model.compare(compared).relu(), first_lengths)[0]
    mean, largest = model._compose(a, aligned, first_lengths)
    torch.testing.assert_close(mean[0], states[0].mean(0))
    torch.testing.assert_close(largest[1], states[1, :2].max(0).values)
    padded = model(
        F.pad(first, (0, 2), value=7), first_lengths, F.pad(second, (0, 4), value=9), second_lengths
    )
    torch.testing.assert_close(padded, logits)


@pytest.mark.parametrize("crf", [False, True])
def test_a_tagger_learns_what_stands_before_a_word(crf):
    model = Tagger(TaggerConfig(crf=crf, dropout=0.0), reader("recurrent"), num_tags=3)

    def case(seed):
        ids = texts(seed, B, N)
        tags = F.pad(ids, (1, 0))[:, :-1] % 3
        return ids, lengths_of(seed), tags

    def loss_of(seed):
        ids, lengths, tags = case(seed)
        return model.loss(model(ids, lengths), tags, lengths) / lengths.sum()

    train(model, loss_of, steps=80, lr=2e-2)
    ids, lengths, tags = case(999)
    real = torch.arange(N) < lengths[:, None]
    with torch.no_grad():
        scores = model(ids, lengths)
    predicted = model.best(scores, lengths)
    assert (predicted[real] == tags[real]).float().mean() > 0.95
    assert predicted[~real].eq(0).all()
    noisy = scores.masked_fill(~real[..., None], 50.0)
    torch.testing.assert_close(
        model.loss(noisy, tags.masked_fill(~real, 2), lengths), model.loss(scores, tags, lengths)
    )


@pytest.mark.parametrize("max_length", [1, 3, 20])
def test_best_spans_are_those_of_trying_all(max_length):
    start, end = torch.randn(5, 11), torch.randn(5, 11)
    allowed = torch.rand(5, 11) < 0.6
    allowed[4] = False
    spans = best_spans(start, end, allowed, max_length=max_length)
    for row in range(4):
        tries = {
            (i, j): float(start[row, i] + end[row, j])
            for i in range(11)
            for j in range(i, min(11, i + max_length))
            if allowed[row, i] and allowed[row, j]
        }
        assert (int(spans.start[row]), int(spans.end[row])) == max(tries, key=tries.get)
        assert float(spans.score[row]) == pytest.approx(max(tries.values()))
    assert spans.score[4] == -torch.inf
    torch.testing.assert_close(spans.none, start[:, 0] + end[:, 0])


def test_ends_of_a_span_are_a_softmax_over_real_positions():
    model = SpanFinder(SpanFinderConfig(dropout=0.0), reader("recurrent"))
    ids, lengths = texts(0, B, N), lengths_of(0)
    start, end = model(ids, lengths)
    padding = torch.arange(N) >= lengths[:, None]
    scores = model.output(model.reader(ids, lengths)).masked_fill(padding[..., None], -torch.inf)
    first, last = torch.zeros(B, dtype=torch.long), lengths - 1
    log_probs = [each.log_softmax(-1) for each in scores.unbind(-1)]
    for ours, right in zip((start, end), log_probs, strict=True):
        torch.testing.assert_close(ours.log_softmax(-1), right)
    gained = log_probs[0][:, 0] + log_probs[1][torch.arange(B), last]
    torch.testing.assert_close(model.loss(start, end, first, last), -gained.sum() / 2)


def test_what_is_wrong_is_named():
    with pytest.raises(SettingError, match="num_classes must be at least 1; got 0"):
        Classifier(ClassifierConfig(), reader("bag"), num_classes=0)
    with pytest.raises(SettingError, match="num_tags must be at least 1; got 0"):
        Tagger(TaggerConfig(), reader("bag"), num_tags=0)
    with pytest.raises(SettingError, match="max_length must be at least 1; got 0"):
        best_spans(torch.ones(1, 2), torch.ones(1, 2), torch.ones(1, 2).bool(), max_length=0)
