"""Interfaces of models, which tasks and searches call, and the states that decoding carries."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from itertools import chain
from typing import Any, ClassVar, Generic, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from typing_extensions import TypeVar

from regard.attention import KeyValueCache, Mask
from regard.attention import lengths as lengths_mask
from regard.layers.inputs import rows_of_ids, texts, valid_rows

# The decoding state from one token to the next; each architecture has its own.
StateT = TypeVar("StateT", default=Any)


class Seq2Seq(nn.Module, ABC, Generic[StateT]):
    """Interface of sequence-to-sequence models for training and search.

    It is made from its settings and by name of ``source_vocab`` and ``target_vocab``, the numbers
    of ids of both sides, and ``shared_vocab``: whether both number the same tokens.

    Attributes:
        max_length: Longest sequence it can take, in tokens; None sets no limit.
        begins_source: Whether its encoder reads a begin before each source, for which no token of
            the source stands.
        copying_layer: The layer of attention to the source by whose weights tokens are copied from
            it; None where none are.

    Example:
        >>> import torch
        >>> class Echo(Seq2Seq):
        ...     max_length = None
        ...     def forward(self, source, source_lengths, target, target_lengths=None):
        ...         return source[:, : target.shape[1]], None
        ...     def project(self, states): return 9 * torch.eye(5)[states]
        ...     def start(self, source, source_lengths): return source
        ...     def step(self, token, state):
        ...         return self.project(state[:, 0]).log_softmax(-1), state[:, 1:]
        >>> model = Echo()
        >>> log_probs, state = model.step(torch.tensor([2]), torch.tensor([[4, 3]]))
        >>> log_probs.argmax(-1), state
        (tensor([4]), tensor([[3]]))
    """

    max_length: int | None
    begins_source: bool = False
    copying_layer: int | None = None

    @abstractmethod
    def forward(
        self,
        source: Int[Tensor, "B S"],
        source_lengths: Int[Tensor, " B"],
        target: Int[Tensor, "B T"],
        target_lengths: Int[Tensor, " B"] | None = None,
    ) -> tuple[Float[Tensor, "B T C"], Float[Tensor, ""] | None]:
        """States for a whole target at once (teacher forcing).

        Args:
            source: Token ids, padded on the right.
            source_lengths: How many of them are real.
            target: The target shifted right: begins with the start token.
            target_lengths: How many of them are real; the states of padding mean nothing. None:
                all are.

        Returns:
            States for :meth:`project`, and an auxiliary loss, summed over tokens, or None.
        """

    @abstractmethod
    def project(self, states: Float[Tensor, "*batch C"]) -> Float[Tensor, "*batch V"]:
        """Logits from states."""

    @abstractmethod
    def start(self, source: Int[Tensor, "B S"], source_lengths: Int[Tensor, " B"]) -> StateT:
        """The decoder's state before the first token."""

    @abstractmethod
    def step(self, token: Int[Tensor, " B"], state: StateT) -> tuple[Float[Tensor, "B V"], StateT]:
        """Log-probabilities of the next token, and the state after ``token``."""

    @property
    def steps(self) -> Callable[[Tensor, StateT], tuple[Tensor, StateT]]:
        """Step function of a search: :meth:`step`, unless a subclass has a faster one."""
        return self.step


class LanguageModel(nn.Module, ABC, Generic[StateT]):
    """Interface of language models for training and search.

    It is made from its settings and ``vocab_size``.

    Attributes:
        max_length: Longest text it can take, in tokens; None sets no limit.
        output_dim: Width of its states, C.
        is_recurrent: Whether a state of one size stands for all that was read; else earlier tokens
            are looked at again, as far as the windows of training go.

    Example:
        >>> import torch
        >>> class Counting(LanguageModel):
        ...     max_length, output_dim = None, 5
        ...     def forward(self, ids, lengths=None): return torch.eye(5)[(ids + 1) % 5]
        ...     def project(self, states): return 9 * states
        ...     def start(self, prompt, prompt_lengths): return None
        ...     def step(self, token, state):
        ...         return self.project(self(token)).log_softmax(-1), state
        >>> Counting().step(torch.tensor([1, 4]), None)[0].argmax(-1)
        tensor([2, 0])
    """

    max_length: int | None
    output_dim: int
    is_recurrent: ClassVar[bool] = False

    @abstractmethod
    def forward(
        self, ids: Int[Tensor, "B N"], lengths: Int[Tensor, " B"] | None = None
    ) -> Float[Tensor, "B N C"]:
        """States for a whole text.

        Args:
            ids: Token ids, padded on the right.
            lengths: How many of them are real; None is all.
        """

    @abstractmethod
    def project(self, states: Float[Tensor, "*batch C"]) -> Float[Tensor, "*batch V"]:
        """Logits of the next token from states."""

    @abstractmethod
    def start(self, prompt: Int[Tensor, "B S"], prompt_lengths: Int[Tensor, " B"]) -> StateT:
        """The state before a continuation of each prompt, whose last token comes first.

        Args:
            prompt: Token ids, padded on the right; may have no columns.
            prompt_lengths: How many of them are real, one at least unless there are no columns.
        """

    @abstractmethod
    def step(self, token: Int[Tensor, " B"], state: StateT) -> tuple[Float[Tensor, "B V"], StateT]:
        """Log-probabilities of the next token, and the state after ``token``."""

    @property
    def steps(self) -> Callable[[Tensor, StateT], tuple[Tensor, StateT]]:
        """Step function of a search: :meth:`step`, unless a subclass has a faster one."""
        return self.step


class Reader(nn.Module, ABC):
    """Interface of readers: a state for each position of their input.

    Attributes:
        max_length: Longest text it can take, in tokens; None sets no limit.
        output_dim: Width of its states, C.
        reads_apart: Whether it takes two texts each by itself; else both stand in one row.
        reads_features: Whether it takes ``features``, such as whether a word is in both texts.

    Example:
        >>> from regard.models import BagReader, MatchReader
        >>> [(each.reads_apart, each.reads_features) for each in (BagReader, MatchReader)]
        [(False, False), (True, True)]
    """

    max_length: int | None
    output_dim: int
    reads_apart: ClassVar[bool] = False
    reads_features: ClassVar[bool] = False


class TextReader(Reader):
    """Interface of readers of one text, or of two in one row.

    It is made from its settings and ``vocab_size``, the number of ids; ``parts_vocab``, that of the
    ids of words' parts, where its settings have ``parts``; and ``num_features`` where it reads
    features. A head hands on further inputs by name
    (``segments``, ``parts``, ``features``).

    Example:
        >>> import torch
        >>> from regard.models import Classifier, ClassifierConfig
        >>> class Parity(TextReader):
        ...     max_length, output_dim = None, 2
        ...     def forward(self, ids, lengths=None): return torch.eye(2)[ids % 2]
        >>> model = Classifier(ClassifierConfig(), Parity(), num_classes=3)
        >>> model(torch.tensor([[4, 7, 9]]), torch.tensor([3])).shape
        torch.Size([1, 3])
    """

    @abstractmethod
    def forward(
        self, ids: Int[Tensor, "B N"], lengths: Int[Tensor, " B"] | None = None
    ) -> Float[Tensor, "B N C"]:
        """The states; those of padding mean nothing.

        Args:
            ids: Token ids, padded on the right.
            lengths: How many of them are real; None is all.
        """


class PairReader(Reader):
    """Interface of readers of two texts; constructed like a ``TextReader`` with features.

    Example:
        >>> import torch
        >>> class Shared(PairReader):
        ...     max_length, output_dim = None, 1
        ...     def forward(self, ids, lengths, *, other, other_lengths, features):
        ...         return (ids[:, :, None] == other[:, None]).any(-1, keepdim=True).float()
        >>> ids, other = torch.tensor([[4, 7, 9]]), torch.tensor([[7, 8]])
        >>> lengths = {"lengths": torch.tensor([3]), "other_lengths": torch.tensor([2])}
        >>> Shared()(ids, other=other, features=torch.zeros(1, 3, 0), **lengths).tolist()
        [[[0.0], [1.0], [0.0]]]
    """

    reads_apart = True
    reads_features = True

    @abstractmethod
    def forward(
        self,
        ids: Int[Tensor, "R N"],
        lengths: Int[Tensor, " R"],
        *,
        other: Int[Tensor, "S M"],
        other_lengths: Int[Tensor, " S"],
        features: Float[Tensor, "R N F"],
    ) -> Float[Tensor, "R N C"]:
        """The states of the text; a row of the other may serve several that follow each other.

        Args:
            ids: Token ids of the text, padded on the right.
            lengths: How many of them are real.
            other: Token ids of the text beside it, padded on the right; S divides R.
            other_lengths: How many of those are real.
            features: Further numbers of each token of the text.
        """


@runtime_checkable
class DividesLogits(Protocol):
    """Interface of classifiers whose probabilities can be calibrated."""

    def divide_logits(self, temperature: float) -> None:
        """Divide the logits by a temperature, in the weights."""


class PairClassifier(nn.Module, ABC):
    """Interface of models that classify a pair of texts without a head.

    It is made from its settings, ``vocab_size`` and ``num_classes``; and ``num_features``, if it
    reads overlap. Its layers of attention are two: from the first text to the second, and from
    the second to the first.

    Attributes:
        max_length: Longest text it can take, in tokens; None sets no limit.
        reads_overlap: Whether it takes ``overlap`` too, (B, F) numbers of shared words.

    Example:
        >>> import torch
        >>> class Longer(PairClassifier):
        ...     max_length = None
        ...     def forward(self, first, first_lengths, second, second_lengths):
        ...         return torch.stack([first_lengths, second_lengths], dim=-1).float()
        >>> ids = torch.ones(2, 5, dtype=torch.long)
        >>> Longer()(ids, torch.tensor([5, 2]), ids, torch.tensor([1, 3])).argmax(-1)
        tensor([0, 1])
    """

    max_length: int | None
    reads_apart: ClassVar[bool] = True
    reads_features: ClassVar[bool] = False
    reads_overlap: ClassVar[bool] = False

    @abstractmethod
    def forward(
        self,
        first: Int[Tensor, "B N"],
        first_lengths: Int[Tensor, " B"],
        second: Int[Tensor, "B M"],
        second_lengths: Int[Tensor, " B"],
    ) -> Float[Tensor, "B K"]:
        """The logits.

        Args:
            first: Token ids of the first text, padded on the right.
            first_lengths: How many of them are real.
            second: Token ids of the second text, padded on the right.
            second_lengths: How many of those are real.
        """


T = TypeVar("T", bound="DecodingState")


@dataclass(frozen=True)
class DecodingState:
    """A tree of tensors whose first axis is the batch's, and of numbers that all rows share."""

    def select(self: T, rows: Int[Tensor, " K"]) -> T:
        """The state of these rows, in this order; a row may come twice.

        Raises:
            ShapeError: A row is none of the state.
        """
        if self.num_rows is not None:
            rows = valid_rows(rows, self.num_rows)
        chosen = {field.name: _rows_of(getattr(self, field.name), rows) for field in fields(self)}
        return replace(self, **chosen)

    @property
    def num_rows(self) -> int | None:
        """Rows of its tensors; None if it has none."""
        return next((tensor.shape[0] for tensor in _tensors(self)), None)


def _tensors(part: object) -> Iterator[Tensor]:
    if isinstance(part, Tensor):
        yield part
    elif isinstance(part, DecodingState | KeyValueCache | SourceMemory):
        part = tuple(getattr(part, field.name) for field in fields(part))
    if isinstance(part, tuple):
        yield from chain.from_iterable(map(_tensors, part))


def _rows_of(part: object, rows: Int[Tensor, " K"]) -> object:
    if isinstance(part, Tensor):
        return part[rows]
    if isinstance(part, tuple):
        return tuple(_rows_of(item, rows) for item in part)
    if isinstance(part, DecodingState | KeyValueCache | SourceMemory):
        return part.select(rows)
    return part


@dataclass(frozen=True)
class SourceMemory:
    """Encoder states that attention looks at: keys projected for the score, values, mask."""

    keys: Float[Tensor, "B S h"]
    values: Float[Tensor, "B S E"]
    lengths: Int[Tensor, " B"]
    mask: Mask

    def select(self, rows: Int[Tensor, " K"]) -> "SourceMemory":
        """The memory of these rows, in this order."""
        lengths = self.lengths[rows]
        return SourceMemory(self.keys[rows], self.values[rows], lengths, lengths_mask(lengths))

    @property
    def positions(self) -> Float[Tensor, " S"]:
        """1 … S, as the papers count."""
        S = self.values.shape[1]
        return torch.arange(1, S + 1, dtype=self.values.dtype, device=self.values.device)

    @property
    def is_padding(self) -> Bool[Tensor, "B S"]:
        """Mask of the padded positions."""
        return self.positions > self.lengths[:, None]


@dataclass(frozen=True)
class AlignedPrompt:
    """Prompts padded on the left without their last tokens, which are ``last`` (None if S = 0)."""

    aligned: Int[Tensor, "B T"]
    padding: Int[Tensor, " B"]
    last: Int[Tensor, " B"] | None
    is_even: bool

    @classmethod
    def of(cls, prompt: Int[Tensor, "B S"], lengths: Int[Tensor, " B"]) -> "AlignedPrompt":
        """Cut prompts that are padded on the right; ShapeError if a row is empty or too long."""
        prompt, lengths = texts(
            "prompt",
            prompt,
            lengths,
            least=min(1, rows_of_ids("prompt", prompt).shape[1]),
            cure="Begin every prompt with a token that begins a text.",
            waits=True,
        )
        if not prompt.numel():
            return cls(prompt[:, :0], torch.zeros_like(lengths), None, True)
        shortest, longest = int(lengths.min()), int(lengths.max())
        padding = longest - lengths
        columns = torch.arange(longest, device=prompt.device) - padding[:, None]
        # Padding reads as whatever the row holds: no state sees it.
        turned = prompt.gather(1, columns % longest)
        return cls(turned[:, :-1], padding, turned[:, -1], shortest == longest)
