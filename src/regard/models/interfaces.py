"""What every model of a kind offers to tasks and searches, whatever its architecture."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Generic

from jaxtyping import Float, Int
from torch import Tensor, nn
from typing_extensions import TypeVar

# What decoding carries from one token to the next; each architecture has its own.
StateT = TypeVar("StateT", default=Any)


class Seq2Seq(nn.Module, ABC, Generic[StateT]):
    """What a sequence-to-sequence model offers to training and to every search.

    It is made from its settings and ``source_vocab``, ``target_vocab`` and ``shared_vocab``.

    Attributes:
        max_length: Longest sequence it can take, in tokens; None sets no limit.
        begins_source: Whether its encoder reads a begin before each source, for which no token of
            the source stands.
        copying_layer: The layer of attention to the source by whose weights tokens are copied from
            it; None where none are.
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
        """What a search drives: :meth:`step`, unless something serves searches better."""
        return self.step


class LanguageModel(nn.Module, ABC, Generic[StateT]):
    """What a language model offers to training and to every search.

    It is made from its settings and ``vocab_size``.

    Attributes:
        max_length: Longest text it can take, in tokens; None sets no limit.
        output_dim: Width of its states, C.
        is_recurrent: Whether a state of one size stands for all that was read; else what was read
            is looked at again, as far as the windows of training go.
    """

    max_length: int | None
    output_dim: int
    is_recurrent: ClassVar[bool] = False

    @abstractmethod
    def forward(
        self, ids: Int[Tensor, "B N"], lengths: Int[Tensor, " B"] | None = None
    ) -> Float[Tensor, "B N C"]:
        """States for a whole text."""

    @abstractmethod
    def project(self, states: Float[Tensor, "*batch C"]) -> Float[Tensor, "*batch V"]:
        """Logits of the next token from states."""

    @abstractmethod
    def start(self, prompt: Int[Tensor, "B S"], prompt_lengths: Int[Tensor, " B"]) -> StateT:
        """The state before a continuation of each prompt, whose last token comes first."""

    @abstractmethod
    def step(self, token: Int[Tensor, " B"], state: StateT) -> tuple[Float[Tensor, "B V"], StateT]:
        """Log-probabilities of the next token, and the state after ``token``."""

    @property
    def steps(self) -> Callable[[Tensor, StateT], tuple[Tensor, StateT]]:
        """What a search drives: :meth:`step`, unless something serves searches better."""
        return self.step


class Reader(nn.Module, ABC):
    """What a head stands on: a state for each position of what is read.

    Attributes:
        max_length: Longest text it can take, in tokens; None sets no limit.
        output_dim: Width of its states, C.
        reads_apart: Whether it takes two texts each by itself; else both stand in one row.
        reads_features: Whether it is told what of each text stands in the other, as ``features``.
    """

    max_length: int | None
    output_dim: int
    reads_apart: ClassVar[bool] = False
    reads_features: ClassVar[bool] = False


class TextReader(Reader):
    """What reads a text, or two in one row.

    It is made from its settings and ``vocab_size``, ``parts_vocab`` where its settings have
    ``parts``, and ``num_features`` where it reads features. What else it takes by name
    (``segments``, ``parts``, ``features``) a head hands on.
    """

    @abstractmethod
    def forward(
        self, ids: Int[Tensor, "B N"], lengths: Int[Tensor, " B"] | None = None
    ) -> Float[Tensor, "B N C"]:
        """The states; those of padding mean nothing."""


class PairReader(Reader):
    """What reads a text beside another; it is made as a ``TextReader`` that reads features is."""

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
        """The states of the text; a row of the other may serve several that follow each other."""


class PairClassifier(nn.Module, ABC):
    """What reads two texts and needs no head to say how they stand to each other.

    It is made from its settings, ``vocab_size`` and ``num_classes``. Its layers of attention are
    two: what the first text finds in the second, and what the second finds in the first.

    Attributes:
        max_length: Longest text it can take, in tokens; None sets no limit.
    """

    max_length: int | None
    reads_apart: ClassVar[bool] = True
    reads_features: ClassVar[bool] = False

    @abstractmethod
    def forward(
        self,
        first: Int[Tensor, "B N"],
        first_lengths: Int[Tensor, " B"],
        second: Int[Tensor, "B M"],
        second_lengths: Int[Tensor, " B"],
    ) -> Float[Tensor, "B K"]:
        """The logits."""
