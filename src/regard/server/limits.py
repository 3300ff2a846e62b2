"""How much one server takes on."""

from dataclasses import dataclass
from typing import Annotated

from regard.fields import Count, Positive, Weight, at_least, check_fields

# Bytes of a request that any text fits in, below 10,000 characters.
_SMALL_BODY = 1 << 20
# Characters that cost about as much as one sentence.
_SENTENCE = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """Limits of requests and of the queue.

    Attributes:
        max_batch: Sentences translated at once; a long text counts as several.
        max_wait: Longest time in seconds that a batch is held for those who were answered just
            before and are likely to ask again.
        turn: Seconds of work on one request after which others have their turn, such as between
            the parts of a long text.
        queue: Sentences that may wait; beyond that, requests are refused with 503.
        timeout: Seconds within which a request is answered, or given up with 504.
        max_length: Characters of one text.
        max_looked: Characters of a text that is looked into.
        max_texts: Texts of one request.
        max_beam: Widest beam.
        patience: Seconds that a client may take to send its request.

    Raises:
        SettingError: A number is out of range.

    Example:
        >>> Limits(max_length=1_000_000).max_body
        6001024
        >>> Limits(max_batch=0)
        Traceback (most recent call last):
        regard.errors.SettingError: max_batch must be at least 1; got 0. Use 1 for no batches.
    """

    max_batch: Annotated[int, at_least(1, cure="Use 1 for no batches.")] = 64
    max_wait: Weight = 0.005
    turn: Positive = 0.5
    queue: Count = 2000
    timeout: Positive = 30.0
    max_length: Count = 10_000
    max_looked: Count = 2000
    max_texts: Count = 1000
    max_beam: Count = 32
    patience: Positive = 10.0

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def max_body(self) -> int:
        """Bytes of one request: a text of the longest kind fits, each character escaped."""
        return max(_SMALL_BODY, 6 * self.max_length + 1024)


def sentences(text: str) -> int:
    """How many sentences a text counts as.

    Example:
        >>> sentences("我爱中国"), sentences("a" * 1000)
        (1, 6)
    """
    return 1 + len(text) // _SENTENCE
