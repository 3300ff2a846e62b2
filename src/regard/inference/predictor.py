"""A trained translator in use: text in; text, scores and attention out."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.attention import Seen, observe, weights
from regard.checks import check_at_least
from regard.decoding import Hypothesis, beam, greedy
from regard.errors import DataError, SettingError
from regard.inference.run import Run
from regard.tasks import Recipe, recipe_from_table
from regard.tasks.translation import batched, build_model, longest_output
from regard.text import (
    BOS_ID,
    EOS_ID,
    PAD_ID,
    UNK_ID,
    PairTokenizer,
    Piece,
    load_pair_tokenizer,
    normalize,
)

# Latin marks end a sentence only before a space: not in 3.14.
_SENTENCE_END = re.compile(r"(?<=[。！？；])\s*|(?<=[!?;.])\s+")


@dataclass(frozen=True, slots=True)
class Translation:
    """One output.

    Attributes:
        source: The text it translates, normalised.
        text: The translation.
        score: Log-probability over the length penalty; higher is better.
        log_prob: Log-probability of its tokens and its end.
        tokens: Its token ids, without begin and end.
        is_finished: Whether the model ended it, or it was cut at the longest length allowed.
        parts: Pieces the source was cut into because it was longer than the model has seen; 1 if
            it was not.
    """

    source: str
    text: str
    score: float
    log_prob: float
    tokens: tuple[int, ...]
    is_finished: bool
    parts: int = 1


@dataclass(frozen=True, slots=True)
class AttentionMap:
    """The weights of one kind of attention in one layer.

    Attributes:
        kind: ``cross`` (output to source), ``encoder`` or ``decoder``.
        layer: Which layer, from 0.
        weights: One matrix a head: rows are the queries, columns what they look at.
    """

    kind: str
    layer: int
    weights: Float[Tensor, "H N M"]


@dataclass(frozen=True, slots=True)
class Look:
    """What a model looked at while it wrote one output.

    Row t of a cross map belongs to the query that predicts output token t; the end of the source
    and of the output, where the model reads one, are the last column and row.

    Attributes:
        source: The source text.
        output: The output text.
        source_pieces: The source's tokens with their places in ``source``.
        output_pieces: The output's tokens with their places in ``output``.
        maps: Every attention of the model.
    """

    source: str
    output: str
    source_pieces: list[Piece]
    output_pieces: list[Piece]
    maps: list[AttentionMap]

    def cross(self, layer: int | None = None) -> Float[Tensor, "T S"]:
        """Output × source weights, over heads averaged; over layers too if none is named."""
        chosen = [m for m in self.maps if m.kind == "cross" and layer in (None, m.layer)]
        if not chosen:
            raise SettingError(
                "The model must attend to the source to be looked at; this one does not"
                f"{'' if layer is None else f' in layer {layer}'}."
            )
        return torch.stack([m.weights.mean(0) for m in chosen]).mean(0)


class Predictor:
    """A model, its tokenizer and its recipe, ready to translate.

    Args:
        model: Trained, or in training; put into evaluation mode at each use.
        tokenizer: The one it was trained with.
        recipe: For its ``[decoding]`` and ``[data]`` settings.
    """

    def __init__(self, model: Any, tokenizer: PairTokenizer, recipe: Recipe) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.recipe = recipe

    @classmethod
    def load(cls, path: str | Path) -> "Predictor":
        """The translator in a run folder.

        Raises:
            RunError: There is none, it is damaged, or a newer version of regard made it.
        """
        run = Run.open(path)
        recipe = recipe_from_table(run.recipe)
        tokenizer = load_pair_tokenizer(run.tokenizer_folder)
        model = build_model(recipe, tokenizer)
        model.load_state_dict(run.load_model())
        return cls(model, tokenizer, recipe)

    def translate(
        self,
        texts: Sequence[str],
        *,
        beam_size: int | None = None,
        length_penalty: float | None = None,
        n_best: int = 1,
        progress: Callable[[int], None] | None = None,
    ) -> list[list[Translation]]:
        """Translations of each text, best first.

        An empty text gives one empty translation. A text longer than training allowed is cut at
        sentence ends and translated in parts, best translation only.

        Args:
            texts: What to translate, one sentence each.
            beam_size: Hypotheses kept at each step; None takes the recipe's. 1 is greedy.
            length_penalty: None takes the recipe's.
            n_best: Translations wanted of each text; at most beam_size.
            progress: Called after each batch with the number of texts in it.

        Raises:
            SettingError: beam_size or n_best is below 1, or n_best larger than beam_size.
        """
        beam_size = self.recipe.decoding.beam_size if beam_size is None else beam_size
        check_at_least("beam_size", beam_size, 1, cure="Use 1 for greedy search.")
        check_at_least("n_best", n_best, 1)
        if length_penalty is not None:
            check_at_least("length_penalty", length_penalty, 0)
        if n_best > beam_size:
            raise SettingError(
                f"n_best must be at most beam_size; got n_best={n_best}, beam_size={beam_size}."
            )
        sources = [normalize(text) for text in texts]
        parts = [self._parts(source) for source in sources]
        flat = [part for cut in parts for part in cut]
        found = iter(self._search(flat, beam_size, length_penalty, n_best, progress))
        return [
            self._joined(source, [next(found) for _ in cut])
            for source, cut in zip(sources, parts, strict=True)
        ]

    @torch.no_grad()
    def look(self, source: str, output: Sequence[int] | str) -> Look:
        """What the model looks at when it writes ``output``: one teacher-forced pass.

        Args:
            source: The source text.
            output: The output's text, or its token ids.

        Raises:
            DataError: The source is empty, or source or output longer than training allowed.
        """
        source = normalize(source)
        target = self.tokenizer.target
        ids = list(target.encode(output) if isinstance(output, str) else output)
        source_ids = self.tokenizer.source.encode(source)
        longest = self.recipe.data.max_length
        if not source_ids:
            raise DataError("source must hold text to look at; got an empty line.")
        if len(source_ids) > longest:
            raise DataError(
                f"source must be at most {longest} tokens long to be looked at; "
                f"got {len(source_ids)}. Look at one sentence at a time."
            )
        most = int(longest_output(torch.tensor([longest]), self.recipe.decoding.max_ratio))
        if len(ids) > most:
            raise DataError(
                f"output must be at most {most} tokens long to be looked at; got {len(ids)}. "
                "Look at one sentence at a time."
            )
        text, spans = target.decode_with_spans(ids)
        source_batch, lengths = self._padded([source_ids])
        calls: list[Seen] = []
        self.model.eval()
        with observe(calls.append):
            self.model(source_batch, lengths, torch.tensor([[BOS_ID, *ids]]))
        return Look(
            source=source,
            output=text,
            source_pieces=self.tokenizer.source.pieces(source),
            output_pieces=[
                Piece(text[start:end] or "␣", token, start, end)
                for token, (start, end) in zip(ids, spans, strict=True)
            ],
            maps=_maps(calls),
        )

    def _search(
        self,
        texts: list[str],
        beam_size: int,
        length_penalty: float | None,
        n_best: int,
        progress: Callable[[int], None] | None,
    ) -> list[list[Translation]]:
        decoding = self.recipe.decoding
        penalty = decoding.length_penalty if length_penalty is None else length_penalty
        ids = [self.tokenizer.source.encode(text) for text in texts]
        found: list[list[Translation]] = [[] for _ in texts]
        self.model.eval()
        filled = [place for place, tokens in enumerate(ids) if tokens]
        sizes = [(len(ids[place]) + 1) * beam_size for place in filled]
        with torch.no_grad():
            for group in batched(sizes, decoding.batch_tokens):
                places = [filled[index] for index in group]
                answers = self._search_batch([ids[p] for p in places], beam_size, penalty, n_best)
                for place, hypotheses in zip(places, answers, strict=True):
                    found[place] = [self._translation(texts[place], h) for h in hypotheses]
                if progress is not None:
                    progress(len(places))
        return [
            translations or [Translation(text, "", 0.0, 0.0, (), True)]
            for text, translations in zip(texts, found, strict=True)
        ]

    def _search_batch(
        self, ids: list[list[int]], beam_size: int, penalty: float, n_best: int
    ) -> list[list[Hypothesis]]:
        source, lengths = self._padded(ids)
        state = self.model.start(source, lengths)
        limits = longest_output(lengths, self.recipe.decoding.max_ratio)
        if self.model.max_length is not None:
            # One less, for the begin token that a look puts before the output.
            limits = limits.clamp(max=self.model.max_length - 1)
        options: dict[str, Any] = {
            "batch_size": len(ids),
            "bos_id": BOS_ID,
            "eos_id": EOS_ID,
            "max_lengths": limits,
            "length_penalty": penalty,
            "forbidden": (PAD_ID, UNK_ID, BOS_ID),
        }
        if beam_size == 1:
            return [[best] for best in greedy(self.model.step, state, **options)]
        return beam(self.model.step, state, beam_size=beam_size, n_best=n_best, **options)

    def _padded(self, ids: list[list[int]]) -> tuple[Int[Tensor, "B S"], Int[Tensor, " B"]]:
        end = [EOS_ID] if self.recipe.data.source_end else []
        rows = [torch.tensor([*tokens, *end]) for tokens in ids]
        lengths = torch.tensor([len(row) for row in rows])
        padded = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=PAD_ID)
        return padded, lengths

    def _translation(self, source: str, hypothesis: Hypothesis) -> Translation:
        return Translation(
            source=source,
            text=self.tokenizer.target.decode(hypothesis.tokens),
            score=hypothesis.score,
            log_prob=hypothesis.log_prob,
            tokens=hypothesis.tokens,
            is_finished=hypothesis.finished,
        )

    def _parts(self, text: str) -> list[str]:
        """The text itself, or pieces of it that are no longer than training allowed."""
        longest = self.recipe.data.max_length
        if len(self.tokenizer.source.encode(text)) <= longest:
            return [text]
        parts: list[str] = []
        for sentence in _SENTENCE_END.split(text):
            parts.extend(self._fitting(sentence, longest))
        return parts

    def _fitting(self, sentence: str, longest: int) -> Iterator[str]:
        pieces = self.tokenizer.source.pieces(sentence)
        for first in range(0, len(pieces), longest):
            last = pieces[min(first + longest, len(pieces)) - 1]
            part = sentence[pieces[first].start : last.end].strip()
            if part:
                yield part

    def _joined(self, source: str, parts: list[list[Translation]]) -> list[Translation]:
        if len(parts) == 1:
            return parts[0]
        best = [translations[0] for translations in parts]
        space = "" if self.recipe.data.target_language in ("zh", "ja") else " "
        return [
            Translation(
                source=source,
                text=space.join(part.text for part in best),
                score=sum(part.score for part in best),
                log_prob=sum(part.log_prob for part in best),
                tokens=tuple(token for part in best for token in part.tokens),
                is_finished=all(part.is_finished for part in best),
                parts=len(parts),
            )
        ]


def _maps(calls: list[Seen]) -> list[AttentionMap]:
    """Weights of one sentence; a recurrent decoder's calls, one a step, become one matrix."""
    rows: dict[tuple[str, int], list[Tensor]] = {}
    for seen in calls:
        seen_weights = weights(
            seen.query,
            seen.key,
            score=seen.score,
            mask=seen.mask,
            bias=seen.bias,
            weighting=seen.weighting,
        )[0]
        rows.setdefault((seen.kind, seen.layer), []).append(seen_weights)
    return [
        AttentionMap(kind, layer, torch.cat([r.reshape(-1, *r.shape[-2:]) for r in parts], dim=1))
        for (kind, layer), parts in rows.items()
    ]
