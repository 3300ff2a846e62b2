"""Attention that is right, of many kinds: each entry makes a call that an audit must not accuse."""

import math

import torch
import torch.nn.functional as F
from tests.unit.attention.testing.faulty import (
    VOCABULARY,
    B,
    C,
    CausalHeads,
    D,
    H,
    Heads,
    LanguageModel,
    MeanOfIds,
    N,
    Padded,
    function,
    mask_of,
    of_ids,
    padded,
    padded_ids,
    plain,
    qkv,
    states,
    token_ids,
)
from torch import nn

import regard as rg
from regard import layers, models

LENGTHS = torch.tensor([12, 7])


class Self(nn.Module):
    """A layer of query, key and value as self-attention."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x, **options):
        out = self.layer(x, x, x, **options)
        return out[0] if isinstance(out, tuple) else out


def softmax_with_lengths(scores, lengths, fill=-1e6):
    """The softmax of a textbook: scores beyond a length become a large negative number."""
    hidden = torch.arange(scores.shape[-1]) >= lengths.view(-1, *[1] * (scores.dim() - 1))
    scores = scores.clone()
    scores[hidden.expand(scores.shape)] = fill
    return scores.softmax(-1)


class TextbookDot(nn.Module):
    def __init__(self):
        super().__init__()
        self.dropout = nn.Dropout(0.1)

    def forward(self, queries, keys, values, valid_lens):
        scores = torch.bmm(queries, keys.transpose(1, 2)) / math.sqrt(queries.shape[-1])
        self.attention_weights = softmax_with_lengths(scores, valid_lens)
        return torch.bmm(self.dropout(self.attention_weights), values)


class TextbookAdditive(nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.key = nn.Linear(C, 16, bias=False), nn.Linear(C, 16, bias=False)
        self.v = nn.Linear(16, 1, bias=False)

    def forward(self, queries, keys, values, valid_lens):
        features = torch.tanh(self.query(queries).unsqueeze(2) + self.key(keys).unsqueeze(1))
        weights = softmax_with_lengths(self.v(features).squeeze(-1), valid_lens)
        return torch.bmm(weights, values), weights


class TextbookHeads(nn.Module):
    """Heads in the axis of the batch: (B·H, N, D)."""

    def __init__(self):
        super().__init__()
        self.attention = TextbookDot()
        self.parts = nn.ModuleList(nn.Linear(C, C, bias=False) for _ in range(4))

    def split(self, x):
        x = x.reshape(x.shape[0], x.shape[1], H, -1).permute(0, 2, 1, 3)
        return x.reshape(-1, x.shape[2], x.shape[3])

    def forward(self, queries, keys, values, valid_lens):
        q, k, v = (
            self.split(part(x))
            for part, x in zip(self.parts, (queries, keys, values), strict=False)
        )
        out = self.attention(q, k, v, valid_lens.repeat_interleave(H, 0))
        out = out.reshape(-1, H, *out.shape[1:]).permute(0, 2, 1, 3)
        return self.parts[3](out.reshape(*out.shape[:2], -1))


class TextbookStep(nn.Module):
    """One step of a decoder with additive attention over an encoder's states."""

    def __init__(self):
        super().__init__()
        self.attention, self.cell = TextbookAdditive(), nn.GRUCell(2 * C, C)

    def forward(self, x, hidden, memory, lengths):
        context, weights = self.attention(hidden[:, None], memory, memory, lengths)
        hidden = self.cell(torch.cat([context[:, 0], x], -1), hidden)
        return hidden, weights


class Luong(nn.Module):
    """The dot product of recurrent states, without a scale: Luong et al. (2015)."""

    def __init__(self):
        super().__init__()
        self.encoder = nn.GRU(C, C, batch_first=True)
        self.decoder = nn.GRU(C, C, batch_first=True)
        self.out = nn.Linear(2 * C, C)

    def forward(self, src, tgt):
        memory, last = self.encoder(src)
        hidden, _ = self.decoder(tgt, last)
        weights = torch.softmax(hidden @ memory.transpose(1, 2), dim=-1)
        return torch.tanh(self.out(torch.cat([weights @ memory, hidden], -1)))


class SelfPooling(nn.Module):
    """One weight for each token, by a learned vector: attention pooling of a classifier."""

    def __init__(self):
        super().__init__()
        self.score, self.out = nn.Linear(C, 1), nn.Linear(C, 3)

    def forward(self, x, mask):
        scores = self.score(torch.tanh(x)).squeeze(-1).masked_fill(~mask, float("-inf"))
        weights = scores.softmax(-1)
        return self.out((weights[..., None] * x).sum(1)), weights


class MeanPooling(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.head = nn.Embedding(VOCABULARY, C), nn.Linear(C, 3)

    def forward(self, ids, mask):
        x = self.tokens(ids) * mask[:, :, None]
        return self.head(x.sum(1) / mask.sum(1, keepdim=True))


class RecurrentClassifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.head = nn.Embedding(VOCABULARY, C), nn.Linear(2 * C, 3)
        self.reader = nn.LSTM(C, C, batch_first=True, bidirectional=True)
        self.query = nn.Parameter(torch.randn(2 * C) * 0.1)

    def forward(self, ids, lengths):
        packed = nn.utils.rnn.pack_padded_sequence(
            self.tokens(ids), lengths, batch_first=True, enforce_sorted=False
        )
        x, _ = nn.utils.rnn.pad_packed_sequence(
            self.reader(packed)[0], batch_first=True, total_length=ids.shape[1]
        )
        hidden = torch.arange(ids.shape[1]) >= lengths[:, None]
        weights = (torch.tanh(x) @ self.query).masked_fill(hidden, float("-inf")).softmax(-1)
        return self.head((weights[:, None] @ x)[:, 0])


def linear_attention(query, key, value):
    q, k = F.elu(query) + 1, F.elu(key) + 1
    context = k.mT @ value
    return (q @ context) / (q @ k.sum(-2)[..., None])


def efficient_attention(query, key, value):
    """A softmax of queries over features and of keys over positions: Shen et al. (2018)."""
    return query.softmax(-1) @ (key.softmax(-2).mT @ value)


def cosine_attention(query, key, value):
    q, k = F.normalize(query, dim=-1), F.normalize(key, dim=-1)
    return (10 * q @ k.mT).softmax(-1) @ value


def root_cosine_attention(query, key, value):
    """The cosine times √D, as queries and keys of a norm of one want it."""
    q, k = F.normalize(query, dim=-1), F.normalize(key, dim=-1)
    return (q @ k.mT * query.shape[-1] ** 0.5).softmax(-1) @ value


def sigmoid_attention(query, key, value):
    n = key.shape[-2]
    return torch.sigmoid(query @ key.mT / math.sqrt(key.shape[-1]) - math.log(n)) @ value


def gaussian_attention(query, key, value):
    return (-(torch.cdist(query, key) ** 2) / 2).softmax(-1) @ value


def sink_attention(query, key, value):
    """A softmax that may attend to nothing: one more score, whose weight is left out."""
    scores = query @ key.mT / math.sqrt(key.shape[-1])
    scores = torch.cat([scores, torch.zeros_like(scores[..., :1])], -1)
    return scores.softmax(-1)[..., :-1] @ value


def softcapped_attention(query, key, value):
    scores = query @ key.mT / math.sqrt(key.shape[-1])
    return (20 * torch.tanh(scores / 20)).softmax(-1) @ value


def einsum_attention(query, key, value):
    scores = torch.einsum("bnd,bmd->bnm", query, key) / query.shape[-1] ** 0.5
    return torch.einsum("bnm,bmd->bnd", scores.softmax(-1), value)


def stable_attention(query, key, value):
    scores = query @ key.mT / math.sqrt(key.shape[-1])
    e = torch.exp(scores - scores.amax(-1, keepdim=True))
    return (e / e.sum(-1, keepdim=True)) @ value


def top_attention(query, key, value):
    """The four best keys of each query."""
    scores = query @ key.mT / math.sqrt(key.shape[-1])
    worst = scores.topk(4, -1).values[..., -1:]
    return scores.masked_fill(scores < worst, float("-inf")).softmax(-1) @ value


class Window(Heads):
    def hide(self, scores, mask):
        n = scores.shape[-1]
        distance = (torch.arange(n)[:, None] - torch.arange(n)).abs()
        return scores.masked_fill(distance > 2, float("-inf"))


class Alibi(CausalHeads):
    def hide(self, scores, mask):
        n = scores.shape[-1]
        distance = torch.arange(n) - torch.arange(n)[:, None]
        slopes = 2.0 ** -torch.arange(1, H + 1)
        return super().hide(scores + slopes[:, None, None] * distance, mask)


class RelativeBias(Heads):
    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.zeros(H, 63))

    def hide(self, scores, mask):
        n = scores.shape[-1]
        return scores + self.table[:, torch.arange(n)[:, None] - torch.arange(n) + 31]


class Rotary(CausalHeads):
    def score(self, q, k):
        angles = torch.arange(q.shape[-2])[:, None] / 100 ** (torch.arange(0, D, 2) / D)

        def turn(x):
            even, odd = x[..., ::2], x[..., 1::2]
            turned = (
                even * angles.cos() - odd * angles.sin(),
                even * angles.sin() + odd * angles.cos(),
            )
            return torch.stack(turned, -1).flatten(-2)

        return super().score(turn(q), turn(k))


class Zeros(LanguageModel):
    """Learned positions that begin at zero."""

    def __init__(self):
        super().__init__(CausalHeads)
        nn.init.zeros_(self.positions.weight)
        nn.init.zeros_(self.head.bias)


class Renamed(nn.Module):
    """A model whose token ids have another name."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, masked_tokens):
        return self.model(masked_tokens)


class ReturnsWeights(Padded):
    def forward(self, x, mask):
        q, k, v = (self.split(part(x)) for part in (self.query, self.key, self.value))
        weights = self.soften(self.hide(self.score(q, k), mask))
        return self.out(self.merge(weights @ v)), weights


class FusedHeads(nn.Module):
    """One projection for all three, and torch's kernel: the layer of a small GPT."""

    def __init__(self):
        super().__init__()
        self.inner, self.outer = nn.Linear(C, 3 * C), nn.Linear(C, C)
        self.dropout = 0.1

    def forward(self, x):
        q, k, v = (
            part.view(*x.shape[:2], H, D).transpose(1, 2) for part in self.inner(x).split(C, 2)
        )
        p = self.dropout if self.training else 0.0
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=p)
        return self.outer(out.transpose(1, 2).contiguous().view(x.shape))


class GroupedHeads(nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.out = nn.Linear(C, C), nn.Linear(C, C)
        self.key, self.value = nn.Linear(C, 2 * D), nn.Linear(C, 2 * D)

    def forward(self, x):
        def split(part, heads):
            return part(x).view(*x.shape[:2], heads, D).transpose(1, 2)

        q, k, v = split(self.query, H), split(self.key, 2), split(self.value, 2)
        k, v = k.repeat_interleave(2, 1), v.repeat_interleave(2, 1)
        weights = (q @ k.mT / math.sqrt(D)).softmax(-1)
        return self.out((weights @ v).transpose(1, 2).flatten(2))


class DecoderLayer(nn.Module):
    """Causal self-attention, and attention to a memory."""

    def __init__(self):
        super().__init__()
        self.self_attention = nn.MultiheadAttention(C, H, batch_first=True)
        self.cross_attention = nn.MultiheadAttention(C, H, batch_first=True)
        self.norm = nn.LayerNorm(C)

    def forward(self, x, memory):
        n = x.shape[1]
        hidden = torch.ones(n, n, dtype=torch.bool).triu(1)
        x = x + self.self_attention(x, x, x, attn_mask=hidden, need_weights=False)[0]
        out, weights = self.cross_attention(self.norm(x), memory, memory)
        return x + out, weights


class GraphAttention(nn.Module):
    """Attention over the edges of a graph, additive: Veličković et al. (2018)."""

    def __init__(self):
        super().__init__()
        self.project = nn.Linear(C, C, bias=False)
        self.left, self.right = nn.Linear(C, 1, bias=False), nn.Linear(C, 1, bias=False)
        self.register_buffer("edges", (torch.arange(N)[:, None] - torch.arange(N)).abs() <= 1)

    def forward(self, x):
        h = self.project(x)
        n = x.shape[1]
        scores = F.leaky_relu(self.left(h) + self.right(h).mT, 0.2)
        return scores.masked_fill(~self.edges[:n, :n], float("-inf")).softmax(-1) @ h


class Conformer(nn.Module):
    """Attention between convolutions."""

    def __init__(self):
        super().__init__()
        self.attention, self.norm = Heads(), nn.LayerNorm(C)
        self.before, self.after = (nn.Conv1d(C, C, 3, padding=1) for _ in range(2))

    def forward(self, x):
        x = x + self.before(x.mT).mT
        x = x + self.attention(self.norm(x))
        return x + self.after(x.mT).mT


class SlotAttention(nn.Module):
    """Slots that compete for inputs: a softmax over slots, renormalised over inputs."""

    def __init__(self):
        super().__init__()
        self.slots = nn.Parameter(torch.randn(1, 4, C))
        self.query, self.key, self.value = (nn.Linear(C, C) for _ in range(3))

    def forward(self, x):
        slots = self.slots.expand(len(x), -1, -1)
        scores = self.query(slots) @ self.key(x).mT / math.sqrt(C)
        weights = scores.softmax(dim=1)
        weights = weights / weights.sum(-1, keepdim=True)
        return weights @ self.value(x)


class VisionModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch = nn.Conv2d(3, C, 4, 4)
        self.token = nn.Parameter(torch.zeros(1, 1, C))
        self.places = nn.Parameter(torch.randn(1, 17, C) * 0.02)
        self.layer = nn.TransformerEncoderLayer(C, H, 64, batch_first=True)
        self.head = nn.Linear(C, 5)

    def forward(self, pictures):
        x = self.patch(pictures).flatten(2).mT
        x = torch.cat([self.token.expand(len(x), -1, -1), x], 1) + self.places
        return self.head(self.layer(x)[:, 0])


def hugging_face(model, config, *, inputs=None, causal=None, padding=None, **options):
    def make():
        import transformers

        made = getattr(transformers, model)(getattr(transformers, config)(**options)).eval()
        given = {"input_ids": token_ids()} if inputs is None else inputs()
        promised = {"causal": causal} if causal is not None else {}
        promised |= {"padding": padding} if padding is not None else {}
        return made, (), given | promised

    return make


SMALL = {
    "vocab_size": VOCABULARY,
    "hidden_size": C,
    "num_hidden_layers": 2,
    "num_attention_heads": H,
    "intermediate_size": 48,
    "max_position_embeddings": 64,
}
GPT = {"vocab_size": VOCABULARY, "n_embd": C, "n_layer": 2, "n_head": H, "n_positions": 64}


def masked():
    return {"input_ids": token_ids(), "attention_mask": mask_of((12, 7)).long()}


def pairs():
    return {"input_ids": token_ids(), "decoder_input_ids": token_ids(1, 9)}


def pictures():
    return torch.randn(B, 3, 16, 16, generator=torch.Generator().manual_seed(0))


class Scored(nn.Module):
    """A layer of ours that prepares its keys."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, query, key, value):
        return self.layer(query, self.layer.prepare(key), value)


def scored(kind, *sizes):
    return lambda: (Scored(kind(*sizes)), qkv(), {})


def reader():
    config = models.EncoderConfig(model_dim=C, num_heads=H, num_layers=2, ffn_dim=48)
    from regard.models.readers import Encoder

    return Encoder(config, vocab_size=VOCABULARY)


class MeanOfWords(MeanOfIds):
    def pool(self, states, is_padding):
        is_word = ~is_padding[..., None]
        return (states * is_word).sum(1) / is_word.sum(1)


class Talking(Heads):
    """Heads are mixed before and after the softmax: Shazeer et al. (2020)."""

    def __init__(self):
        super().__init__()
        self.before, self.after = (nn.Parameter(torch.randn(H, H) / 2) for _ in range(2))

    def forward(self, x):
        q, k, v = (self.split(part(x)) for part in (self.query, self.key, self.value))
        scores = torch.einsum("bhnm,hg->bgnm", self.score(q, k), self.before)
        weights = torch.einsum("bhnm,hg->bgnm", scores.softmax(dim=-1), self.after)
        return self.out(self.merge(weights @ v))


class Differential(nn.Module):
    """The difference of two softmaxes: Ye et al. (2024)."""

    def __init__(self):
        super().__init__()
        self.queries, self.keys = nn.Linear(C, 2 * C), nn.Linear(C, 2 * C)
        self.value, self.part = nn.Linear(C, C), nn.Parameter(torch.tensor(0.4))

    def forward(self, x):
        sides = zip(self.queries(x).chunk(2, -1), self.keys(x).chunk(2, -1), strict=True)
        one, other = ((q @ k.mT / C**0.5).softmax(dim=-1) for q, k in sides)
        return (one - self.part * other) @ self.value(x)


class InTiles(Heads):
    """Keys come four at a time, and the maximum and the sum are carried on."""

    def forward(self, x):
        q, k, v = (self.split(part(x)) for part in (self.query, self.key, self.value))
        top = torch.full((*q.shape[:-1], 1), -torch.inf)
        total, context = torch.zeros_like(top), torch.zeros_like(q)
        for start in range(0, x.shape[1], 4):
            tile = slice(start, start + 4)
            scores = self.score(q, k[..., tile, :])
            higher = torch.maximum(top, scores.amax(-1, keepdim=True))
            weights, shrink = (scores - higher).exp(), (top - higher).exp()
            total = total * shrink + weights.sum(-1, keepdim=True)
            context, top = context * shrink + weights @ v[..., tile, :], higher
        return self.out(self.merge(context / total))


RIGHT = {
    "torch's attention": plain(lambda: Self(nn.MultiheadAttention(C, H, batch_first=True))),
    "torch's attention itself": lambda: (
        nn.MultiheadAttention(C, H, batch_first=True),
        (states(),) * 3,
        {"key_padding_mask": ~mask_of((12, 7)), "padding": "key_padding_mask"},
    ),
    "torch's attention, tokens first": lambda: (
        nn.MultiheadAttention(C, H),
        (states().transpose(0, 1),) * 3,
        {"batch_axis": 1},
    ),
    "torch's encoder layer": plain(lambda: nn.TransformerEncoderLayer(C, H, 64, batch_first=True)),
    "torch's encoder": lambda: (
        nn.TransformerEncoder(
            nn.TransformerEncoderLayer(C, H, 64, batch_first=True, norm_first=True),
            2,
            enable_nested_tensor=False,
        ),
        (states(),),
        {"src_key_padding_mask": ~mask_of((12, 7)), "padding": "src_key_padding_mask"},
    ),
    "torch's nested encoder": lambda: (
        nn.TransformerEncoder(nn.TransformerEncoderLayer(C, H, 64, batch_first=True), 2),
        (states(),),
        {"src_key_padding_mask": ~mask_of((12, 7))},
    ),
    "torch's decoder layer": lambda: (
        nn.TransformerDecoderLayer(C, H, 64, batch_first=True),
        (states(), states(1, 9)),
        {"tgt_mask": nn.Transformer.generate_square_subsequent_mask(N), "causal": True},
    ),
    "torch's transformer": lambda: (
        nn.Transformer(C, H, 1, 1, 64, batch_first=True),
        (states(), states(1)),
        {"tgt_mask": nn.Transformer.generate_square_subsequent_mask(N), "causal": True},
    ),
    "torch's function": function(F.scaled_dot_product_attention),
    "torch's causal function": function(
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), causal=True
    ),
    "BERT": hugging_face(
        "BertModel", "BertConfig", inputs=masked, padding="attention_mask", **SMALL
    ),
    "BERT, eager": hugging_face(
        "BertModel",
        "BertConfig",
        inputs=masked,
        padding="attention_mask",
        attn_implementation="eager",
        output_attentions=True,
        **SMALL,
    ),
    "GPT-2": hugging_face("GPT2LMHeadModel", "GPT2Config", causal=True, **GPT),
    "GPT-2, eager, padded": hugging_face(
        "GPT2LMHeadModel",
        "GPT2Config",
        inputs=masked,
        causal=True,
        padding="attention_mask",
        attn_implementation="eager",
        output_attentions=True,
        **GPT,
    ),
    "Llama": hugging_face(
        "LlamaForCausalLM",
        "LlamaConfig",
        inputs=masked,
        causal=True,
        padding="attention_mask",
        num_key_value_heads=2,
        **SMALL,
    ),
    "Mistral": hugging_face(
        "MistralForCausalLM",
        "MistralConfig",
        causal=True,
        num_key_value_heads=2,
        sliding_window=4,
        **SMALL,
    ),
    "Qwen": hugging_face(
        "Qwen3ForCausalLM", "Qwen3Config", causal=True, num_key_value_heads=2, head_dim=8, **SMALL
    ),
    "Gemma": hugging_face(
        "Gemma2ForCausalLM", "Gemma2Config", num_key_value_heads=2, head_dim=8, **SMALL
    ),
    "GPT-NeoX": hugging_face("GPTNeoXForCausalLM", "GPTNeoXConfig", causal=True, **SMALL),
    "T5": hugging_face(
        "T5ForConditionalGeneration",
        "T5Config",
        inputs=pairs,
        vocab_size=VOCABULARY,
        d_model=C,
        d_kv=D,
        d_ff=48,
        num_layers=2,
        num_heads=H,
    ),
    "T5's encoder": hugging_face(
        "T5EncoderModel",
        "T5Config",
        inputs=masked,
        padding="attention_mask",
        vocab_size=VOCABULARY,
        d_model=C,
        d_kv=D,
        d_ff=48,
        num_layers=2,
        num_heads=H,
    ),
    "BART": hugging_face(
        "BartForConditionalGeneration",
        "BartConfig",
        inputs=pairs,
        causal=True,
        vocab_size=VOCABULARY,
        d_model=C,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=H,
        decoder_attention_heads=H,
        encoder_ffn_dim=48,
        decoder_ffn_dim=48,
        max_position_embeddings=64,
    ),
    "ALBERT": hugging_face(
        "AlbertModel", "AlbertConfig", inputs=masked, embedding_size=16, **SMALL
    ),
    "DeBERTa": hugging_face(
        "DebertaV2Model",
        "DebertaV2Config",
        inputs=masked,
        relative_attention=True,
        pos_att_type=["p2c", "c2p"],
        **SMALL,
    ),
    "ViT": hugging_face(
        "ViTForImageClassification",
        "ViTConfig",
        inputs=lambda: {"pixel_values": pictures()},
        image_size=16,
        patch_size=4,
        hidden_size=C,
        num_hidden_layers=2,
        num_attention_heads=H,
        intermediate_size=48,
    ),
    "our layer": lambda: (layers.MultiHeadAttention(C, H), (states(),), {}),
    "our additive layer": scored(layers.AdditiveAttention, C, C, 16),
    "our dot layer": scored(layers.DotAttention),
    "our bilinear layer": scored(layers.BilinearAttention, C, C),
    "our function": function(rg.attend),
    "our causal function": function(
        lambda q, k, v: rg.attend(q, k, v, mask=rg.causal()), causal=True
    ),
    "our window": function(
        lambda q, k, v: rg.attend(q, k, v, mask=rg.causal() & rg.window(before=3)), causal=True
    ),
    "our lengths": lambda: (
        lambda q, k, v, lengths: rg.attend(q, k, v, mask=rg.lengths(lengths)),
        (*qkv(), torch.tensor([12, 0])),
        {"padding": "lengths"},
    ),
    "our entmax": function(lambda q, k, v: rg.attend(q, k, v, weighting=rg.Entmax15())),
    "our block": plain(
        lambda: layers.TransformerBlock("encoder", 0, model_dim=C, num_heads=H, ffn_dim=48)
    ),
    "our encoder": lambda: (reader(), (token_ids(), LENGTHS), {"padding": 1}),
    "our classifier": lambda: (
        models.Classifier(models.ClassifierConfig(), reader(), num_classes=3),
        (token_ids(), LENGTHS),
        {"padding": "lengths"},
    ),
    "our recurrent reader": lambda: (
        models.RecurrentReader(models.RecurrentReaderConfig(), vocab_size=VOCABULARY),
        (token_ids(), LENGTHS),
        {"padding": 1},
    ),
    "our decoder": lambda: (
        models.Decoder(
            models.DecoderConfig(model_dim=C, num_heads=H, num_layers=2, ffn_dim=48),
            vocab_size=VOCABULARY,
        ),
        (token_ids(),),
        {"causal": True},
    ),
    "our transformer": lambda: (
        models.Transformer(
            models.TransformerConfig(model_dim=C, num_heads=H, ffn_dim=48),
            source_vocab=VOCABULARY,
            target_vocab=VOCABULARY,
        ),
        (token_ids(), LENGTHS, token_ids(1, 9)),
        {"causal": True, "padding": "source_lengths"},
    ),
    "our recurrent translator": lambda: (
        models.RnnSeq2Seq(
            models.RnnSeq2SeqConfig(), source_vocab=VOCABULARY, target_vocab=VOCABULARY
        ),
        (token_ids(), LENGTHS, token_ids(1, 9)),
        {"causal": True, "padding": "source_lengths"},
    ),
    "our kernel regression": lambda: (
        models.KernelRegression(models.KernelRegressionConfig()),
        (torch.rand(9, 1) * 5, torch.rand(12, 1) * 5, torch.rand(12, 1)),
        {},
    ),
    "textbook dot": lambda: (TextbookDot(), (*qkv(), LENGTHS), {"padding": "valid_lens"}),
    "textbook additive": lambda: (TextbookAdditive(), (*qkv(), LENGTHS), {"padding": 3}),
    "textbook heads": lambda: (TextbookHeads(), (*[states()] * 3, LENGTHS), {"padding": 3}),
    "textbook step": lambda: (
        TextbookStep(),
        (states()[:, 0], states(1)[:, 0], states(2), LENGTHS),
        {"padding": 3},
    ),
    "Luong": lambda: (Luong(), (states(0, 9), states(1)), {}),
    "heads": plain(Heads),
    "causal heads": plain(CausalHeads, causal=True),
    "padded heads": padded(Padded),
    "returned weights": padded(ReturnsWeights),
    "fused heads": plain(FusedHeads, causal=True),
    "grouped heads": plain(GroupedHeads),
    "language model": of_ids(lambda: LanguageModel(CausalHeads, layers=2), causal=True),
    "bidirectional model": of_ids(LanguageModel),
    "positions from zero": of_ids(Zeros, causal=True),
    "rotary model": of_ids(lambda: LanguageModel(Rotary, has_positions=False), causal=True),
    "ALiBi model": of_ids(lambda: LanguageModel(Alibi, has_positions=False), causal=True),
    "relative model": of_ids(lambda: LanguageModel(RelativeBias, has_positions=False)),
    "window": plain(Window),
    "decoder layer": lambda: (DecoderLayer(), (states(), states(1, 9)), {"causal": True}),
    "cross-attention": lambda: (TextbookHeads(), (states(), *[states(1, 9)] * 2, LENGTHS - 3), {}),
    "self-pooling": padded(SelfPooling),
    "mean pooling": lambda: (MeanPooling(), (token_ids(), mask_of((12, 7))), {"padding": "mask"}),
    "recurrent classifier": lambda: (
        RecurrentClassifier(),
        (token_ids(), LENGTHS),
        {"padding": "lengths"},
    ),
    "linear attention": function(linear_attention),
    "efficient attention": function(efficient_attention),
    "cosine attention": function(cosine_attention),
    "cosine attention times a root": function(root_cosine_attention),
    "masks of heads": lambda: (
        nn.MultiheadAttention(C, H, batch_first=True),
        (states(),) * 3,
        {"attn_mask": ~mask_of((12, 7)).repeat_interleave(H, 0)[:, None].expand(-1, N, -1)},
    ),
    "ids under a name with mask": lambda: (
        Renamed(LanguageModel()),
        (),
        {"masked_tokens": token_ids()},
    ),
    "sigmoid attention": function(sigmoid_attention),
    "gaussian attention": function(gaussian_attention),
    "sink attention": function(sink_attention),
    "softcapped attention": function(softcapped_attention),
    "einsum attention": function(einsum_attention),
    "stable attention": function(stable_attention),
    "top attention": function(top_attention),
    "graph attention": plain(GraphAttention),
    "conformer": plain(Conformer),
    "slot attention": plain(SlotAttention),
    "vision model": lambda: (VisionModel(), (pictures(),), {}),
    "heads of four axes": lambda: (
        F.scaled_dot_product_attention,
        tuple(x.view(B, N, H, D).transpose(1, 2) for x in qkv()),
        {},
    ),
    "one sequence": lambda: (
        lambda q, k, v: (q @ k.mT / math.sqrt(C)).softmax(-1) @ v,
        tuple(x[0] for x in qkv()),
        {},
    ),
    "recurrent network": plain(lambda: nn.GRU(C, C, batch_first=True), causal=True),
    "convolution": lambda: (nn.Conv1d(N, N, 3, padding=1), (states(),), {}),
}

RIGHT |= {
    "RoFormer": hugging_face(
        "RoFormerModel", "RoFormerConfig", inputs=masked, padding="attention_mask", **SMALL
    ),
    "mean of words, padding in the ids": lambda: (
        MeanOfWords(),
        (padded_ids(),),
        {"padding": "ids"},
    ),
    "talking heads": plain(Talking),
    "differential": plain(Differential),
    "softmax in tiles": plain(InTiles),
}

HUGGING_FACE = {name for name, make in RIGHT.items() if "hugging_face" in make.__qualname__}
