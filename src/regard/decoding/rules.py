"""Rules on the next token beyond its probability; every search applies them.

A rule is a function of the log-probabilities and of the tokens written so far. One that hides a
token (−inf) leaves the others as they are. Rules are kept in their order, before any choice.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.bounds import bounded, token_id
from regard.decoding.step import Allowed
from regard.errors import SettingError, ShapeError
from regard.layers.inputs import rows_of_ids, valid_ids, valid_rows, whole


@dataclass(frozen=True, slots=True)
class Written:
    """Tokens before the next one, one row per prefix that a search follows.

    Attributes:
        tokens: The tokens of each, without the begin.
        sentences: Which sentence of the batch it answers.

    Example:
        A rule of one's own, which lets no token come twice in a row:

        >>> def no_echo(log_probs, written):
        ...     return log_probs.scatter(1, written.tokens[:, -1:], -torch.inf)
        >>> written = Written(torch.tensor([[0, 1], [1, 2]]), sentences=torch.tensor([0, 1]))
        >>> no_echo(torch.zeros(2, 3), written)
        tensor([[0., -inf, 0.],
                [0., 0., -inf]])
    """

    tokens: Int[Tensor, "R T"]
    sentences: Int[Tensor, " R"]

    def __post_init__(self) -> None:
        object.__setattr__(self, "tokens", rows_of_ids("tokens", self.tokens))
        object.__setattr__(self, "sentences", whole("sentences", self.sentences))

    def check(self, log_probs: Float[Tensor, "R V"]) -> None:
        """Raise unless there is a prefix of known tokens for each row of log-probabilities."""
        rows = len(self.tokens)
        if log_probs.dim() != 2 or not rows == len(log_probs) == len(self.sentences):
            raise ShapeError(
                f"log_probs must have a row for each prefix, ({rows}, V), and sentences a number; "
                f"got {tuple(log_probs.shape)} and {tuple(self.sentences.shape)}."
            )
        valid_ids("tokens", self.tokens, log_probs.shape[1])


# (log-probabilities of the next token, tokens written) -> the log-probabilities to choose by.
Rule = Callable[[Float[Tensor, "R V"], Written], Float[Tensor, "R V"]]


@dataclass(frozen=True, slots=True)
class RepetitionPenalty:
    """Multiplies the log-probability of every token that is already written.

    After Keskar et al. (2019), https://arxiv.org/abs/1909.05858, section 4.1, who divide logits;
    log-probabilities, which are never above zero, are multiplied.

    Attributes:
        penalty: From 0.01 to 100; 1 changes nothing, more makes repetitions less likely.

    Example:
        >>> written = Written(torch.tensor([[2, 2]]), torch.tensor([0]))
        >>> RepetitionPenalty(1.5)(torch.tensor([[-1.0, -2.0, -2.0]]), written)
        tensor([[-1., -2., -3.]])
    """

    penalty: int | float

    def __post_init__(self) -> None:
        object.__setattr__(self, "penalty", bounded("penalty", self.penalty))

    def __call__(self, log_probs: Float[Tensor, "R V"], written: Written) -> Float[Tensor, "R V"]:
        """The log-probabilities to choose by."""
        written.check(log_probs)
        changed = log_probs.gather(1, written.tokens) * self.penalty
        return log_probs.scatter(1, written.tokens, changed)


@dataclass(frozen=True, slots=True)
class NoRepeatedNgrams:
    """Hides every token that would end an n-gram the answer already has.

    Paulus et al. (2018), https://arxiv.org/abs/1705.04304, section 2.5, with n = 3.

    Attributes:
        size: Tokens in an n-gram, n; with 1 no token comes twice.

    Example:
        >>> written = Written(torch.tensor([[1, 2, 0, 1]]), torch.tensor([0]))
        >>> NoRepeatedNgrams(2)(torch.zeros(1, 3), written)
        tensor([[0., 0., -inf]])
    """

    size: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", bounded("size", self.size))

    def __call__(self, log_probs: Float[Tensor, "R V"], written: Written) -> Float[Tensor, "R V"]:
        """The log-probabilities to choose by."""
        written.check(log_probs)
        tokens, context = written.tokens, self.size - 1
        if tokens.shape[1] < self.size:
            return log_probs
        ngrams = tokens.unfold(1, self.size, 1)  # (R, T - n + 1, n)
        last = tokens[:, tokens.shape[1] - context :]
        rows, positions = (ngrams[:, :, :-1] == last[:, None]).all(2).nonzero(as_tuple=True)
        allowed = log_probs.clone()
        allowed[rows, ngrams[rows, positions, -1]] = -torch.inf
        return allowed


class Prefix:
    """Hides everything but the next token of a beginning that is given.

    Args:
        prefixes: Token ids that each sentence's answer begins with, perhaps none.

    Example:
        >>> written = Written(torch.tensor([[1], [1]]), torch.tensor([0, 1]))
        >>> Prefix([[1, 2], []])(torch.zeros(2, 3), written)
        tensor([[-inf, -inf, 0.],
                [0., 0., 0.]])
    """

    def __init__(self, prefixes: Sequence[Sequence[int]]) -> None:
        self.prefixes = [
            tuple(token_id("prefixes", token) for token in prefix) for prefix in prefixes
        ]
        longest = max(map(len, self.prefixes), default=0)
        padded = [[*prefix, *[-1] * (longest - len(prefix))] for prefix in self.prefixes]
        self._table = torch.tensor(padded, dtype=torch.long).view(len(padded), longest)

    def __call__(self, log_probs: Float[Tensor, "R V"], written: Written) -> Float[Tensor, "R V"]:
        """The log-probabilities to choose by."""
        written.check(log_probs)
        sentences = valid_rows(written.sentences, len(self.prefixes))
        position = written.tokens.shape[1]
        if position >= self._table.shape[1]:
            return log_probs
        required = self._table[:, position].to(log_probs.device)[sentences][:, None]
        is_excluded = torch.arange(log_probs.shape[1], device=log_probs.device) != required
        return log_probs.masked_fill((required >= 0) & is_excluded, -torch.inf)


class Rulebook:
    """All that a search must keep to: lengths, forbidden tokens and rules."""

    def __init__(
        self,
        allowed: Allowed,
        rules: Iterable[Rule],
        limits: Int[Tensor, " B"],
        eos_id: int,
        *,
        copies: int = 1,
    ) -> None:
        self.rules = tuple(rules)
        self._allowed = allowed
        self._copies = copies
        for rule in self.rules:
            if isinstance(rule, Prefix):
                _check_prefixes(rule.prefixes, limits.tolist(), eos_id)

    def keep(
        self,
        log_probs: Float[Tensor, "R V"],
        length: int,
        tokens: Int[Tensor, "R T"],
        answers: Int[Tensor, " A"],
    ) -> Float[Tensor, "R V"]:
        """The log-probabilities of the ``length``-th token, as all rules leave them."""
        if length == 1:
            self._allowed.check(log_probs.shape[1])
            self._check_prefixes_are_allowed(log_probs)
        log_probs = self._allowed.keep(log_probs, length)
        if not self.rules:
            return log_probs
        sentences = (answers // self._copies).repeat_interleave(len(tokens) // len(answers))
        written = Written(tokens, sentences)
        for rule in self.rules:
            log_probs = rule(log_probs, written)
        return log_probs

    def _check_prefixes_are_allowed(self, like: Float[Tensor, "R V"]) -> None:
        """Raise if a rule other than a prefix hides a token of one."""
        rules = [rule for rule in self.rules if not isinstance(rule, Prefix)]
        prefixes = [rule.prefixes for rule in self.rules if isinstance(rule, Prefix)]
        for sentence, prefix in chain.from_iterable(map(enumerate, prefixes)):
            _check_tokens(prefix, like.shape[1])
            for position, token in enumerate(prefix):
                log_probs = self._allowed.keep(like.new_zeros(1, like.shape[1]), position + 1)
                before = torch.tensor([prefix[:position]], dtype=torch.long, device=like.device)
                written = Written(before, before.new_tensor([sentence]))
                for rule in rules:
                    log_probs = rule(log_probs, written)
                if log_probs[0, token] == -torch.inf:
                    raise SettingError(
                        f"prefixes must not hold what another rule hides; got token {token} at "
                        f"position {position} of {list(prefix)}, for sentence {sentence}."
                    )


def _check_tokens(tokens: Iterable[int], vocab_size: int) -> None:
    for token in tokens:
        if not 0 <= token < vocab_size:
            raise SettingError(
                f"prefixes must hold tokens from 0 to {vocab_size - 1}; got {token}. "
                "Was it encoded with another vocabulary?"
            )


def _check_prefixes(prefixes: Sequence[Sequence[int]], limits: list[int], eos_id: int) -> None:
    if len(prefixes) != len(limits):
        raise SettingError(
            f"prefixes must be one per sentence: {len(limits)}; got {len(prefixes)}. "
            "An empty one forces nothing."
        )
    for sentence, (prefix, limit) in enumerate(zip(prefixes, limits, strict=True)):
        if len(prefix) > limit:
            raise SettingError(
                f"prefixes must be at most max_lengths long; got {len(prefix)} tokens for "
                f"sentence {sentence}, whose answer may have {limit}."
            )
        if eos_id in prefix:
            raise SettingError(
                f"prefixes must not hold eos_id; got {eos_id} for sentence {sentence}. "
                "Nothing could follow it."
            )
