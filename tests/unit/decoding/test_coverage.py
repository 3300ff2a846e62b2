"""The coverage penalty, against Wu et al.'s formula worked out from the whole answer."""

import math

import pytest
import torch

from regard.attention import observe, weights
from regard.decoding import CoveragePenalty, beam
from regard.errors import SettingError
from regard.models import RnnSeq2Seq, RnnSeq2SeqConfig, Transformer, TransformerConfig

VOCAB, BOS, EOS = 13, 2, 3
LENGTHS = torch.tensor([5, 2, 7])


def make_model(kind, **changed):
    torch.manual_seed(3)
    if kind == "rnn":
        sizes = {"embed_dim": 5, "hidden_dim": 7, "attention_dim": 11} | changed
        model = RnnSeq2Seq(RnnSeq2SeqConfig(**sizes), source_vocab=VOCAB, target_vocab=VOCAB)
    else:
        config = TransformerConfig(
            model_dim=6, num_heads=2, num_encoder_layers=1, num_decoder_layers=2, ffn_dim=7
        )
        model = Transformer(config, source_vocab=VOCAB, target_vocab=VOCAB)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.7)
    return model.eval()


@pytest.fixture
def source():
    return torch.randint(4, VOCAB, (3, 7), generator=torch.Generator().manual_seed(1))


def search(model, source, weight, **settings):
    cover = CoveragePenalty(model.step, weight=weight)
    with torch.no_grad():
        state = cover.start(model.start(source, LENGTHS), LENGTHS)
    common = {"batch_size": 3, "bos_id": BOS, "eos_id": EOS, "max_lengths": 6, "beam_size": 5}
    return beam(cover.step, state, bonus=cover.bonus, n_best=5, **common, **settings)


def coverage_by_hand(model, source, answer):
    """Σ_i log(min(Σ_j p_ij, 1)) of one sentence, teacher-forced by steps."""
    total = [0.0] * source.shape[1]
    with torch.no_grad():
        state = model.start(source, torch.tensor([source.shape[1]]))
        tokens = (*answer.tokens, *[EOS] * answer.is_finished)
        for last in (BOS, *tokens[:-1]):
            calls = []
            with observe(calls.append):
                _, state = model.step(torch.tensor([last]), state)
            cross = [s for s in calls if s.kind == "cross"]
            maps = [
                weights(s.query, s.key, score=s.score, mask=s.mask, bias=s.bias).reshape(
                    -1, source.shape[1]
                )
                for s in cross
            ]
            heads = torch.cat(maps)
            for i, p in enumerate(heads.mean(0).tolist()):
                total[i] += p
    return sum(math.log(min(p, 1.0)) for p in total)


@pytest.mark.parametrize("kind", ["rnn", "transformer"])
def test_the_score_is_that_of_the_paper(kind, source):
    model, weight = make_model(kind), 0.7
    outputs = search(model, source, weight, length_penalty=0.5)
    for row, length, answers in zip(source, LENGTHS.tolist(), outputs, strict=True):
        order = [(not hypothesis.is_finished, -hypothesis.score) for hypothesis in answers]
        assert order == sorted(order)
        for hypothesis in answers:
            penalty = ((5 + len(hypothesis.tokens) + hypothesis.is_finished) / 6) ** 0.5
            covered = coverage_by_hand(model, row[None, :length], hypothesis)
            expected = hypothesis.log_prob / penalty + weight * covered
            assert hypothesis.score == pytest.approx(expected, abs=1e-4)


def test_without_weight_it_is_the_plain_beam(source):
    model = make_model("rnn")
    with torch.no_grad():
        state = model.start(source, LENGTHS)
    common = {"batch_size": 3, "bos_id": BOS, "eos_id": EOS, "max_lengths": 6, "beam_size": 5}
    assert search(model, source, 0.0) == beam(model.step, state, n_best=5, **common)


def test_other_observers_see_the_same_calls(source):
    model, calls = make_model("transformer"), []
    with observe(calls.append):
        search(model, source, 0.2)
    assert {each.kind for each in calls} >= {"cross", "decoder"}


def test_what_cannot_be_had_is_refused(source):
    with pytest.raises(SettingError, match=r"weight must be at least 0; got -0.1"):
        CoveragePenalty(lambda token, state: None, weight=-0.1)
    model = make_model("rnn", attention="none")
    with pytest.raises(
        SettingError, match=r"model must attend to its source .*; this one does not\."
    ):
        search(model, source, 0.2)
