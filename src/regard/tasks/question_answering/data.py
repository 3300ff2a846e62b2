"""Questions as ids, in batches, and the stretches of text that answer them."""

from dataclasses import asdict, dataclass

from jaxtyping import Bool, Int
from torch import Tensor

from regard.config import JsonValue
from regard.tasks.text_pairs import EncodedPair, PairBatch


@dataclass(frozen=True, slots=True)
class EncodedQuestion:
    """A question and its text as ids.

    Attributes:
        pair: The text beside the question.
        spans: Start and end of each token in the text.
        answers: First and last token of each right answer.
        context: The text.
    """

    pair: EncodedPair
    spans: list[tuple[int, int]]
    answers: list[tuple[int, int]]
    context: str


@dataclass(frozen=True, slots=True, eq=False)
class QuestionBatch:
    """Padded windows of texts beside their questions; a long text takes several rows.

    Attributes:
        pairs: What the model reads.
        allowed: Where an answer may stand.
        starts: The place of an answer's first token in each row; ``NO_ANSWER`` where it has none.
        ends: The place of its last.
        owners: Which question each row is of.
        places: The number of its text's token at which each row's window begins.
        questions: The questions.
    """

    pairs: PairBatch
    allowed: Bool[Tensor, "R N"]
    starts: Int[Tensor, " R"]
    ends: Int[Tensor, " R"]
    owners: list[int]
    places: list[int]
    questions: list[EncodedQuestion]


@dataclass(frozen=True, slots=True)
class SpanAnswer:
    """The answer to one question.

    Attributes:
        answer: As the text has it; empty if the text does not answer.
        start: Its place in the text, in characters; −1 if there is none.
        end: One past its last character.
        probability: Of its two ends in the window it was found in.

    Example:
        >>> text = "A king had a son. The son was called Hans."
        >>> answer = SpanAnswer("Hans", 37, 41, 0.9)
        >>> text[answer.start : answer.end], answer.to_dict()
        ('Hans', {'answer': 'Hans', 'start': 37, 'end': 41, 'probability': 0.9})
    """

    answer: str
    start: int
    end: int
    probability: float

    def text(self) -> str:
        """The answer in one line."""
        return " ".join(self.answer.split())

    def to_dict(self) -> dict[str, JsonValue]:
        """Plain data, ready for JSON."""
        return {**asdict(self), "probability": round(self.probability, 6)}
