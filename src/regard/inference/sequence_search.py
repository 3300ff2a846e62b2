"""The search for what a model writes for a batch of sources, and what it looks at meanwhile."""

from collections.abc import Sequence

from jaxtyping import Float, Int
from torch import Tensor

from regard.decoding import score_answers
from regard.decoding.step import StateT, Step
from regard.inference.searcher import Found, Searcher
from regard.inference.trail import Trail
from regard.models import Seq2Seq
from regard.tasks.sequence_task import longest_output
from regard.tasks.sequences import Output
from regard.text import BOS_ID, EOS_ID


class SequenceSearch:
    """A search over a model's steps, for outputs that are about as long as their sources.

    Args:
        searcher: The search with its settings.
        attention: Whether to note what the best output's tokens looked at.
        layers: Whose attention that is, counted from 0; None takes all layers.
    """

    def __init__(
        self,
        searcher: Searcher,
        *,
        attention: bool = False,
        layers: Sequence[int] | None = None,
    ) -> None:
        self.searcher, self.attention, self.layers = searcher, attention, layers

    def __call__(
        self,
        model: Seq2Seq,
        source: Int[Tensor, "B S"],
        lengths: Int[Tensor, " B"],
        *,
        seeds: Sequence[str],
        is_first: Sequence[bool],
    ) -> list[list[Output]]:
        """The outputs of each source; if they are wanted, with the weights of the best of each."""
        most = model.max_length

        def answers(step: Step[StateT], state: StateT) -> list[list[Found]]:
            return self.searcher.answers(
                step,
                state,
                limits=longest_output(lengths, self.searcher.decoding.max_ratio),
                sources=lengths,
                # One less, for the begin token that a look puts before the output.
                longest=None if most is None else most - 1,
                seeds=seeds,
                is_asked=is_first,
            )

        state = model.start(source, lengths)
        weights: list[Float[Tensor, "T S"] | None] = [None] * len(source)
        if not self.attention:
            found = answers(model.step, state)
        else:
            trail = Trail(model.step, layers=self.layers)
            followed = trail.start(state, len(source))
            # Rows that hold the same tokens cannot be told apart: what they say is followed anew.
            is_followed = not self.searcher.has_copies
            found = answers(trail.step, followed) if is_followed else answers(model.step, state)
            best = [each[0].hypothesis.tokens for each in found]
            if not is_followed:
                followed = trail.start(model.start(source, lengths), len(source))
                score_answers(trail.step, followed, best, bos_id=BOS_ID, eos_id=EOS_ID)
            weights = [
                rows[: len(tokens), :width]
                for rows, tokens, width in zip(
                    trail.weights(best), best, lengths.tolist(), strict=True
                )
            ]
        return [
            [_output(answer, rows if rank == 0 else None) for rank, answer in enumerate(each)]
            for each, rows in zip(found, weights, strict=True)
        ]


def _output(found: Found, weights: Float[Tensor, "T S"] | None) -> Output:
    hypothesis = found.hypothesis
    return Output(
        tokens=hypothesis.tokens,
        score=hypothesis.score,
        log_prob=hypothesis.log_prob,
        is_finished=hypothesis.finished,
        utility=found.utility,
        weights=weights,
    )
