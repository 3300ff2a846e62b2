"""Calls the public entries of ``regard.runtime`` and ``regard.decoding`` with numbers at random.

``python hostile_calls.py SEED COUNT`` makes so many calls, each in a fork of its own, and prints a
line of JSON for each: what was called, whether it should be refused, and what came.
"""

import json
import os
import random
import signal
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from itertools import islice
from typing import Any

import torch
from torch import Tensor, nn

from regard import decoding, models, runtime
from regard.errors import RegardError

V, UNK, BOS, EOS = 37, 1, 2, 3
# Ids that no vocabulary here has, and numbers that are no length of a row of up to nine.
BAD_IDS = [-1, V, V + 1, -V, 10**5, 2**31, 2**62, -(2**62)]
BAD_LENGTHS = [-1, 10, 64, 10**6, 2**31, 2**62, -(2**62)]
DTYPES = [torch.int64, torch.int64, torch.int64, torch.int32, torch.int16]
SECONDS = 120


@dataclass
class Call:
    """One call, with the reasons to refuse it."""

    name: str
    do: Callable[[], object]
    wrong: list[str]


class Dice:
    """Arguments at random; what is wrong with them is noted."""

    def __init__(self, seed: str) -> None:
        self.random, self.wrong = random.Random(seed), list[str]()
        self.rate = self.random.choice([0.0, 0.12, 0.3])

    def errs(self, name: str) -> bool:
        """Whether this argument is to be wrong."""
        if self.random.random() >= self.rate:
            return False
        self.wrong.append(name)
        return True

    def pick(self, name: str, good: Iterable[Any], bad: Iterable[Any]) -> Any:
        """One of the good values, or one of the bad ones."""
        return self.random.choice(list(bad if self.errs(name) else good))

    def ids(self, name: str, *shape: int) -> Any:
        """A tensor of ids of this shape."""
        ids = torch.tensor(
            [self.random.randrange(4, V) for _ in range(_product(shape))], dtype=torch.long
        )
        if ids.numel() and self.errs(name):
            kind = self.random.randrange(8)
            if kind == 0:
                return ids.view(shape).float()
            if kind == 1:
                return ids.view(shape).tolist()
            ids[self.random.randrange(len(ids))] = self.random.choice(BAD_IDS)
            return self.held(ids.view(shape))
        return self.held(ids.view(shape).to(self.random.choice(DTYPES)))

    def held(self, numbers: Tensor) -> Tensor:
        """The tensor, or one of a class of its own with the numbers."""
        is_plain = self.random.random() < 0.8
        return numbers if is_plain else nn.Parameter(numbers, requires_grad=False)

    def rows(self, name: str, rows: int) -> int:
        """Their number, or another."""
        others = [each for each in (1, rows - 1, rows + 1, rows + 5, 1000) if each not in (0, rows)]
        return self.pick(name, [rows], others)

    def lengths(self, rows: int, columns: int, *, least: int = 0) -> Any:
        """How many of each row are real."""
        count = self.rows("lengths' rows", rows)
        longest = columns if self.random.random() < 0.9 else least
        numbers = [self.random.randint(least, longest) for _ in range(count)]
        if numbers and self.errs("lengths"):
            bad = [*BAD_LENGTHS, *([0] if least else [])]
            numbers[self.random.randrange(count)] = self.random.choice(bad)
            return self.held(torch.tensor(numbers))
        return self.held(torch.tensor(numbers).to(self.random.choice(DTYPES)))


def _product(shape: tuple[int, ...]) -> int:
    return shape[0] * _product(shape[1:]) if shape else 1


def _shaken(model: nn.Module) -> nn.Module:
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return model.eval()


def _translators() -> Iterator[tuple[str, nn.Module]]:
    both = {"source_vocab": V, "target_vocab": V, "shared_vocab": True}
    sizes = {"model_dim": 24, "num_heads": 4, "ffn_dim": 29, "max_length": 50}
    layers = {"num_encoder_layers": 1, "num_decoder_layers": 2}
    for options in (
        {},
        {"positions": "learned", "window": 3},
        {"positions": "rotary", "source_begin": True},
        {"positions": "alibi", "values": "embeddings"},
        {"copy": True},  # which cannot be prepared
    ):
        config = models.TransformerConfig(**sizes | layers | options)
        yield "transformer", models.Transformer(config, **both)
    recurrent = {"embed_dim": 12, "hidden_dim": 17, "attention_dim": 13, "max_length": 20}
    for options in (
        {},
        {"decoder": "luong", "attention": "general", "cell": "lstm"},
        {"attention": "none", "cell": "rnn", "num_layers": 2},
        {"attention": "location"},
    ):
        config = models.RnnSeq2SeqConfig(**recurrent | options)
        yield "recurrent", models.RnnSeq2Seq(config, **both)
    config = models.ConvSeq2SeqConfig(
        embed_dim=12, hidden_dim=17, num_encoder_layers=1, num_decoder_layers=2, max_length=50
    )
    yield "convolutional", models.ConvSeq2Seq(config, **both)


def _language_models() -> Iterator[tuple[str, nn.Module]]:
    sizes = {"model_dim": 24, "num_heads": 4, "num_layers": 2, "ffn_dim": 29, "max_length": 50}
    for options in ({}, {"positions": "rotary", "window": 3}):
        yield "decoder", models.Decoder(models.DecoderConfig(**sizes | options), vocab_size=V)
    for cell in ("gru", "lstm"):
        config = models.RecurrentLmConfig(embed_dim=12, hidden_dim=17, cell=cell)
        yield "recurrent", models.RecurrentLm(config, vocab_size=V)


def _readers() -> Iterator[tuple[str, nn.Module]]:
    sizes = {"model_dim": 24, "num_heads": 4, "num_layers": 1, "ffn_dim": 29, "max_length": 50}
    yield "encoder", models.Encoder(models.EncoderConfig(**sizes), vocab_size=V)
    yield "bag", models.BagReader(models.BagReaderConfig(embed_dim=12), vocab_size=V)
    config = models.RecurrentReaderConfig(embed_dim=12, hidden_dim=7)
    yield "recurrent", models.RecurrentReader(config, vocab_size=V)
    conv = models.ConvReaderConfig(embed_dim=12, channels=4, widths=(2, 3))
    yield "convolutional", models.ConvReader(conv, vocab_size=V)
    config = models.EncoderConfig(**sizes)
    yield "masked", models.MaskedLanguageModel(config, vocab_size=V)


def _pairs() -> Iterator[tuple[str, nn.Module]]:
    esim = models.EsimConfig(embed_dim=12, hidden_dim=7)
    yield "esim", models.Esim(esim, vocab_size=V)
    reader = models.BagReader(models.BagReaderConfig(embed_dim=12), vocab_size=V)
    yield "multiple choice", models.MultipleChoice(models.ClassifierConfig(), reader)
    memory = models.MemoryNetworkConfig(model_dim=12)
    yield "memory network", models.MemoryNetwork(memory, vocab_size=V)


def _heads() -> Iterator[tuple[str, nn.Module]]:
    for pooling in ("first", "mean", "maximum", "query", "structured"):
        for _, reader in islice(_readers(), 4):
            config = models.ClassifierConfig(pooling=pooling)
            yield "classifier", models.Classifier(config, reader, num_classes=3)
    for _, reader in islice(_readers(), 4):
        yield "tagger", models.Tagger(models.TaggerConfig(), reader, num_tags=5)
        yield "span finder", models.SpanFinder(models.SpanFinderConfig(), reader)


def _every(kinds: Iterable[tuple[str, nn.Module]]) -> dict[str, nn.Module]:
    """Each of the models as it is and prepared, and those of layers in int8 besides."""
    every: dict[str, nn.Module] = {}
    for number, (name, model) in enumerate(kinds):
        _shaken(model)
        every[f"{name} {number}"] = model
        every[f"prepared {name} {number}"] = runtime.prepared(model)
    return every


torch.set_num_threads(1)  # a fork of a process with threads has none of them
torch.manual_seed(0)
TRANSLATORS = _every(_translators())
LANGUAGE_MODELS = _every(_language_models())
READERS, HEADS, PAIRS = _every(_readers()), _every(_heads()), _every(_pairs())
for makers, known in ((_translators, TRANSLATORS), (_language_models, LANGUAGE_MODELS)):
    for number, (name, model) in enumerate(makers()):
        if name in ("transformer", "decoder") and number < 2:
            rounded = runtime.in_precision(_shaken(model), "int8")
            known[f"int8 {name} {number}"] = rounded
            known[f"prepared int8 {name} {number}"] = runtime.prepared(rounded)
WRITERS = TRANSLATORS | LANGUAGE_MODELS


@torch.no_grad()
def _begun(model: nn.Module, rows: int, *, prompt: bool = True) -> tuple[Any, Tensor]:
    """A state of so many rows, and the lengths of its sources or prompts."""
    is_translator = isinstance(model, models.Seq2Seq)
    columns = 5 if is_translator or prompt else 0
    ids = torch.randint(4, V, (rows, columns))
    lengths = torch.randint(min(1, columns), columns + 1, (rows,))
    state = model.start(ids, lengths)
    return state, lengths


def _model(dice: Dice, among: dict[str, nn.Module]) -> tuple[str, nn.Module]:
    return dice.random.choice(list(among.items()))


def prepared(dice: Dice) -> Call:
    """A call of a model, prepared or not."""
    ways = [_start, _step, _step, _best, _select, _forward, _forward, _read, _read, _read_pairs]
    ways += [_prepare] if dice.random.random() < 0.2 else []
    return dice.random.choice(ways)(dice)


def _prepare(dice: Dice) -> Call:
    model = dice.pick("model", [TRANSLATORS["transformer 0"]], [None, "model", 3])
    return Call(f"prepared({type(model).__name__})", lambda: runtime.prepared(model), dice.wrong)


def _start(dice: Dice) -> Call:
    name, model = _model(dice, WRITERS)
    is_translator = name in TRANSLATORS
    rows, columns = dice.random.choice([1, 2, 9, 30]), dice.random.randint(1, 9)
    ids = dice.ids("ids", rows, columns)
    lengths = dice.lengths(rows, columns, least=0 if is_translator else 1)

    def do() -> object:
        state = model.start(ids, lengths)
        return model.step(torch.full((rows,), BOS), state)[0]

    return Call(f"{name}.start({_told(ids)}, {_told(lengths)})", do, dice.wrong)


def _step(dice: Dice) -> Call:
    name, model = _model(dice, WRITERS)
    rows = dice.random.choice([1, 2, 9])
    count = dice.rows("rows", rows)
    token = dice.ids("token", count)
    other = dice.random.choice(list(WRITERS.values()))
    is_foreign = dice.errs("state")
    if is_foreign and getattr(other, "model", other) is getattr(model, "model", model):
        dice.wrong.remove("state")
        is_foreign = False
    owner = other if is_foreign else model
    if is_foreign and type(owner) is type(model) and "prepared" not in name:
        dice.wrong.remove("state")  # a state of plain tensors says nothing of its model
        owner = model
    way, prompt = dice.random.choice(["step", "steps"]), dice.random.random() < 0.5
    steps = dice.random.choice([1, 3])

    def do() -> object:
        state, _ = _begun(owner, rows, prompt=prompt)
        for _ in range(steps):
            log_probs, state = getattr(model, way)(token, state)
        return log_probs

    return Call(f"{name}.{way}({_told(token)}) of {rows} rows", do, dice.wrong)


def _best(dice: Dice) -> Call:
    ranking = {n: m for n, m in WRITERS.items() if hasattr(m.steps, "best")}
    name, model = _model(dice, ranking)
    rows = dice.random.choice([1, 2, 9, 30])
    token = dice.ids("token", dice.rows("rows", rows))
    count = dice.pick("count", [1, 3, V], [0, -1, V + 1, 10**9, 2**62])
    hidden = dice.pick("hidden", [[], [0, 5]], [[V], [-1], [2**31], [0, 10**6]])

    def do() -> object:
        state, _ = _begun(model, rows)
        return model.steps.best(token, state, count, hidden)[:2]

    return Call(f"{name}.best({_told(token)}, {count}, {hidden}) of {rows}", do, dice.wrong)


def _select(dice: Dice) -> Call:
    name, model = _model(dice, WRITERS)
    rows = dice.random.choice([1, 2, 9])
    numbers = [dice.random.randrange(rows) for _ in range(4)]
    if dice.errs("rows"):
        numbers[0] = dice.random.choice([-1, rows, rows + 7, 2**40])
    way = dice.random.choice(["select", "divide"])
    if way == "divide" and not hasattr(model.steps, "divide"):
        way = "select"

    def do() -> object:
        state, _ = _begun(model, rows)
        token = torch.full((4,), BOS)
        if way == "select":
            return model.step(token, state.select(torch.tensor(numbers)))[0]
        return model.steps.divide(state, [torch.tensor(numbers)], 1)

    if way == "divide" and rows != len(numbers):
        dice.wrong.append("parts")
    return Call(f"{name}: {way}({numbers}) of {rows} rows", do, dice.wrong)


def _forward(dice: Dice) -> Call:
    name, model = _model(dice, WRITERS)
    rows, columns = dice.random.choice([1, 2, 9]), dice.random.randint(1, 9)
    ids, lengths = dice.ids("ids", rows, columns), dice.lengths(rows, columns)
    arguments = [ids, lengths]
    if name in TRANSLATORS:
        count = dice.rows("target's rows", rows)
        arguments.append(dice.ids("target", count, 4))

    def do() -> object:
        states = model(*arguments)
        return states[0] if isinstance(states, tuple) else states

    told = ", ".join(map(_told, arguments))
    return Call(f"{name}({told})", do, dice.wrong)


def _read(dice: Dice) -> Call:
    name, model = _model(dice, READERS | HEADS)
    rows, columns = dice.random.choice([1, 2, 9, 30]), dice.random.randint(1, 9)
    ids = dice.ids("ids", rows, columns)
    is_pooled = "classifier" in name or "span" in name
    lengths = dice.lengths(rows, columns, least=int(is_pooled))
    return Call(f"{name}({_told(ids)}, {_told(lengths)})", lambda: model(ids, lengths), dice.wrong)


def _read_pairs(dice: Dice) -> Call:
    name, model = _model(dice, PAIRS)
    rows, columns = dice.random.choice([1, 2, 9]), dice.random.randint(2, 9)
    if "esim" in name:
        first, lengths = dice.ids("ids", rows, columns), dice.lengths(rows, columns, least=1)
        other, others = dice.ids("other", rows, 4), dice.lengths(rows, 4, least=1)
        arguments = [first, lengths, other, others]
    elif "choice" in name:
        ids, lengths = dice.ids("ids", rows, columns, 4), dice.lengths(rows * columns, 4)
        is_whole = lengths.numel() == rows * columns
        arguments = [ids, lengths.view(rows, columns) if is_whole else lengths]
    else:
        ids, lengths = dice.ids("ids", rows, columns, 4), dice.lengths(rows, columns, least=1)
        arguments = [ids, lengths, dice.ids("question", rows, 3)]
    told = ", ".join(map(_told, arguments))
    return Call(f"{name}({told})", lambda: model(*arguments), dice.wrong)


def in_precision(dice: Dice) -> Call:
    """A model in another precision, and a step of it."""
    name = dice.random.choice(["transformer", "decoder"])
    precision = dice.pick("precision", ["auto", "float32", "int8"], ["int4", "", None, 8, "INT8"])
    model = _shaken(dict(_translators() if name == "transformer" else _language_models())[name])

    def do() -> object:
        runtime_model = runtime.prepared(runtime.in_precision(model, precision))
        state, _ = _begun(runtime_model, 2)
        return runtime_model.step(torch.tensor([4, 5]), state)[0]

    return Call(f"in_precision({name}, {precision!r})", do, dice.wrong)


def _options(dice: Dice, rows: int) -> dict[str, Any]:
    """Options of every search."""
    limits = dice.pick(
        "max_lengths",
        [1, 7, torch.full((rows,), 5), torch.full((rows,), 5, dtype=torch.int32)],
        [0, -1, 10**12, 2**63, 2.5, None, torch.full((rows + 1,), 5), torch.full((rows,), -5)],
    )
    options = {
        "batch_size": dice.pick("batch_size", [rows], [rows + 1, -1, 10**7, 1.5, None]),
        "bos_id": dice.pick("bos_id", [BOS], [V, -1, 2**62, 2**70, 1.5, None]),
        "eos_id": dice.pick("eos_id", [EOS], [V, -1, 2**62, 2**70, 1.5, None]),
        "max_lengths": limits,
        "length_penalty": dice.pick(
            "length_penalty", [0.0, 0.6, 10], [-1.0, 1e300, float("nan"), 11, "1", None]
        ),
        "min_length": dice.pick("min_length", [0, 2], [-1, 10**12, 2**63, 1.5, None]),
        "forbidden": dice.pick(
            "forbidden",
            [[], [0, UNK], torch.tensor([0, 9]).tolist()],
            [[V], [V - 37 - 1], [-1], [2**62], [EOS], [1.5], ["a"]],
        ),
    }
    if dice.random.random() < 0.3:
        options["rules"] = dice.pick(
            "rules",
            [
                [decoding.RepetitionPenalty(1.3)],
                [decoding.NoRepeatedNgrams(2)],
                [decoding.Prefix([[5]] * rows)],
            ],
            [
                [decoding.Prefix([[V]] * rows)],
                [decoding.Prefix([[5]] * (rows + 1))],
                [decoding.Prefix([[EOS]] * rows)],
                [3],
            ],
        )
    return options


def _searched(dice: Dice, search: Callable[..., object], **more: Any) -> Call:
    name, model = _model(dice, WRITERS)
    rows = dice.random.choice([1, 2, 9, 20])
    options = _options(dice, rows) | more

    def do() -> object:
        state, _ = _begun(model, rows)
        return search(model.steps, state, **options)

    told = ", ".join(f"{key}={_told(value)}" for key, value in options.items())
    return Call(f"{name}: {search.__name__}({told}) of {rows} rows", do, dice.wrong)


def greedy(dice: Dice) -> Call:
    """A greedy search."""
    return _searched(dice, decoding.greedy)


def beam(dice: Dice) -> Call:
    """A beam."""
    size = dice.pick("beam_size", [1, 2, 5, V + 4], [0, -1, 10**9, 1.5, None, True])
    best = dice.pick("n_best", [1], [0, -1, 50, 10**9, 1.5])
    return _searched(dice, decoding.beam, beam_size=size, n_best=best)


def _drawn(dice: Dice, rows: int | None) -> dict[str, Any]:
    """Settings of a draw, of seeds for so many rows."""
    numbers = (1e-300, 1e-46, 1e39, -1.0, 0, float("inf"), float("nan"), "1")
    wrong_seeds = [1.5, None, torch.zeros(31, dtype=torch.long), torch.zeros(2)]
    seeds = [0, 7] if rows is None else [torch.arange(rows)]
    return {
        "temperature": dice.pick("temperature", [1e-6, 0.7, 1, 1000], numbers),
        "top_k": dice.pick("top_k", [None, 1, 4, 10**9], [0, -1, 1.5, 2**70, "3"]),
        "top_p": dice.pick("top_p", [1.0, 0.3, 1e-9], [0, -0.1, 1.1, float("nan"), None]),
        "seeds": dice.pick("seeds", seeds, wrong_seeds if rows is None else [None, 1.5]),
    }


def sample(dice: Dice) -> Call:
    """Samples."""
    count = dice.pick("num_samples", [1, 3], [0, -1, 10**9, 1.5, None])
    return _searched(dice, decoding.sample, num_samples=count, **_drawn(dice, None))


def stream(dice: Dice) -> Call:
    """Tokens as they are chosen."""

    def all_tokens(*arguments: Any, **options: Any) -> list[Any]:
        return list(decoding.stream(*arguments, **options))

    return _searched(dice, all_tokens)


def draw(dice: Dice) -> Call:
    """A draw by itself."""
    settings, rows = _drawn(dice, 4), 4
    answers = [0, 1, 2, 3]
    if dice.errs("answers"):
        answers[1] = dice.random.choice([-1, 4, 2**40])
    log_probs = torch.randn(dice.rows("rows", rows), V).log_softmax(-1)

    def do() -> object:
        return decoding.Draw(**settings)(log_probs, torch.tensor(answers), 0)

    return Call(f"Draw({settings})({answers}, {tuple(log_probs.shape)})", do, dice.wrong)


def _ruled(dice: Dice, name: str, make: Callable[[], Any]) -> Call:
    rows = 3
    tokens = dice.ids("tokens", dice.rows("tokens' rows", rows), 4)
    sentences = list(range(rows))
    if name == "Prefix" and dice.errs("sentences"):
        sentences[0] = dice.random.choice([-1, 3, 2**40])

    def do() -> object:
        written = decoding.Written(tokens, torch.tensor(sentences))
        return make()(torch.zeros(rows, V), written)

    return Call(f"{name}({_told(tokens)}, {sentences})", do, dice.wrong)


def repetition_penalty(dice: Dice) -> Call:
    """A rule by itself."""
    bad = [1e-300, 0, -1, 1e300, float("nan"), None]
    penalty = dice.pick("penalty", [1, 0.5, 1.3], bad)
    name = f"RepetitionPenalty({penalty})"
    return _ruled(dice, name, lambda: decoding.RepetitionPenalty(penalty))


def no_repeated_ngrams(dice: Dice) -> Call:
    """A rule by itself."""
    size = dice.pick("size", [1, 2, 9], [0, -1, 1.5, None])
    return _ruled(dice, f"NoRepeatedNgrams({size})", lambda: decoding.NoRepeatedNgrams(size))


def prefix(dice: Dice) -> Call:
    """A rule by itself."""
    bad: list[object] = [[[-1], [], []], [[1.5], [], []], [[2**70], [], []]]
    prefixes = dice.pick("prefixes", [[[5, 6], [], [7]], [[5, 6, 7, 8, 9]] * 3], bad)
    return _ruled(dice, "Prefix", lambda: decoding.Prefix(prefixes))


def coverage_penalty(dice: Dice) -> Call:
    """A beam with a coverage penalty."""
    among = {n: m for n, m in TRANSLATORS.items() if "none" not in n and "recurrent 7" not in n}
    name, model = _model(dice, among)
    weight = dice.pick("weight", [0, 0.2], [-1, 1e300, float("nan"), None])
    rows = 3
    bad_lengths = [torch.tensor([1, 2]), torch.tensor([1, 2, 99]), torch.tensor([1, 2, -1])]
    bad = dice.random.choice(bad_lengths) if dice.errs("lengths") else None

    def do() -> object:
        state, lengths = _begun(model, rows)
        cover = decoding.CoveragePenalty(model.steps, weight=weight)
        begun = cover.start(state, lengths if bad is None else bad)
        options = {"batch_size": rows, "bos_id": BOS, "eos_id": EOS, "max_lengths": 4}
        return decoding.beam(cover.step, begun, bonus=cover.bonus, **options)

    return Call(f"{name}: CoveragePenalty({weight}, {bad})", do, dice.wrong)


# Every name of ``__all__`` that can be called; and types that compute nothing.
CALLS: dict[str, Callable[[Dice], Call]] = {
    "runtime.in_precision": in_precision,
    "runtime.prepared": prepared,
    "decoding.CoveragePenalty": coverage_penalty,
    "decoding.Draw": draw,
    "decoding.NoRepeatedNgrams": no_repeated_ngrams,
    "decoding.Prefix": prefix,
    "decoding.RepetitionPenalty": repetition_penalty,
    "decoding.beam": beam,
    "decoding.greedy": greedy,
    "decoding.sample": sample,
    "decoding.stream": stream,
}
TYPES = {
    *("decoding.Hypothesis", "decoding.Limits", "decoding.Rule", "decoding.SearchOptions"),
    *("decoding.State", "decoding.Step", "decoding.StreamedToken", "decoding.Written"),
}


def _told(value: object) -> str:
    if isinstance(value, Tensor):
        return f"{str(value.dtype)[6:]}{value.tolist() if value.numel() < 12 else value.shape}"
    return repr(value)


def _numbers(result: object) -> Iterator[float]:
    """All numbers of a result."""
    if isinstance(result, Tensor):
        yield from result.flatten().double().tolist()
    elif isinstance(result, int | float):
        yield float(result)
    elif isinstance(result, list | tuple):
        for each in result:
            yield from _numbers(each)
    elif is_dataclass(result):
        for field in fields(result):
            yield from _numbers(getattr(result, field.name))


def _outcome(call: Call) -> tuple[str, str]:
    try:
        with torch.no_grad():
            result = call.do()
    except RegardError as error:
        sentence = str(error)
        is_sentence = sentence[-1] in ".?" and len(sentence) > 15
        return ("refused" if is_sentence else "raw"), f"{type(error).__name__}: {sentence}"
    except BaseException:
        return "raw", traceback.format_exc()[-1500:]
    if any(number != number or number == float("inf") for number in _numbers(result)):
        return "no number", ""
    return "answered", ""


def _in_a_fork(call: Call, threads: int) -> tuple[str, str]:
    """The outcome of a call in a child, whose end by a signal is one."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(reader)
        signal.alarm(SECONDS)
        torch.set_num_threads(threads)
        with os.fdopen(writer, "w") as out:
            json.dump(_outcome(call), out)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as answer:
        text = answer.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return "signal", signal.Signals(os.WTERMSIG(status)).name
    outcome, detail = json.loads(text)
    return outcome, detail


def main(seed: int, count: int) -> None:
    """Make the calls and print them."""
    rooms = {"runtime": runtime, "decoding": decoding}
    public = {f"{name}.{each}" for name, room in rooms.items() for each in room.__all__}
    assert set(CALLS) | TYPES == public, (set(CALLS) | TYPES) ^ public
    for number in range(count):
        names = list(CALLS)
        name = names[number % (len(names) + 8)] if number % (len(names) + 8) < len(names) else None
        dice = Dice(f"{seed} {number}")
        torch.manual_seed(number)
        call = CALLS[name or "runtime.prepared"](dice)
        outcome, detail = _in_a_fork(call, dice.random.choice([1, 2]))
        line = {"number": number, "call": call.name, "wrong": call.wrong}
        print(json.dumps(line | {"outcome": outcome, "detail": detail}), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
