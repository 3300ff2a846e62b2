"""Documents and models for the tests of the page's scripts, with what Python makes of them."""

import dataclasses
import json
from pathlib import Path

import torch
from tests.live_models import (
    CLASSIFIERS,
    LANGUAGE_MODELS,
    MODELS,
    ODD,
    RECURRENT,
    classifier,
    language_model,
    untrained,
)
from tests.looking import look_at

import regard as rg
from regard.decoding.sampling import Draw, most_likely, nucleus
from regard.inference import Predictor
from regard.inference.live import MOST_TOKENS, pack_model, rounded
from regard.inference.look import attention_to_source
from regard.inference.search.searcher import FORBIDDEN
from regard.models import RnnSeq2Seq
from regard.tasks import recipe_from_table
from regard.tasks.sequences.translation import TranslationTask
from regard.text import EOS_ID, Pair, TokenizerConfig, train_tokenizer
from regard.text.phrasebook import phrases
from regard.viewer import Document, Example, GoldLinks, HeadMap, OneAttention, Token, example_of
from regard.viewer.packing import PackedArray, pack

H, N, M, D = 3, 7, 5, 11
LONG, TOP, COARSE = 600, 5, 13
WORDS = ("the", "cat", ",", "the", "dog", "the", ".")


def write_fixtures(folder: Path) -> None:
    """Write a JSON file for each of the tests' modules."""
    torch.manual_seed(3)
    for name, made in (("data", _data()), ("model", _models())):
        (folder / f"{name}.json").write_text(json.dumps(made), encoding="utf-8")


def _data() -> dict:
    return {"short": _short(), "long": _long(), "arrays": _arrays()}


def _tokens(words):
    start, tokens = 0, []
    for word in words:
        tokens.append(Token(text=word, start=start, end=start + len(word)))
        start += len(word) + 1
    return tuple(tokens), " ".join(words)


def _short() -> dict:
    """Weights of cross-attention and of self-attention as plain numbers, and their measures."""
    output, output_text = _tokens(WORDS)
    source, source_text = _tokens([f"s{at}" for at in range(M)])
    cross = torch.randn(H, N, M, dtype=torch.float64).mul(2).softmax(-1)
    own = torch.randn(H, N, N, dtype=torch.float64).mul(2).softmax(-1)
    best = cross[1].argmax(-1).tolist()
    gold = GoldLinks(sure=((best[0], 0), (best[2], 2)), possible=((best[1], 1),))
    maps = tuple(
        HeadMap(kind=kind, layer=0, head=head, rows=tuple(map(tuple, weights[head].tolist())))
        for kind, weights in (("cross", cross), ("encoder", own))
        for head in range(H)
    )
    example = Example(
        source=output_text,
        output=output_text,
        source_tokens=output,
        output_tokens=output,
        maps=tuple(each for each in maps if each.kind == "encoder"),
    )
    crossed = Example(
        source=source_text,
        output=output_text,
        source_tokens=source,
        output_tokens=output,
        maps=tuple(each for each in maps if each.kind == "cross"),
        gold=gold,
    )
    document = Document(title="", task="translation", model="", examples=(crossed, example))
    return {
        "document": json.loads(document.to_json()),
        "gold": [
            *((f"{query},{key}", "possible") for key, query in gold.possible),
            *((f"{query},{key}", "sure") for key, query in gold.sure),
        ],
        "cross": [_measures(weights, "cross", gold) for weights in cross],
        "encoder": [_measures(weights, "encoder", None) for weights in own],
    }


def _measures(weights, kind, gold) -> dict:
    """The measures of one head by their formulas."""
    rows, columns = weights.shape
    found = {
        "entropy": -(weights * weights.log()).sum(-1).mean(),
        "first": weights[:, 0].mean(),
        "distance": None,
    }
    if kind == "cross":
        steps = [round(row * (columns - 1) / (rows - 1)) for row in range(rows)]
        found["diagonal"] = weights[range(rows), steps].mean()
        best = weights.argmax(-1).tolist()
        links = {(key, query) for query, key in enumerate(best)}
        sure, possible = set(gold.sure), set(gold.sure) | set(gold.possible)
        hits = len(links & sure) + len(links & possible)
        found["alignment_error"] = 1 - hits / (len(links) + len(sure))
    else:
        gaps = (torch.arange(columns) - torch.arange(rows)[:, None]).abs()
        found["distance"] = (weights * gaps).sum(-1).mean()
        earlier = [[key for key in range(row) if WORDS[key] == WORDS[row]] for row in range(rows)]
        roles = {
            "previous": [[row - 1] for row in range(rows)],
            "next": [[row + 1] for row in range(rows)],
            "same": [[row] for row in range(rows)],
            "duplicate": earlier,
            "induction": [[key + 1 for key in keys] for keys in earlier],
            "punctuation": [[2, 6]] * rows,
        }
        for name, keys in roles.items():
            chosen = [[key for key in some if 0 <= key < columns] for some in keys]
            sums = [weights[row, some].sum() for row, some in enumerate(chosen) if some]
            found[name] = torch.stack(sums).mean()
    words = [at for at, word in enumerate(WORDS) if word.isalpha()]
    largest = [
        max(
            weights[row, key]
            for key in (range(columns) if kind == "cross" else words)
            if kind == "cross" or key not in (0, row)
        )
        for row in words
    ]
    found["confidence"] = sum(largest) / len(largest)
    return {name: value if value is None else float(value) for name, value in found.items()}


def _long() -> dict:
    """A long text as summaries, and what is packed in them."""
    query, key = torch.randn(1, H, LONG, D) * 2, torch.randn(1, H, LONG, D)
    summary = rg.summarize(query, key, mask=rg.causal(), top=TOP, map=COARSE)
    text = [f"w{at}" for at in range(LONG)]
    example = example_of([OneAttention("encoder", 1, (0, 2, 5), summary)], text)
    document = Document(title="", task="", model="", examples=(example,))
    [layer] = example.summaries
    return {
        "document": json.loads(document.to_json()),
        "heads": layer.heads,
        "measures": layer.measures,
        "entropy": layer.entropy.values.values().tolist(),
        "received": layer.received.values.values().tolist(),
        "pooled": layer.pooled.values().tolist(),
        "bucket": layer.bucket,
        "top_keys": layer.top_keys.values()[:, :: LONG // 7].tolist(),
        "top_weights": layer.top_weights.values()[:, :: LONG // 7].tolist(),
        "queries": list(range(0, LONG, LONG // 7)),
    }


def _arrays() -> list:
    """Arrays of every packing, and their values."""
    values = torch.rand(2, 5, 3).pow(4)
    keys = torch.randint(0, 300, (2, 5, 3))
    packed = [pack(values.tolist(), bits=bits) for bits in (8, 16)]
    packed += [pack(values.tolist(), bits=bits, scale="log") for bits in (8, 16)]
    packed += [pack(keys.tolist(), bits=16), pack(keys.tolist(), bits=16, steps=True)]
    return [{"packed": _plain(each), "values": each.values().ravel().tolist()} for each in packed]


def _plain(packed: PackedArray) -> dict:
    return dataclasses.asdict(packed)


def _buckets() -> list:
    """Buckets of distances, as the bias of a table that numbers its rows has them."""
    steps = torch.arange(-150, 151)[None]
    made = []
    for is_bidirectional in (False, True):
        table = torch.arange(32.0)[:, None]
        bias = rg.relative(table, is_bidirectional=is_bidirectional)
        made.append(bias.tile(table, steps, table)[0, 0].long().tolist())
    return made


def _models() -> dict:
    return {
        "buckets": _buckets(),
        "draws": _draws(),
        "translators": {name: _translator(name) for name in MODELS},
        "language_models": {name: _language_model(name) for name in LANGUAGE_MODELS},
        "classifiers": {name: _classifier(name) for name in CLASSIFIERS},
        "cuts": {kind: _cut(kind) for kind in ("bpe", "unigram", "words", "characters")},
    }


def _texts():
    return [*(phrase.source for phrase in phrases("valid")[:4]), *ODD]


def _spans(pieces) -> list:
    return [(each.text, each.start, each.end) for each in pieces]


def _draws() -> list:
    """Tokens drawn by several settings from some log-probabilities, and their probabilities."""
    logits = torch.randn(4, 23, generator=torch.Generator().manual_seed(5)) * 2
    logits[1, ::3] = logits[1, 0]  # equally likely
    logits[2, 4:9] = -torch.inf
    log_probs = logits.log_softmax(-1)
    made = []
    for temperature, top_k, top_p in (
        *((1.0, None, 1.0), (0.6, None, 1.0), (1.7, 5, 1.0), (1.0, 1, 1.0)),
        *((1.0, None, 0.7), (0.8, 9, 0.9), (1.3, None, 0.05), (1.0, 40, 1.0)),
    ):
        seeds = torch.tensor([0, 1, 7, 2**31 - 1])
        draw = Draw(seeds=seeds, temperature=temperature, top_k=top_k, top_p=top_p)
        allowed = log_probs / temperature
        allowed = allowed if top_k is None else most_likely(allowed, top_k)
        allowed = nucleus(allowed, top_p) if top_p < 1 else allowed
        rows = torch.arange(len(seeds))
        made.append(
            {
                "sampling": {"temperature": temperature, "top_k": top_k, "top_p": top_p},
                "seeds": seeds.tolist(),
                "log_probs": [[max(each, -1e30) for each in row] for row in log_probs.tolist()],
                "chances": allowed.double().softmax(-1).tolist(),
                "tokens": [draw(log_probs, rows, at)[1].tolist() for at in range(40)],
            }
        )
    return made


def _translator(name) -> dict:
    ours, texts = untrained(name), _texts()
    reference = Predictor(rounded(ours.model), ours.task)
    answers = []
    for text, answer in zip(texts, reference.translate(texts), strict=True):
        look = attention_to_source(reference.model, reference.task, text, answer.best.tokens)
        answers.append(
            {
                "tokens": answer.best.tokens,
                "output": answer.best.text,
                "score": answer.best.score,
                "maps": {
                    f"{each.kind} {each.layer} {head}": rows.tolist()
                    for each in look.maps
                    for head, rows in enumerate(each.weights)
                },
                "source": _spans(look.source_pieces),
                "written": _spans(look.output_pieces),
            }
        )
    made = {"packed": pack_model(ours), "texts": texts, "answers": answers}
    if muted := _muted(reference):
        kind, layer, head = muted
        with rg.edit(reference.model) as edits:
            edits.mute(layer=layer, head=head, kind=kind)
            outputs = [each.best.text for each in reference.translate(texts)]
        made["muted"] = {"head": f"{kind} {layer} {head}", "outputs": outputs}
    return made


def _muted(predictor):
    """A head that can be muted: of the cross-attention, or of an encoder."""
    config = predictor.model.config
    if getattr(config, "positions", None) == "t5":
        return ("encoder", 0, 0)
    if getattr(config, "attention", "dot") == "none":
        return None
    return ("cross", getattr(config, "num_decoder_layers", 1) - 1, 0)


def _maps(example) -> dict:
    return {f"{each.kind} {each.layer} {each.head}": each.rows for each in example.maps}


def _language_model(name) -> dict:
    ours, lines = language_model(name)
    reference = Predictor(rounded(ours.model), ours.task)
    texts = [*lines[:4], "I 龘"]
    answers = []
    expected = reference.predict(texts, method="greedy", max_tokens=MOST_TOKENS)
    for text, answer in zip(texts, expected, strict=True):
        example = look_at(reference, text)
        answers.append(
            {
                "tokens": answer.best.tokens,
                "output": answer.best.text,
                "surprise": example.answer.values,
                "maps": _maps(example),
                "pieces": [token.text for token in example.output_tokens],
            }
        )
    settings = {"temperature": 0.9, "top_k": 30, "top_p": 0.9, "seed": 11}
    room = reference.recipe.data.context - MOST_TOKENS - 1
    short = [text for text in lines if len(reference.task.tokenizer.encode(text)) < room][:5]
    return {
        "packed": pack_model(ours),
        "texts": texts,
        "answers": answers,
        "sampling": settings,
        "sampled": {text: _sampled(reference, text, **settings) for text in short},
    }


@torch.no_grad()
def _sampled(predictor, text, *, seed, **settings) -> list:
    """The tokens that are drawn one after the other, each from all that stand before it."""
    draw = Draw(seeds=torch.tensor([seed]), **settings)
    ids = [EOS_ID, *predictor.task.tokenizer.encode(text)]
    drawn = []
    for position in range(MOST_TOKENS):
        states = predictor.model(torch.tensor([ids + drawn]))
        log_probs = predictor.model.project(states[:, -1]).log_softmax(-1)
        log_probs[:, list(FORBIDDEN)] = -torch.inf
        (token,) = draw(log_probs, torch.tensor([0]), position)[1].tolist()
        if token == EOS_ID and predictor.recipe.decoding.one_line:
            break
        drawn.append(token)
    return drawn


def _classifier(name) -> dict:
    ours, known = classifier(name)
    reference = Predictor(rounded(ours.model), ours.task)
    texts = [*known[:4], "I 龘"]
    answers = []
    for text, answer in zip(texts, reference.predict(texts), strict=True):
        example = look_at(reference, text)
        answers.append(
            {
                "label": answer.label,
                "probabilities": answer.probabilities,
                "measure": example.answer.measure,
                "values": example.answer.values,
                "maps": _maps(example),
                "pieces": [token.text for token in example.source_tokens],
            }
        )
    return {"packed": pack_model(ours), "texts": texts, "answers": answers}


def _cut(kind) -> dict:
    """A model with a tokenizer of both languages, and the pieces of texts that it did not learn."""
    lines = [text for phrase in phrases("train")[:800] for text in (phrase.source, phrase.target)]
    settings = {"vocab_size": 1500, "may_shrink": True}
    tokenizer = train_tokenizer(lines[:1500], TokenizerConfig(type=kind, **settings))
    size = tokenizer.vocab_size
    recipe = recipe_from_table({"model": RECURRENT, "tokenizer": {"type": "words"}})
    task = TranslationTask.learn(recipe, [Pair("我", "I", ("I",), "test")])
    task = TranslationTask(task.recipe, type(task.tokenizer)(tokenizer, tokenizer))
    model = RnnSeq2Seq(recipe.model, source_vocab=size, target_vocab=size).eval()
    texts = [*lines[1500:], *ODD, "", "  ", "\u2581 a"]
    pieces = [[(p.id, p.text, p.start, p.end) for p in tokenizer.pieces(text)] for text in texts]
    return {"packed": pack_model(Predictor(model, task)), "texts": texts, "pieces": pieces}
