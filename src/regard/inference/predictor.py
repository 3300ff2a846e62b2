"""A trained translator in use: text in; text, scores and attention out."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.attention import AttentionCall, observe
from regard.decoding import score_answers
from regard.errors import DataError, RunError
from regard.inference.look import (
    MOST_MAPPED,
    MOST_WITHOUT_SUMMARIES,
    Look,
    attention_maps,
    attention_summaries,
    joined,
)
from regard.inference.searcher import Found, Searcher
from regard.inference.trail import Trail
from regard.inference.translations import Alignment, Translation, pieces_of
from regard.runs.run import Run
from regard.tasks import TASKS, DecodingConfig, Recipe, recipe_from_table
from regard.tasks.generation import DocumentData
from regard.tasks.generation.documents import cut_to
from regard.tasks.translation import batched, build_model, longest_output
from regard.text import (
    BOS_ID,
    EOS_ID,
    PAD_ID,
    PairTokenizer,
    load_pair_tokenizer,
    normalize,
)

# Latin marks end a sentence only before a space: not in 3.14.
_SENTENCE_END = re.compile(r"(?<=[。！？；])\s*|(?<=[!?;.])\s+")


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
            RunError: There is none, it is damaged, a newer version of regard made it, or it is of a
                task that is answered in one pass.
        """
        run = Run.open(path)
        recipe = recipe_from_table(run.recipe)
        if TASKS[recipe.task].task is not None:
            raise RunError(
                f"{path} must be the run of a translator; it is one of {recipe.task}. "
                "Use regard predict or regard evaluate with it."
            )
        tokenizer = load_pair_tokenizer(run.tokenizer_folder)
        model = build_model(recipe, tokenizer)
        run.fill(model)
        return cls(model, tokenizer, recipe)

    def translate(
        self,
        texts: Sequence[str],
        *,
        beam_size: int | None = None,
        length_penalty: float | None = None,
        n_best: int | None = None,
        decoding: DecodingConfig | None = None,
        attention: bool = False,
        layers: Sequence[int] | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> list[list[Translation]]:
        """Translations of each text, best first.

        An empty text gives one empty translation. A text longer than training allowed is cut at
        sentence ends and translated in parts, best translation only; a prefix and required words
        are for the first part.

        Args:
            texts: What to translate, one sentence each.
            beam_size: Hypotheses kept at each step of a beam; 1 is greedy. None takes the
                settings', as the next two do.
            length_penalty: Higher gives longer outputs.
            n_best: Translations wanted of each text.
            decoding: The settings of the search; None takes the recipe's.
            attention: Whether to note what the best translation's tokens looked at, which costs
                next to nothing: see ``Translation.alignment``.
            layers: Whose attention that is, counted from 0; None takes all layers.
            progress: Called after each batch with the number of texts in it.

        Raises:
            SettingError: A setting is out of range or contradicts another, such as n_best larger
                than beam_size; a word cannot be spelled; or the attention is wanted of a model
                that has none to the source, or not in these layers.
        """
        sources = [normalize(text) for text in texts]
        parts = [self.parts(source) for source in sources]
        found = iter(
            self.translate_parts(
                [part for cut in parts for part in cut],
                [place == 0 for cut in parts for place in range(len(cut))],
                beam_size=beam_size,
                length_penalty=length_penalty,
                n_best=n_best,
                decoding=decoding,
                attention=attention,
                layers=layers,
                progress=progress,
            )
        )
        return [
            self.joined(source, [next(found) for _ in cut])
            for source, cut in zip(sources, parts, strict=True)
        ]

    def translate_parts(
        self,
        parts: Sequence[str],
        is_first: Sequence[bool],
        *,
        beam_size: int | None = None,
        length_penalty: float | None = None,
        n_best: int | None = None,
        decoding: DecodingConfig | None = None,
        attention: bool = False,
        layers: Sequence[int] | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> list[list[Translation]]:
        """Translations of parts of texts, as ``parts`` cuts them: what ``translate`` does of each.

        Args:
            parts: What to translate.
            is_first: Which of them begin a text: a prefix and required words are for those.
            beam_size: As ``translate`` has it, and so are the others.
            length_penalty: See there.
            n_best: See there.
            decoding: See there.
            attention: See there.
            layers: See there.
            progress: See there.

        Raises:
            SettingError: As of ``translate``.
        """
        given: dict[str, Any] = {"length_penalty": length_penalty, "n_best": n_best}
        if beam_size is not None:
            given |= {"method": "beam", "beam_size": beam_size}
        decoding = self.recipe.decoding if decoding is None else decoding
        decoding = decoding.changed(**{k: v for k, v in given.items() if v is not None})
        search = Searcher(decoding, self.tokenizer.target)
        wanted = _Wanted(search, attention, layers)
        return self._search(list(parts), list(is_first), wanted, progress)

    @torch.no_grad()
    def look(self, source: str, output: Sequence[int] | str) -> Look:
        """What the model looks at when it writes ``output``: one teacher-forced pass.

        A text longer than training allowed is looked at all the same, where the model can read it.

        Args:
            source: The source text.
            output: The output's text, or its token ids.

        Returns:
            The weights of all heads where source and output have at most 512 tokens; summaries
            of them where either has more than 64.

        Raises:
            DataError: The source is empty, or source or output longer than the model's positions.
        """
        source = normalize(source)
        target = self.tokenizer.target
        ids = list(target.encode(output) if isinstance(output, str) else output)
        source_ids = self.tokenizer.source.encode(source)
        if not source_ids:
            raise DataError("source must hold text to look at; got an empty line.")
        seen = self.observed(source_ids, ids)
        text, spans = target.decode_with_spans(ids)
        longest = max(len(source_ids), len(ids))
        return Look(
            source=source,
            output=text,
            source_pieces=self.tokenizer.source.pieces(source),
            output_pieces=pieces_of(text, spans, ids),
            maps=attention_maps(seen) if longest <= MOST_MAPPED else [],
            summaries=attention_summaries(seen) if longest > MOST_WITHOUT_SUMMARIES else [],
        )

    @torch.no_grad()
    def observed(
        self, source: Sequence[int], output: Sequence[int]
    ) -> dict[tuple[str, int], AttentionCall]:
        """What ``attend`` is called with when the model writes ``output``, by kind and layer.

        Args:
            source: Token ids, without their end.
            output: Token ids, without begin and end.

        Raises:
            DataError: One of them is longer than the model's positions.
        """
        # The begin that stands before an output, and the end of a source where one is read.
        self._check_length("source", len(source), int(self.recipe.data.source_end))
        self._check_length("output", len(output), 1)
        batch, lengths = self._padded([source])
        calls: list[AttentionCall] = []
        self.model.eval()
        with observe(calls.append):
            self.model(batch, lengths, torch.tensor([[BOS_ID, *output]]))
        seen = joined(calls)
        if self.model.begins_source:
            # What an encoder reads besides, no token of the source stands for.
            return {place: each for place, each in seen.items() if place[0] != "encoder"}
        return seen

    def _check_length(self, name: str, length: int, signs: int) -> None:
        most = self.model.max_length
        if most is not None and length > most - signs:
            raise DataError(
                f"{name} must be at most {most - signs} tokens long to be looked at; got {length}. "
                "The model has no positions beyond: look at one sentence at a time."
            )

    def _search(
        self,
        texts: list[str],
        is_first: list[bool],
        wanted: "_Wanted",
        progress: Callable[[int], None] | None,
    ) -> list[list[Translation]]:
        ids = [self.tokenizer.source.encode(text) for text in texts]
        found: list[list[Translation]] = [[] for _ in texts]
        self.model.eval()
        filled = [place for place, tokens in enumerate(ids) if tokens]
        sizes = [(len(ids[place]) + 1) * wanted.search.width for place in filled]
        with torch.no_grad():
            for group in batched(sizes, self.recipe.decoding.batch_tokens):
                places = [filled[index] for index in group]
                answers, rows = self._search_batch(
                    [ids[place] for place in places],
                    wanted,
                    seeds=[texts[place] for place in places],
                    is_asked=[is_first[place] for place in places],
                )
                for index, place in enumerate(places):
                    looked = (len(ids[place]), rows[index]) if wanted.attention else None
                    found[place] = self._translations(texts[place], answers[index], looked)
                if progress is not None:
                    progress(len(places))
        return [
            translations or [Translation(text, "", 0.0, 0.0, (), True)]
            for text, translations in zip(texts, found, strict=True)
        ]

    def _search_batch(
        self, ids: list[list[int]], wanted: "_Wanted", **asked: Any
    ) -> tuple[list[list[Found]], list[Float[Tensor, "T S"]]]:
        """The answers of each sentence; if they are wanted, the weights of the best of each."""
        source, lengths = self._padded(ids)
        step, state = self.model.step, self.model.start(source, lengths)
        trail = Trail(step, layers=wanted.layers) if wanted.attention else None
        is_followed = trail is not None and not wanted.search.has_copies
        if trail is not None and is_followed:
            step, state = trail.step, trail.start(state, len(ids))
        most = self.model.max_length
        found = wanted.search.answers(
            step,
            state,
            limits=longest_output(lengths, wanted.search.decoding.max_ratio),
            sources=lengths,
            # One less, for the begin token that a look puts before the output.
            longest=None if most is None else most - 1,
            **asked,
        )
        if trail is None:
            return found, []
        best = [answers[0].hypothesis.tokens for answers in found]
        if not is_followed:  # rows that hold the same tokens cannot be told apart: go once more
            state = trail.start(self.model.start(source, lengths), len(ids))
            score_answers(trail.step, state, best, bos_id=BOS_ID, eos_id=EOS_ID)
        return found, [
            rows[: len(tokens), :width]
            for rows, tokens, width in zip(trail.weights(best), best, lengths.tolist(), strict=True)
        ]

    def _padded(self, ids: Sequence[Sequence[int]]) -> tuple[Int[Tensor, "B S"], Int[Tensor, " B"]]:
        end = [EOS_ID] if self.recipe.data.source_end else []
        rows = [torch.tensor([*tokens, *end]) for tokens in ids]
        lengths = torch.tensor([len(row) for row in rows])
        padded = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=PAD_ID)
        return padded, lengths

    def _translations(
        self,
        source: str,
        answers: Sequence[Found],
        looked: tuple[int, Float[Tensor, "T S"]] | None,
    ) -> list[Translation]:
        """Answers as text, the best with what it looked at: the source's length, and weights."""
        found = []
        for rank, answer in enumerate(answers):
            hypothesis = answer.hypothesis
            tokens, alignment = hypothesis.tokens, None
            if looked is not None and rank == 0:
                length, weights = looked
                alignment = Alignment(source, tokens, weights, length, self.tokenizer)
            found.append(
                Translation(
                    source=source,
                    text=self.tokenizer.target.decode(tokens),
                    score=hypothesis.score,
                    log_prob=hypothesis.log_prob,
                    tokens=tokens,
                    is_finished=hypothesis.finished,
                    alignment=alignment,
                    utility=answer.utility,
                )
            )
        return found

    def start(self, ids: list[list[int]]) -> Any:
        """The model's state before the first token of each source's output.

        Args:
            ids: Of the sources, without their end.
        """
        return self.model.start(*self._padded(ids))

    def parts(self, text: str) -> list[str]:
        """What ``translate`` cuts a text into: itself, or parts no longer than training allowed.

        Of a document there is one part: what is beyond is not read.
        """
        longest = self.recipe.data.max_length
        if isinstance(self.recipe.data, DocumentData):
            return [cut_to(text, self.tokenizer.source, longest)]
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

    def joined(self, source: str, parts: Sequence[list[Translation]]) -> list[Translation]:
        """The translations of a text from those of its parts: of several, the best of each."""
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


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What ``translate`` was asked for."""

    search: Searcher
    attention: bool
    layers: Sequence[int] | None
