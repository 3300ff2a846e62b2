"""Outputs that were written for a text: translations, summaries, answers, continuations."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import overload

from regard.config import JsonValue
from regard.decoding import Hypothesis
from regard.decoding.hypothesis import Alignment


@dataclass(frozen=True, slots=True)
class Hypotheses(Sequence[Hypothesis]):
    """Outputs of a search for one text, best first."""

    source: str
    hypotheses: tuple[Hypothesis, ...]
    parts: int = 1

    @overload
    def __getitem__(self, index: int) -> Hypothesis: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Hypothesis, ...]: ...

    def __getitem__(self, index: int | slice) -> Hypothesis | tuple[Hypothesis, ...]:
        return self.hypotheses[index]

    def __len__(self) -> int:
        return len(self.hypotheses)

    @property
    def best(self) -> Hypothesis:
        """The first output."""
        return self.hypotheses[0]

    @abstractmethod
    def text(self) -> str:
        """The best output, as people read it."""

    @abstractmethod
    def lines(self, number: int | None = None) -> Iterator[str]:
        """All outputs, as people read them."""

    @abstractmethod
    def to_dict(self) -> dict[str, JsonValue]:
        """Plain data, ready for JSON."""


@dataclass(frozen=True, slots=True)
class Translations(Hypotheses):
    """Translations of one text; one empty translation of an empty text.

    Example:
        >>> one = Hypothesis(
        ...     tokens=(5, 6, 7), text="I love China", score=-0.5, log_prob=-1.25, is_finished=True
        ... )
        >>> Translations("我爱中国", (one,)).to_dict()
        {'source': '我爱中国', 'translation': 'I love China', 'score': -0.5, 'log_prob': -1.25}
    """

    @classmethod
    def of_nothing(cls, source: str) -> "Translations":
        """The translations of a text without words."""
        return cls.of_text(source, "")

    @classmethod
    def of_text(cls, source: str, text: str) -> "Translations":
        """A given translation, without a model."""
        output = Hypothesis(tokens=(), text=text, score=0.0, log_prob=0.0, is_finished=True)
        return cls(source, (output,))

    @property
    def alignment(self) -> Alignment | None:
        """Attention of the best translation's tokens; None where it is not known."""
        return self.best.alignment

    def text(self) -> str:
        """The best translation; with its alignment, the links behind a tab: ``0-0 1-1``."""
        if self.alignment is None:
            return self.best.text
        links = " ".join(f"{source}-{output}" for source, output in self.alignment.links())
        return f"{self.best.text}\t{links}"

    def lines(self, number: int | None = None) -> Iterator[str]:
        """The best one; with a number each of them, behind that number and its score."""
        if number is None:
            yield self.text()
            return
        for hypothesis in self:
            yield f"{number}\t{hypothesis.score:.4f}\t{hypothesis.text}"

    def to_dict(self) -> dict[str, JsonValue]:
        """Plain data, ready for JSON."""
        members: dict[str, JsonValue] = {"source": self.source, **_members(self.best)}
        if self.parts > 1:
            members["parts"] = self.parts
        if len(self) > 1:
            members["n_best"] = [_members(hypothesis) for hypothesis in self]
        if (alignment := self.alignment) is not None:
            members["source_tokens"] = [piece.text for piece in alignment.source_pieces]
            members["output_tokens"] = [piece.text for piece in alignment.output_pieces]
            # One column more than tokens is the source's end.
            rows = alignment.weights.tolist()
            members["attention"] = [[round(weight, 4) for weight in row] for row in rows]
            members["links"] = [list(link) for link in alignment.links()]
            if alignment.is_copying:
                members["copied_from"] = alignment.copied_from()
        return members


def _members(hypothesis: Hypothesis) -> dict[str, JsonValue]:
    """A translation, its figures, and a note if it was cut."""
    members: dict[str, JsonValue] = {
        "translation": hypothesis.text,
        "score": round(hypothesis.score, 6),
        "log_prob": round(hypothesis.log_prob, 6),
    }
    if not hypothesis.is_finished:
        members["is_finished"] = False
    return members


@dataclass(frozen=True, slots=True)
class Continuations(Hypotheses):
    """Continuations of one text by a language model."""

    def text(self) -> str:
        """The text and its first continuation."""
        return f"{self.source}{self.best.text}"

    def lines(self, number: int | None = None) -> Iterator[str]:
        """The text with each continuation, and an empty line after it, which may be many lines."""
        for hypothesis in self:
            yield f"{self.source}{hypothesis.text}\n"

    def to_dict(self) -> dict[str, JsonValue]:
        """Plain data, ready for JSON."""
        return {"prompt": self.source, "continuations": [hypothesis.text for hypothesis in self]}
