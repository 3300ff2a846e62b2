"""A score, a mask and a backend written outside the package: they work wherever ours do."""

import runpy
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import pytest
import torch
from torch import Tensor, nn

import regard as rg
from regard.attention import Score, register_score
from regard.attention.call.choice import BACKENDS
from regard.attention.masks.parse import RULES
from regard.attention.scores.content import SCORES
from regard.errors import SettingError
from regard.models.configs.generation import TransformerConfig
from regard.models.transformer import Transformer

EXAMPLES = Path(__file__).parents[3] / "examples" / "extending"


@dataclass(frozen=True, eq=False)
class Weighted(Score):
    """``w · (q ∘ k)``, with weights of each head that a layer learns."""

    w: Tensor

    @classmethod
    def for_heads(cls, heads, dim):
        return cls(nn.Parameter(torch.ones(heads, dim)))

    def tensors(self):
        return (self.w,)

    def tile(self, query, key, *tensors):
        return (query * tensors[0].unsqueeze(-2)) @ key.mT


@pytest.fixture(autouse=True)
def _tables_stay_as_they_are():
    with patch.dict(SCORES), patch.dict(RULES), patch.dict(BACKENDS):
        yield


def example(name):
    """Run an example, which registers what it defines."""
    return runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="example")


def random_tensors(*shapes):
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(shape, generator=generator) for shape in shapes]


def test_a_score_works_wherever_ours_do():
    query, key, value = random_tensors((2, 3, 5, 11), (2, 3, 7, 11), (2, 3, 7, 13))
    score = example("score")["Chebyshev"]()
    matrix = torch.softmax(score.tile(query, key), dim=-1)
    torch.testing.assert_close(rg.attend(query, key, value, score=score), matrix @ value)
    torch.testing.assert_close(rg.weights(query, key, score=score), matrix)
    torch.testing.assert_close(rg.rows(query, key, [2], score=score), matrix[:, :, 2:3])
    summary = rg.summarize(query, key, score=score, top=1)
    torch.testing.assert_close(summary.received, matrix.sum(dim=-2))
    assert torch.equal(summary.top_keys[..., 0], matrix.argmax(dim=-1))
    assert rg.explain(query, key, value, score=score).backend == "tiled"


def test_a_score_is_named_by_settings_and_learns():
    rg.testing.check(Weighted.for_heads(3, 11))
    sizes = {"model_dim": 12, "num_heads": 3, "ffn_dim": 8}
    sizes |= {"num_encoder_layers": 1, "num_decoder_layers": 1}
    with pytest.raises(SettingError, match="score must be one of additive, dot, scaled_dot"):
        TransformerConfig(score="weighted")
    register_score("weighted", Weighted)
    config = TransformerConfig(**sizes, score="weighted")
    model = Transformer(config, source_vocab=9, target_vocab=9)
    ids, lengths = torch.tensor([[5, 6, 7]]), torch.tensor([3])
    model(ids, lengths, ids)[0].square().sum().backward()
    learned = [p for p in model.parameters() if p.shape == (3, 4)]
    assert len(learned) == 3  # of the encoder, of the decoder, and between them
    assert all(p.grad is not None and p.grad.ne(0).any() for p in learned)


@pytest.mark.parametrize("flag", ["has_like_heads", "is_dot_product"])
def test_a_score_that_claims_too_much_is_caught(flag):
    def tile(self, query, key, *tensors):
        heads = torch.arange(1.0, query.shape[1] + 1)[:, None, None]
        return query @ key.mT * (heads.to(query) if flag == "has_like_heads" else 1)

    body = {"tile": tile, flag: True}
    if flag == "is_dot_product":
        body["as_dot"] = lambda self, query, key: rg.ScaledDot(2.0).as_dot(query, key)
    with pytest.raises(rg.testing.CheckError, match=f"{flag} must be said only"):
        rg.testing.check(type("Claiming", (Score,), body)())


@pytest.mark.usefixtures("unchecked_shapes")
def test_a_score_without_the_base_says_what_to_do():
    alone = type("Alone", (), {"tile": Weighted.tile})
    with pytest.raises(SettingError, match=r"inherit from regard\.attention\.Score"):
        rg.attend(torch.zeros(1, 2), torch.zeros(1, 2), score=alone())


@pytest.mark.usefixtures("unchecked_shapes")
def test_a_mask_works_wherever_ours_do_and_is_named_in_text():
    with pytest.raises(SettingError, match="mask must be made of"):
        rg.parse_mask("every(2)")
    every = example("mask")["Every"]
    query, key, value = random_tensors((2, 3, 6, 11), (2, 3, 6, 11), (2, 3, 6, 13))
    mask = every(2) & rg.causal()
    visible = torch.tril(torch.ones(6, 6, dtype=torch.bool)) & (torch.arange(6) % 2 == 0)
    want = rg.attend(query, key, value, mask=visible)
    torch.testing.assert_close(rg.attend(query, key, value, mask=mask), want)
    torch.testing.assert_close(
        rg.weights(query, key, mask=mask), rg.weights(query, key, mask=visible)
    )
    assert rg.summarize(query, key, mask=mask).received[..., 1::2].eq(0).all()
    rg.testing.check(every(3))
    mask = rg.parse_mask("every(2) & ~causal(first=0)")
    assert repr(mask) == "every(2) & ~causal(first=0)"
    assert mask.draw(2, 5) == ". . 1 . 1\n. . 1 . 1"
    with pytest.raises(SettingError, match="every must be given n"):
        rg.parse_mask("every()")


def test_a_backend_is_planned_pinned_and_watched():
    query, key, value = (
        t.requires_grad_() for t in random_tensors((2, 3, 5, 8), (2, 3, 7, 8), (2, 3, 7, 8))
    )
    want = rg.attend(query, key, value)
    example("backend")
    plan = rg.explain(query, key, value)
    assert (plan.backend, plan.reason) == ("naive", "the fastest path that serves it")
    calls = []
    with rg.observe(calls.append):
        torch.testing.assert_close(rg.attend(query, key, value), want)
    torch.testing.assert_close(rg.attend(query, key, value, backend="naive"), want)
    torch.testing.assert_close(calls[0].weights() @ value, want)
    assert rg.explain(query, key, value, score=rg.Custom(lambda q, k: q @ k.mT)).backend == "tiled"
    with pytest.raises(SettingError, match="'naive', but it is for what is plain"):
        rg.attend(query, key, value, dropout=0.5, backend="naive")
