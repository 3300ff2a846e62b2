"""A run that writes a text for a text, in use: translations, summaries, written answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar, Unpack, cast

import numpy as np
import torch
from jaxtyping import Float
from torch import nn

from regard.config import JsonValue
from regard.decoding.hypothesis import divisors
from regard.devices import moved
from regard.errors import DataError
from regard.inference.examples import ChosenHeads, example
from regard.inference.explanation import explained_translation
from regard.inference.look import Calls, attention_to_source, calls_for_output, weights_of_row
from regard.inference.preparation import batch_tokens
from regard.inference.requests import typed_record
from regard.inference.search.searcher import Searcher
from regard.inference.search.sequences import aligned, search
from regard.inference.search.tree import followed, searched
from regard.inference.use import Answering, Reply, Request, RunInUse
from regard.models import Seq2Seq
from regard.tasks import DecodingConfig, SequenceTask
from regard.tasks.sequences.sequence_task import EncodedSequences, token_costs
from regard.tasks.sequences.translations import Translations
from regard.tasks.task import Answer
from regard.text import Line, Pair, batched, normalize
from regard.text.phrasebook import Phrase
from regard.text.reading.lines import readable
from regard.text.tokenizers.pieces import END
from regard.viewer import Document, Example
from regard.viewer.example import Head, Layer
from regard.viewer.options import LookOptions
from regard.viewer.parts import RowSource

_CACHED = 2  # examples whose queries and keys stay in memory


@dataclass(frozen=True, slots=True)
class ScoredPair:
    """A given output and how likely the model holds it; empty where there is none."""

    source: str = ""
    target: str = ""
    tokens: tuple[str, ...] = ()
    log_probs: tuple[float, ...] = ()  # of each token, and of the end
    log_prob: float = 0.0
    score: float = 0.0  # over the length penalty

    def text(self) -> str:
        """Score, log-probability and output, a tab between; nothing without an output."""
        if not self.log_probs:
            return ""
        return f"{self.score:.4f}\t{self.log_prob:.4f}\t{self.target}"

    def to_dict(self) -> dict[str, JsonValue]:
        """Plain data, ready for JSON."""
        members: dict[str, JsonValue] = {"source": self.source, "target": self.target}
        if self.log_probs:
            members["score"] = round(self.score, 6)
            members["log_prob"] = round(self.log_prob, 6)
            members["tokens"] = list(self.tokens)
            members["log_probs"] = [round(log_prob, 6) for log_prob in self.log_probs]
        return members


class Sequences(RunInUse[SequenceTask]):
    """A run that writes a text for a text."""

    answers_name: ClassVar[str] = "translations"
    work: ClassVar[str] = "translating"
    nothing: ClassVar[Answer | None] = Translations.of_nothing("")
    no_score: ClassVar[Answer | None] = ScoredPair()
    has_rows: ClassVar[bool] = True
    useless: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("max_tokens", "one_line"), "it is for language models"
    )
    served: ClassVar[Mapping[str, JsonValue]] = {"method": "beam"}
    no_attention: ClassVar[str | None] = None
    scored_by: ClassVar[frozenset[str]] = frozenset({"--length-penalty"})

    def __init__(self, model: nn.Module, task: SequenceTask) -> None:
        super().__init__(model, task)
        self.seq2seq = cast("Seq2Seq[Any]", model)

    @property
    def explains(self) -> bool:
        return True

    @property
    def translator(self) -> "Sequences":
        return self

    @property
    def decoding(self) -> DecodingConfig:
        """The recipe's settings of the search."""
        return self.recipe.settings(DecodingConfig)

    def unused(self, *, explain: bool) -> set[str]:
        return super().unused(explain=explain) - {"beam_size", "target"}

    def evaluated_search(self, settings: Mapping[str, JsonValue]) -> DecodingConfig | None:
        return self.search(self.recipe, settings)

    def parse(self, record: str | Mapping[str, JsonValue], where: str) -> Request:
        return self.request(self.task.request(record, where))

    def parse_line(self, line: Line, ending: str) -> Request | None:
        pair = self.task.parse_line(line, ending)
        return None if pair is None else self.request(pair)

    def parse_scored(self, line: Line, ending: str) -> Request | None:
        """The source and the target of a line, with the ids of both; None of an empty one."""
        if not readable(line).strip():
            return None
        return self.scored(self.task.parse_pair(line, ending), where=f"{line.where}: ")

    def request(self, pair: Pair) -> Request:
        """The request of a pair whose target is asked for."""
        parts = self.task.encoded_parts(pair.source)
        return Request(pair, parts, self.task.unknown(pair, parts))

    def scored(self, pair: Pair, *, where: str = "") -> Request:
        """The request of a pair that is scored."""
        tokenizer = self.task.tokenizer
        ids = EncodedSequences(
            tokenizer.source.encode(pair.source), tokenizer.target.encode(pair.target), pair.source
        )
        self._check_lengths(ids, where)
        return Request(pair, [ids], self.task.unknown(pair, [ids]))

    def answer_parts(
        self, parts: Sequence[EncodedSequences], **options: Unpack[Answering]
    ) -> list[Translations]:
        task, decoding = self.task, options.get("decoding") or self.decoding
        decoding.check_min_length("data.max_length", task.data.max_length)
        most = batch_tokens(self.model, self.decoding.batch_tokens)
        outputs = search(
            self.preparation.of(self.seq2seq),
            task,
            Searcher(decoding, task.tokenizer.target, device=self.device),
            parts,
            batch_tokens=most,
            progress=options.get("progress"),
        )
        if not options.get("attention"):
            return outputs
        layers = options.get("layers")
        return aligned(self.seq2seq, task, parts, outputs, layers=layers, batch_tokens=most)

    def join(self, request: Request, answers: Sequence[Translations]) -> Translations:
        return self.task.joined(request.example.source, answers)

    def answer_examples(self, examples: Sequence[Pair], **options: Unpack[Answering]) -> list[Any]:
        return list(self.answer([self.request(pair) for pair in examples], **options))

    def score(
        self, requests: Sequence[Request], *, decoding: DecodingConfig | None = None
    ) -> list[ScoredPair]:
        """How likely the model holds each target, given its source."""
        tokenizer, model = self.task.tokenizer.target, self.seq2seq.eval()
        pairs = [part for request in requests for part in request.parts]
        length_penalty = (decoding or self.decoding).length_penalty
        scores: dict[int, ScoredPair] = {}
        sizes = [len(pair.source) + len(pair.target) for pair in pairs]
        for indices in batched(sizes, self.decoding.batch_tokens):
            batch = moved(self.task.collate([pairs[index] for index in indices]), self.device)
            costs = token_costs(model, batch.padded).double()
            rows = torch.split(costs, batch.padded.target_lengths.tolist())
            for index, row in zip(indices, rows, strict=True):
                pair = requests[index].example
                names = (*(piece.text for piece in tokenizer.pieces(pair.target)), END)
                log_probs = tuple((-row).tolist())
                total = sum(log_probs, 0.0)
                score = total / divisors(length_penalty, len(log_probs))[-1]
                scores[index] = ScoredPair(pair.source, pair.target, names, log_probs, total, score)
        return [scores[index] for index in range(len(pairs))]

    def warm_up(self) -> None:
        self.answer([self.parse(".", "")])

    def parts(self, text: str, target: str | None) -> list[str]:
        text = normalize(text)
        return [text] if target is not None or not text else self.task.parts(text)

    def check_target(self, target: str | None, count: int) -> None:
        if target is not None and count > 1:
            raise DataError(f"target must be of one text; got {count} texts.")

    def examples(
        self, text: object, where: str, options: LookOptions, gold: Phrase | None, *, explain: bool
    ) -> list[Example]:
        pair = self.task.request(typed_record(text, where), where)
        parts = self.parts(pair.source, options.target)
        examples = [self._example(part, options, gold) for part in parts]
        if not explain:
            return examples
        model, why = self.seq2seq.eval(), replace(options, target=None)  # the output is the target
        return [explained_translation(model, self.task, pair, why) for pair in examples]

    def _example(self, source: str, options: LookOptions, gold: Phrase | None) -> Example:
        """Attention of the model while it writes the output of one part of a source."""
        model, task = self.seq2seq, self.task
        ready, score, tree = self.preparation.of(model), None, None
        if options.target is not None:
            if not (target := normalize(options.target)):
                raise DataError("target must hold text to look at; got an empty line.")
            look = attention_to_source(model, task, source, target)
            if not look.summaries:  # of a long text a search is nothing to read
                ids = [piece.id for piece in look.output_pieces]
                tree = followed(ready, task, look.source, ids)
        else:
            best, tree = searched(ready, task, source, beam_size=options.beam_size)
            look, score = attention_to_source(model, task, source, best.tokens), best.score
        chosen = ChosenHeads(options.layers, options.heads)
        return example(look, score=score, phrase=gold, search=tree, chosen=chosen)

    def calls(self, text: str, target: str | None, *, beam_size: int | None = None) -> Calls:
        """Calls of ``attend`` for the output of one text, or for a target: one forward pass."""
        tokenizer = self.task.tokenizer
        request = self.request(Pair(normalize(text), "", (), "text"))
        if target is None:
            if len(request.parts) > 1:
                raise DataError(
                    "text must be one that the model reads at once; got one of "
                    f"{len(request.parts)} parts. Ask for each of them."
                )
            (output,) = self.answer_parts(request.parts, decoding=self._in_beam(beam_size))
            written: Sequence[int] = output.best.tokens
        else:
            written = tokenizer.target.encode(normalize(target))
        (read,) = [part.source for part in request.parts] or [()]
        return calls_for_output(self.seq2seq, self.task, read, written)

    def rows(self, shown: Document) -> RowSource:
        """Source of exact attention rows for the examples of ``look``."""
        encoder, target = self.task.tokenizer.source, self.task.tokenizer.target

        @lru_cache(maxsize=_CACHED)
        def observed(number: int) -> Calls:
            example = shown.examples[number]
            output = target.encode(normalize(example.output))
            if len(output) + 1 != len(example.output_tokens):
                return {}
            source = encoder.encode(normalize(example.source))
            return calls_for_output(self.seq2seq, self.task, source, output)

        def rows(
            number: int, kind: str, layer: Layer, head: Head, queries: Sequence[int]
        ) -> Float[np.ndarray, "N M"] | None:
            chosen = [
                call
                for (name, at), call in observed(number).items()
                if name == kind and layer in ("mean", at)
            ]
            if not chosen:
                return None
            parts = []
            for call in chosen:
                weights = weights_of_row(call, queries=queries)
                parts.append(weights.mean(0) if head == "mean" else weights[head])
            return torch.stack(parts).mean(0).detach().float().cpu().numpy()

        return rows

    def notes(self, texts: Sequence[object], options: LookOptions) -> list[str]:
        """The source of each copied token, of a model that copies: a line for each text."""
        if options.target is not None or self.seq2seq.copying_layer is None:
            return []
        decoding = self._in_beam(options.beam_size)
        requests = [self.parse_value(text, "text") for text in texts]
        lines = []
        for outputs in self.answer(requests, decoding=decoding, attention=True):
            alignment = cast(Translations, outputs).alignment
            if alignment is not None and alignment.tokens:
                words = [
                    text if position is None else f"[{text}]{position}"
                    for text, position in alignment.copies()
                ]
                lines.append(f"copied, from which character on: {' '.join(words)}")
        return lines

    def reply(self, text: str, example: Example) -> Reply:
        return Reply(text=example.output, unknown=tuple(self.parse_value(text, "text").unknown))

    def about(self) -> dict[str, JsonValue]:
        data = self.task.data
        languages = {
            "source_language": data.source_language,
            "target_language": data.target_language,
        }
        return {**super().about(), **languages, "beam_size": self.decoding.beam_size}

    def _in_beam(self, beam_size: int | None) -> DecodingConfig:
        """The recipe's search, or a beam of this size."""
        if beam_size is None:
            return self.decoding
        return self.decoding.changed(method="beam", beam_size=beam_size)

    def _check_lengths(self, pair: EncodedSequences, where: str) -> None:
        if not len(pair.source):
            raise DataError(f"{where}source must hold text; got an empty one.")
        most = self.seq2seq.max_length
        if most is None:
            return
        for name, length, signs in (
            ("source", len(pair.source), int(self.task.data.source_end)),
            ("target", len(pair.target), 1),
        ):
            if length > most - signs:
                raise DataError(
                    f"{where}{name} must be at most {most - signs} tokens long; got {length}. "
                    "The model has no positions beyond."
                )
