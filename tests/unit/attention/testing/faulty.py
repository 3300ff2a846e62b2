"""Attention that is wrong in silence: each entry names its fault, and makes a call that shows it.

The listings of tutorials and the mistakes of public code, told again in small modules.
"""

import math

import torch
import torch.nn.functional as F
from torch import nn

B, N, C, H = 2, 12, 32, 4
D = C // H
VOCABULARY = 40


def states(seed=0, length=N, width=C):
    return torch.randn(B, length, width, generator=torch.Generator().manual_seed(seed))


def token_ids(seed=0, length=N):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(1, VOCABULARY, (B, length), generator=generator)


def qkv():
    return states(0), states(1), states(2)


class Heads(nn.Module):
    """Multi-head self-attention that is right; faults override one step."""

    def __init__(self, width=C, heads=H):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))

    def split(self, x):
        batch, length, width = x.shape
        return x.view(batch, length, self.heads, width // self.heads).transpose(1, 2)

    def merge(self, x):
        batch, _, length, _ = x.shape
        return x.transpose(1, 2).reshape(batch, length, -1)

    def score(self, q, k):
        return q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])

    def hide(self, scores, mask):
        return scores

    def soften(self, scores):
        return scores.softmax(dim=-1)

    def forward(self, x, mask=None):
        q, k, v = (self.split(part(x)) for part in (self.query, self.key, self.value))
        weights = self.soften(self.hide(self.score(q, k), mask))
        return self.out(self.merge(weights @ v))


class SoftmaxOverHeads(Heads):
    def soften(self, scores):
        return scores.softmax(dim=1)


class SoftmaxOverQueries(Heads):
    def soften(self, scores):
        return scores.softmax(dim=-2)


def softmax_over_the_wrong_axis(query, keys, values):
    """Kernel regression of a batch, whose softmax takes the queries for the keys."""
    weights = F.softmax(-((query - keys.transpose(1, 2)) ** 2) / 2, dim=1)
    return torch.bmm(weights, values)


class PoolingOverOneScore(nn.Module):
    """Pooling over time whose softmax runs over the one score of each token."""

    def __init__(self):
        super().__init__()
        self.score, self.out = nn.Linear(C, 1), nn.Linear(C, 3)

    def forward(self, x):
        weights = torch.softmax(self.score(torch.tanh(x)), dim=-1)
        return self.out((weights * x).sum(1))


class MaskAfterSoftmax(Heads):
    def forward(self, x):
        q, k, v = (self.split(part(x)) for part in (self.query, self.key, self.value))
        seen = torch.tril(torch.ones(x.shape[1], x.shape[1]))
        weights = self.score(q, k).softmax(-1) * seen
        return self.out(self.merge(weights @ v))


def no_softmax(query, key, value):
    return (query @ key.mT / math.sqrt(key.shape[-1])) @ value


def exponentials_over_the_wrong_sum(query, key, value):
    scores = query @ key.mT / math.sqrt(key.shape[-1])
    e = torch.exp(scores - scores.amax(-1, keepdim=True))
    return (e / e.sum(dim=1, keepdim=True)) @ value


class LanguageModel(nn.Module):
    """A small language model; faults choose its attention and its positions."""

    def __init__(self, attention=Heads, has_positions=True, layers=1):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, C)
        self.positions = nn.Embedding(64, C) if has_positions else None
        self.layers = nn.ModuleList(attention() for _ in range(layers))
        self.norms = nn.ModuleList(nn.LayerNorm(C) for _ in range(layers))
        self.head = nn.Linear(C, VOCABULARY)

    def forward(self, ids):
        x = self.tokens(ids)
        if self.positions is not None:
            x = x + self.positions(torch.arange(ids.shape[1]))
        for norm, layer in zip(self.norms, self.layers, strict=True):
            x = x + layer(norm(x))
        return self.head(x)


class CausalHeads(Heads):
    def hide(self, scores, mask):
        n = scores.shape[-1]
        return scores.masked_fill(torch.ones(n, n, dtype=torch.bool).triu(1), float("-inf"))


class OneTooMany(Heads):
    def hide(self, scores, mask):
        n = scores.shape[-1]
        return scores.masked_fill(torch.ones(n, n).triu(diagonal=2) == 1, float("-inf"))


class UpsideDown(Heads):
    def hide(self, scores, mask):
        n = scores.shape[-1]
        return scores.masked_fill(torch.ones(n, n).tril(-1) == 1, float("-inf"))


class Multiplied(Heads):
    def hide(self, scores, mask):
        return scores * torch.ones_like(scores).tril()


class SoftlyHidden(Heads):
    """A mask of −1, which hides little."""

    def hide(self, scores, mask):
        n = scores.shape[-1]
        return scores - torch.ones(n, n).triu(1)


class NotItself(Heads):
    """A mask that hides token t from query t: the first query sees nothing."""

    def hide(self, scores, mask):
        n = scores.shape[-1]
        return scores.masked_fill(torch.ones(n, n).triu(0) == 1, -1e4)


class NotItselfNan(Heads):
    def hide(self, scores, mask):
        n = scores.shape[-1]
        return scores.masked_fill(torch.ones(n, n).triu(0) == 1, float("-inf"))


class TorchTrilMask(nn.Module):
    """A lower triangle given to torch's layer, where True hides."""

    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(C, H, batch_first=True)

    def forward(self, x):
        mask = torch.ones(x.shape[1], x.shape[1]).tril(-1).bool()
        return self.attention(x, x, x, attn_mask=mask)[0]


class BatchMixed(nn.Module):
    """Torch's layer of (tokens, batch, width), given (batch, tokens, width)."""

    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(C, H)

    def forward(self, x):
        return self.attention(x, x, x)[0]


class EncoderMixed(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(C, H, 64)

    def forward(self, x):
        return self.layer(x)


def softmax_over_the_batch(query, key, value):
    scores = query @ key.mT / math.sqrt(key.shape[-1])
    return scores.softmax(0) @ value


class NormOverTheBatch(Heads):
    def forward(self, x):
        x = (x - x.mean(0, keepdim=True)) / (x.std(0, keepdim=True) + 1e-5)
        return super().forward(x)


class Padded(Heads):
    """Attention with a mask of (B, M): True where a token is real."""

    fill = float("-inf")

    def hide(self, scores, mask):
        return scores.masked_fill(~mask[:, None, None, :], self.fill)


class PaddingIgnored(Padded):
    def hide(self, scores, mask):
        return scores


class PaddingOfQueries(Padded):
    def hide(self, scores, mask):
        return scores.masked_fill(~mask[:, None, :, None], -1e4)


class PaddingUpsideDown(Padded):
    def hide(self, scores, mask):
        return scores.masked_fill(mask[:, None, None, :], float("-inf"))


class PaddingMultiplied(Padded):
    def hide(self, scores, mask):
        return scores * mask[:, None, None, :]


class PaddingAsBias(Padded):
    def hide(self, scores, mask):
        return scores + mask[:, None, None, :].float()


class PaddingZeroed(Heads):
    """Padding is made zero, and still takes its part of the softmax."""

    def forward(self, x, mask):
        return super().forward(x * mask[:, :, None])


class MeanOfEverything(nn.Module):
    """Padding is left out of the sum and counts in the mean."""

    def __init__(self):
        super().__init__()
        self.attention, self.head = Padded(), nn.Linear(C, 3)

    def forward(self, x, mask):
        x = self.attention(x, mask) * mask[:, :, None]
        return self.head(x.mean(1))


class LengthsIgnored(nn.Module):
    """A classifier that takes lengths and does not use them."""

    def __init__(self):
        super().__init__()
        self.model, self.head = LanguageModel(), nn.Linear(VOCABULARY, 3)

    def forward(self, ids, lengths):
        return self.head(self.model(ids).mean(1))


class FloatMask(Heads):
    """A float mask of zeros and ones, which torch adds to the scores."""

    def forward(self, x, mask):
        q, k, v = (self.split(part(x)) for part in (self.query, self.key, self.value))
        mask = mask[:, None, None, :].float()
        return self.out(self.merge(F.scaled_dot_product_attention(q, k, v, attn_mask=mask)))


class TorchKeepMask(nn.Module):
    """A mask of real tokens, given where torch wants one of padding."""

    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(C, H, batch_first=True)

    def forward(self, x, mask):
        return self.attention(x, x, x, key_padding_mask=mask)[0]


class EmptyNan(Padded):
    pass


class EmptyMean(Padded):
    fill = -1e4


class Unscaled(Heads):
    def score(self, q, k):
        return q @ k.transpose(-2, -1)


class ScaledByTheModel(Heads):
    def score(self, q, k):
        return q @ k.transpose(-2, -1) / math.sqrt(C)


class Multiplying(Heads):
    def score(self, q, k):
        return q @ k.transpose(-2, -1) * math.sqrt(q.shape[-1])


class ScaledByTokens(Heads):
    def score(self, q, k):
        return q @ k.transpose(-2, -1) / math.sqrt(k.shape[-2])


class ScaledTwice(Heads):
    def forward(self, x):
        q, k, v = (self.split(part(x)) for part in (self.query, self.key, self.value))
        q = q / math.sqrt(D)
        return self.out(self.merge(F.scaled_dot_product_attention(q, k, v)))


class HalfOverflow(Padded):
    fill = -1e9


def softmax_by_hand(query, key, value):
    e = torch.exp(query @ key.mT / math.sqrt(key.shape[-1]))
    return (e / e.sum(-1, keepdim=True)) @ value


class AlwaysDrops(Heads):
    def soften(self, scores):
        return F.dropout(scores.softmax(-1), 0.1)


class DropsInTheKernel(Heads):
    def forward(self, x):
        q, k, v = (self.split(part(x)) for part in (self.query, self.key, self.value))
        return self.out(self.merge(F.scaled_dot_product_attention(q, k, v, dropout_p=0.1)))


class HiddenDropout(Heads):
    """Dropout in a plain list, which ``eval()`` does not reach."""

    def __init__(self):
        super().__init__()
        self.extras = [nn.Dropout(0.1)]

    def soften(self, scores):
        return self.extras[0](scores.softmax(-1))


class PositionsOfTheBatch(nn.Module):
    """Sinusoids of (tokens, 1, width), added to (batch, tokens, width)."""

    def __init__(self):
        super().__init__()
        angles = torch.arange(64)[:, None] / 10000 ** (torch.arange(0, C, 2) / C)
        table = torch.stack([angles.sin(), angles.cos()], -1).flatten(1)
        self.register_buffer("table", table[:, None])
        self.attention = Heads()

    def forward(self, x):
        return self.attention(x + self.table[: x.shape[0]])


class PositionsAfter(LanguageModel):
    """Positions that come in after the attention."""

    def forward(self, ids):
        x = self.tokens(ids)
        x = x + self.layers[0](self.norms[0](x))
        return self.head(x + self.positions(torch.arange(ids.shape[1])))


class FrozenZeros(LanguageModel):
    """Positions that are zeros, and stay so."""

    def __init__(self):
        super().__init__(has_positions=False)
        self.places = nn.Parameter(torch.zeros(1, 64, C), requires_grad=False)

    def forward(self, ids):
        x = self.tokens(ids) + self.places[:, : ids.shape[1]]
        return self.head(x + self.layers[0](self.norms[0](x)))


class SplitByReshape(Heads):
    def split(self, x):
        batch, length, width = x.shape
        return x.reshape(batch, self.heads, length, width // self.heads)

    def merge(self, x):
        return x.reshape(x.shape[0], -1, self.heads * x.shape[-1])


class SplitOnlyByReshape(Heads):
    def split(self, x):
        batch, length, width = x.shape
        return x.reshape(batch, self.heads, length, width // self.heads)


class MergedByReshape(Heads):
    def merge(self, x):
        return x.reshape(x.shape[0], -1, self.heads * x.shape[-1])


class ReturnsScores(Heads):
    def forward(self, x):
        q, k, v = (self.split(part(x)) for part in (self.query, self.key, self.value))
        scores = self.score(q, k)
        return self.out(self.merge(scores.softmax(-1) @ v)), scores


class ReturnsUnmasked(Heads):
    def forward(self, x):
        q, k, v = (self.split(part(x)) for part in (self.query, self.key, self.value))
        scores = self.score(q, k)
        hidden = torch.ones(x.shape[1], x.shape[1]).triu(1) == 1
        used = scores.masked_fill(hidden, float("-inf")).softmax(-1)
        return self.out(self.merge(used @ v)), scores.softmax(-1)


class ReturnsMeanOfTheBatch(Heads):
    def forward(self, x):
        q, k, v = (self.split(part(x)) for part in (self.query, self.key, self.value))
        weights = self.score(q, k).softmax(-1)
        mean = weights.mean(0, keepdim=True).mean(1).expand(x.shape[0], -1, -1)
        return self.out(self.merge(weights @ v)), mean


class ReturnsOther(Heads):
    """The fused kernel computes; the weights that are returned forget its mask."""

    def forward(self, x):
        q, k, v = (self.split(part(x)) for part in (self.query, self.key, self.value))
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(self.merge(out)), self.score(q, k).softmax(-1)


class DetachedWeights(Heads):
    def soften(self, scores):
        return scores.softmax(-1).detach()


class NeverUsed(Heads):
    """A listing's block that makes a feed-forward net and calls something else."""

    def __init__(self):
        super().__init__()
        self.feedforward = nn.Sequential(nn.Linear(C, 64), nn.ReLU(), nn.Linear(64, C))


class PlainTensor(nn.Module):
    """A learned width that is a plain tensor: no optimiser is given it."""

    def __init__(self):
        super().__init__()
        self.w = torch.rand(1, requires_grad=True)

    def forward(self, queries, keys, values):
        scores = -(((queries[..., None] - keys[:, None]) * self.w) ** 2) / 2
        return torch.bmm(scores.softmax(-1), values[..., None]).squeeze(-1)


class PlainList(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = [Heads(), Heads()]
        self.norm = nn.LayerNorm(C)

    def forward(self, x):
        for layer in self.layers:
            x = x + layer(self.norm(x))
        return x


def detached_function(query, key, value):
    scores = query @ key.mT / math.sqrt(key.shape[-1])
    return scores.softmax(-1).data @ value


class KeptMask(Heads):
    """A mask made at the first call and kept: the lengths of the first batch for all."""

    def __init__(self):
        super().__init__()
        self.mask = None

    def hide(self, scores, mask):
        if self.mask is None:
            n = scores.shape[-1]
            self.mask = torch.ones(n, n).triu(1) == 1
        return scores.masked_fill(self.mask, float("-inf"))


class KeptKeys(Heads):
    """Keys of earlier calls that stay."""

    def __init__(self):
        super().__init__()
        self.keys = None

    def forward(self, x):
        q, k, v = (self.split(part(x)) for part in (self.query, self.key, self.value))
        if self.keys is not None:
            k, v = torch.cat([self.keys[0], k], -2), torch.cat([self.keys[1], v], -2)
        self.keys = k.detach(), v.detach()
        return self.out(self.merge(self.score(q, k).softmax(-1) @ v))


class Overwrites(Heads):
    def forward(self, x):
        x += torch.arange(x.shape[1])[:, None] / 100
        return super().forward(x)


class RunningMean(Heads):
    def __init__(self):
        super().__init__()
        self.mean = torch.zeros(C)

    def forward(self, x):
        self.mean = 0.9 * self.mean + 0.1 * x.detach().mean((0, 1))
        return super().forward(x - self.mean)


class AllPairs(Heads):
    def score(self, q, k):
        return (q.unsqueeze(-2) * k.unsqueeze(-3)).sum(-1) / math.sqrt(q.shape[-1])


def reorderable(query, key, value):
    q, k = F.elu(query) + 1, F.elu(key) + 1
    return (q @ k.mT) @ value


def wide_window(query, key, value):
    """A window of nine keys, from all scores of a long text."""
    n = query.shape[-2]
    scores = query @ key.mT / math.sqrt(key.shape[-1])
    distance = (torch.arange(n)[:, None] - torch.arange(n)).abs()
    return scores.masked_fill(distance > 4, float("-inf")).softmax(-1) @ value


def mask_of(lengths):
    return torch.arange(N) < torch.tensor(lengths)[:, None]


def plain(kind, **options):
    return lambda: (kind(), (states(),), options)


def function(attention, **options):
    return lambda: (attention, qkv(), options)


def of_ids(make, **options):
    return lambda: (make(), (token_ids(),), options)


def padded(kind, lengths=(12, 7), **options):
    return lambda: (kind(), (states(), mask_of(lengths)), {"padding": 1, **options})


class TokensSecond(Heads):
    """Heads stay behind the tokens, where the fused function takes tokens."""

    def split(self, x):
        return x.view(*x.shape[:2], self.heads, -1)

    def forward(self, x, mask=None):
        q, k, v = (self.split(part(x)) for part in (self.query, self.key, self.value))
        return self.out(F.scaled_dot_product_attention(q, k, v).flatten(2))


class SoftmaxTwice(Heads):
    def soften(self, scores):
        return scores.softmax(dim=-1).softmax(dim=-1)


class DetachedOfOneProjection(nn.Module):
    """Queries and keys are rows of a parameter whose values get their gradient."""

    def __init__(self):
        super().__init__()
        self.in_proj = nn.Linear(C, 3 * C)

    def forward(self, x):
        q, k, v = self.in_proj(x).chunk(3, dim=-1)
        weights = (q @ k.mT / math.sqrt(C)).softmax(dim=-1)
        self.last = weights.detach()
        return self.last @ v


def padded_ids():
    ids = token_ids()
    ids[1, 7:] = 0
    return ids


class MeanOfIds(nn.Module):
    """Padding is found in the ids, hidden in the layer, and counted in the mean."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, C, padding_idx=0)
        self.positions = nn.Embedding(N, C)
        self.layer = nn.TransformerEncoderLayer(C, H, 64, batch_first=True)

    def pool(self, states, is_padding):
        return states.mean(1)

    def forward(self, ids):
        is_padding = ids == 0
        x = self.embedding(ids) + self.positions(torch.arange(ids.shape[1]))
        return self.pool(self.layer(x, src_key_padding_mask=is_padding), is_padding)


FAULTY = {
    "softmax over heads": ("rows", plain(SoftmaxOverHeads)),
    "softmax over queries": ("rows", plain(SoftmaxOverQueries)),
    "kernel regression over the wrong axis": (
        "rows",
        lambda: (
            softmax_over_the_wrong_axis,
            (states(0, 9, 1), states(1, 12, 1), states(2, 12, 1)),
            {},
        ),
    ),
    "softmax over one score": ("rows", plain(PoolingOverOneScore)),
    "mask after the softmax": ("rows", plain(MaskAfterSoftmax)),
    "no softmax": ("rows", function(no_softmax)),
    "exponentials over the wrong sum": ("rows", function(exponentials_over_the_wrong_sum)),
    "language model without a mask": ("future", of_ids(LanguageModel, causal=True)),
    "mask of one too many": ("future", plain(OneTooMany)),
    "mask of one too many, promised": ("future", plain(OneTooMany, causal=True)),
    "scores multiplied by the mask": ("future", plain(Multiplied)),
    "a mask of minus one": ("future", plain(SoftlyHidden, causal=True)),
    "torch's causal mask upside down": ("polarity", plain(TorchTrilMask)),
    "upside down": ("polarity", plain(UpsideDown, causal=True)),
    "batch first mixed up": ("batch", plain(BatchMixed)),
    "encoder mixed up": ("batch", plain(EncoderMixed)),
    "softmax over the batch": ("batch", function(softmax_over_the_batch)),
    "norm over the batch": ("batch", plain(NormOverTheBatch)),
    "padding ignored": ("padding", padded(PaddingIgnored)),
    "padding of queries": ("padding", padded(PaddingOfQueries)),
    "padding hides queries": ("polarity", padded(PaddingOfQueries)),
    "padding multiplied": ("padding", padded(PaddingMultiplied)),
    "padding zeroed": ("padding", padded(PaddingZeroed)),
    "mean of everything": ("padding", padded(MeanOfEverything)),
    "lengths ignored": (
        "padding",
        lambda: (LengthsIgnored(), (token_ids(), torch.tensor([12, 7])), {"padding": "lengths"}),
    ),
    "mean of everything, padding in the ids": (
        "padding",
        lambda: (MeanOfIds(), (padded_ids(),), {"padding": "ids"}),
    ),
    "padding upside down": ("polarity", padded(PaddingUpsideDown)),
    "padding as a bias": ("polarity", padded(PaddingAsBias)),
    "float mask": ("polarity", padded(FloatMask)),
    "torch's padding upside down": ("polarity", padded(TorchKeepMask)),
    "empty row of NaN": ("empty", padded(EmptyNan, (12, 0))),
    "empty row of the mean": ("empty", padded(EmptyMean, (12, 0))),
    "first query sees nothing": ("empty", plain(NotItself)),
    "first query is NaN": ("empty", plain(NotItselfNan)),
    "no scale": ("scale", plain(Unscaled)),
    "scale of the model": ("scale", plain(ScaledByTheModel)),
    "multiplied by the root": ("scale", plain(Multiplying)),
    "scale of the tokens": ("scale", plain(ScaledByTokens)),
    "scaled twice": ("scale", plain(ScaledTwice)),
    "no scale in a function": ("scale", function(lambda q, k, v: (q @ k.mT).softmax(-1) @ v)),
    "minus a billion": ("overflow", padded(HalfOverflow)),
    "softmax by hand": ("overflow", function(softmax_by_hand)),
    "always drops": ("dropout", plain(AlwaysDrops)),
    "drops in the kernel": ("dropout", plain(DropsInTheKernel)),
    "hidden dropout": ("dropout", plain(HiddenDropout)),
    "no positions": ("positions", of_ids(lambda: LanguageModel(has_positions=False))),
    "no positions, causal": (
        "positions",
        of_ids(lambda: LanguageModel(CausalHeads, has_positions=False, layers=2), causal=True),
    ),
    "positions of the batch": ("positions", plain(PositionsOfTheBatch)),
    "positions after": ("positions", of_ids(PositionsAfter)),
    "frozen zeros": ("positions", of_ids(FrozenZeros)),
    "heads of a token attend to each other": ("heads", plain(TokensSecond)),
    "split and merged by reshape": ("heads", plain(SplitByReshape)),
    "split by reshape": ("heads", plain(SplitOnlyByReshape)),
    "merged by reshape": ("heads", plain(MergedByReshape)),
    "returns scores": ("weights", plain(ReturnsScores)),
    "returns unmasked weights": ("weights", plain(ReturnsUnmasked)),
    "returns a mean of the batch": ("weights", plain(ReturnsMeanOfTheBatch)),
    "returns other weights": ("weights", plain(ReturnsOther)),
    "softmax of a softmax": ("rows", plain(SoftmaxTwice)),
    "detached weights of one projection": ("gradients", plain(DetachedOfOneProjection)),
    "detached weights": ("gradients", plain(DetachedWeights)),
    "never used": ("gradients", plain(NeverUsed)),
    "plain tensor": (
        "gradients",
        lambda: (PlainTensor(), (states()[..., 0], states(1)[..., 0], states(2)[..., 0]), {}),
    ),
    "plain list": ("gradients", plain(PlainList)),
    "detached function": ("gradients", function(detached_function)),
    "kept mask": ("state", plain(KeptMask)),
    "kept keys": ("state", plain(KeptKeys)),
    "overwrites its input": ("state", plain(Overwrites)),
    "running mean": ("state", plain(RunningMean)),
    "all pairs": ("memory", plain(AllPairs)),
    "reorderable": ("memory", function(reorderable)),
    "wide window": (
        "memory",
        lambda: (wide_window, tuple(states(n, 1024, 16) for n in range(3)), {}),
    ),
}
