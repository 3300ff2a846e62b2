"""The smallest training of each task: a recipe, the lines of a file, and what its lines hold."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

NAMES = ("Anna", "Bert", "Cleo", "Dora", "Emil", "Fritz", "Greta")
WAYS = ("in the garden", "by the river", "under a tree", "near the mill", "on the hill")


@dataclass(frozen=True)
class Tiny:
    """A task in small."""

    file: str
    line: Callable[[int], Any]
    table: Mapping[str, Mapping[str, Any]]
    joined: Callable[[list[Any]], str] = "\n".join

    def text(self, count, first=0):
        """A file of so many."""
        lines = [self.line(number) for number in range(first, first + count)]
        return self.joined(lines) + "\n"


def sentence(number):
    """A sentence, another one for each number."""
    return f"{NAMES[number % 7]} sat {WAYS[number % 5]} for {number} hours ."


def question(number):
    """A question about a sentence of a story, with other answers to choose from."""
    name, way = NAMES[number % 7], WAYS[number % 5]
    return {
        "question": f"Where did {name} sit ?",
        "context": f"It was day {number} . {sentence(number)} Then it rained .",
        "answers": [way],
        "choices": [way, "at home", "nowhere"],
    }


def picture(number):
    """Four by four pixels, bright above or below, another picture for each number."""
    pixels = [[number % 7, number // 7, 1, 0], [9, 8, 7, 9], [0, 1, 0, 0], [1, 0, 0, 1]]
    is_above = number % 2 == 0
    return {
        "pixels": pixels if is_above else pixels[::-1],
        "label": "above" if is_above else "below",
    }


def squad(records):
    """Questions in SQuAD's layout: each about a paragraph of its own, in articles of two."""
    articles = [
        {
            "title": f"story {first}",
            "paragraphs": [
                {
                    "context": record["context"],
                    "qas": [
                        {
                            "id": f"q{first + offset}",
                            "question": record["question"],
                            "answers": [{"text": text} for text in record["answers"]],
                        }
                    ],
                }
                for offset, record in enumerate(records[first : first + 2])
            ],
        }
        for first in range(0, len(records), 2)
    ]
    return json.dumps({"data": articles}, indent=1)


def json_lines(records):
    """An object a line."""
    return "\n".join(map(json.dumps, records))


_READER = {"type": "transformer", "model_dim": 8, "num_heads": 2, "num_layers": 1, "ffn_dim": 8}
_WORDS = {"type": "words"}

TINY: dict[str, Tiny] = {
    "classification": Tiny(
        "reviews.tsv",
        lambda n: f"{sentence(n)}\t{('good', 'bad')[n % 2]}",
        {"tokenizer": _WORDS, "model": _READER},
    ),
    "generation": Tiny(
        "stories.jsonl",
        lambda n: {"document": question(n)["context"], "answers": question(n)["answers"]},
        {
            "data": {"max_length": 32},
            "tokenizer": {"type": "words", "shared": True},
            "model": {"type": "rnn_seq2seq", "embed_dim": 8, "hidden_dim": 8, "attention_dim": 4},
        },
        json_lines,
    ),
    "image_classification": Tiny(
        "pictures.jsonl",
        picture,
        {"model": {"patch": 2, "model_dim": 8, "num_heads": 2, "num_layers": 1, "ffn_dim": 8}},
        json_lines,
    ),
    "language_modelling": Tiny(
        "book.txt",
        sentence,
        {
            "data": {"context": 16},
            "tokenizer": _WORDS,
            "model": {**_READER, "type": "decoder", "max_length": 16},
            "decoding": {"max_tokens": 8},
        },
    ),
    "masked_language_modelling": Tiny(
        "book.txt",
        sentence,
        {"data": {"context": 16}, "tokenizer": _WORDS, "model": {**_READER, "max_length": 16}},
    ),
    "multiple_choice": Tiny(
        "questions.jsonl", question, {"tokenizer": _WORDS, "model": _READER}, json_lines
    ),
    "pair_matching": Tiny(
        "pairs.tsv",
        lambda n: (
            f"{question(n)['question']} Day {n // 2} .\t{sentence(n // 2)}"
            f"\t{('match', 'other')[n % 2]}"
        ),
        {"tokenizer": _WORDS, "model": {"type": "esim", "embed_dim": 8, "hidden_dim": 8}},
    ),
    "question_answering": Tiny(
        "questions.json", question, {"tokenizer": _WORDS, "model": _READER}, squad
    ),
    "regression": Tiny(
        "flats.csv",
        lambda n: f"{n / 7:.3f},{n % 5},{n * 0.3:.3f}",
        {"model": {"is_learned": True}},
        lambda rows: "\n".join(["area,floor,rent", *rows]),
    ),
    "sentence_extraction": Tiny(
        "stories.jsonl",
        lambda n: {"document": question(n)["context"], "summary": sentence(n)},
        {"data": {"max_length": 32}, "tokenizer": _WORDS, "model": _READER},
        json_lines,
    ),
    "sentence_selection": Tiny(
        "questions.json", question, {"model": {"model_dim": 8, "max_sentences": 8}}, squad
    ),
    "tagging": Tiny(
        "names.conll",
        lambda n: "".join(
            f"{word}\t{'NAME' if word in NAMES else 'OTHER'}\n" for word in sentence(n).split()
        ),
        {"model": {"type": "recurrent", "embed_dim": 8, "hidden_dim": 8}},
    ),
    "translation": Tiny(
        "pairs.tsv",
        lambda n: f"{sentence(n)}\t{' '.join(reversed(sentence(n).split()))}",
        {
            "data": {"max_length": 24},
            "tokenizer": _WORDS,
            "model": {"type": "rnn_seq2seq", "embed_dim": 8, "hidden_dim": 8, "attention_dim": 4},
        },
    ),
}

TRAINING = {
    "updates": 2,
    "validate_every": 2,
    "batch_tokens": 200,
    "warmup": 1,
    "label_smoothing": 0.0,
}
