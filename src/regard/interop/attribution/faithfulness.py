"""Faithfulness of attention as an explanation: beside it, the changes when a token goes.

Jain & Wallace (2019), https://arxiv.org/abs/1902.10186, compare attention with leave-one-out and
with gradients in this way; low rank correlations say that weights do not tell which tokens matter.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention import Mask, dense
from regard.checks import check_count
from regard.errors import SettingError
from regard.interop.attribution.input_vectors import (
    checked_inputs,
    gradient_times_input,
    ids_of,
    repeated,
)
from regard.interop.interventions.changes import AttentionChange, EditedCall
from regard.interop.interventions.edit import edit
from regard.interop.watch import Watch, watch


@dataclass(frozen=True, slots=True, eq=False)
class Faithfulness:
    """Importance of input tokens for one output: by attention, and by other methods.

    Attributes:
        log_prob: Of the output that is explained.
        output: Its position among the outputs (of a classifier, that which is looked from), and
            the number of the token or class.
        positions: Which positions of the input the numbers are for: all that are no padding.
        evidence: By name: "removed", how much the log-probability falls without the token;
            "gradient", the gradient of the log-probability times the token's embedding, or the
            vector of a piece of image or sound; "attention", the output's weights, a mean over
            layers and heads; "rollout", the same through all layers, where all attention is of one
            text to itself.
        correlation: The rank correlation of the sizes of each two of them; NaN where one is the
            same everywhere.

    Example:
        >>> evidence = {"removed": torch.tensor([0.9, 0.1]), "attention": torch.tensor([0.7, 0.3])}
        >>> print(Faithfulness(log_prob=-0.2, output=(0, 1), positions=torch.tensor([0, 1]),
        ...     evidence=evidence, correlation={("removed", "attention"): 1.0}))
        position    removed  attention
            0     0.9000     0.7000
            1     0.1000     0.3000
        removed and attention: rank correlation 1.00
    """

    log_prob: float
    output: tuple[int, int]
    positions: Int[Tensor, " P"]
    evidence: dict[str, Float[Tensor, " P"]]
    correlation: dict[tuple[str, str], float]

    def __str__(self) -> str:
        names = list(self.evidence)
        lines = ["position " + " ".join(f"{name:>10}" for name in names)]
        for row, position in enumerate(self.positions.tolist()):
            numbers = " ".join(f"{self.evidence[name][row]:10.4f}" for name in names)
            lines.append(f"{position:8} {numbers}")
        lines += [
            f"{first} and {second}: rank correlation {number:.2f}"
            for (first, second), number in self.correlation.items()
        ]
        return "\n".join(lines)


def faithfulness(
    model: nn.Module,
    inputs: Mapping[str, object],
    output: tuple[int | None, int | None] = (None, None),
    *,
    replacement: int | None = None,
    rows: int = 16,
) -> Faithfulness:
    """Attention beside leave-one-out and gradient × input, with their rank correlations.

    Without its token, a position is masked in every other's attention, in all layers; its state
    reaches the output only if the output is at that position. With ``replacement`` another token
    stands there instead.

    Args:
        model: One that ``watch`` can see, in evaluation mode: its outputs have ``logits``,
            (B, T, V) or (B, V), or are states that ``model.project`` makes logits of.
        inputs: Arguments of the model by name, for one text: tensors with a batch axis of one.
        output: The position and the token (or class) to explain; None is the last that is no
            padding (of a classifier that looks both ways, the first), and the likeliest token.
        replacement: A token to put in place of each, such as a mask; None hides it, which a
            model that computes its own attention cannot do.
        rows: How many texts with a token less are computed at once.

    Raises:
        SettingError: The model has no logits, or no such output, or cannot be watched.
        ShapeError: There is more than one text.

    Example:
        >>> from regard.models import Transformer, TransformerConfig
        >>> config = TransformerConfig(model_dim=16, num_heads=2, num_encoder_layers=1,
        ...     num_decoder_layers=1, ffn_dim=16)
        >>> model = Transformer(config, source_vocab=11, target_vocab=11).eval()
        >>> found = faithfulness(model, {"source": torch.tensor([[4, 5, 6]]),
        ...     "source_lengths": torch.tensor([3]), "target": torch.tensor([[1, 7]])})
        >>> found.positions.tolist(), sorted(found.evidence)
        ([0, 1, 2], ['attention', 'gradient', 'removed'])
    """
    check_count("rows", rows)
    inputs = checked_inputs(model, inputs)
    with torch.no_grad(), watch(model, top=0, map=1, keep=True) as calls:
        logits = logits_of(model, model(**inputs))
    has_memory = any(call.kind == "cross" for call in calls)
    counts = _input_mask(calls, has_memory)
    _check_lengths(calls, len(counts))
    if replacement is None and any(call.notes for call in calls):
        raise SettingError(
            "replacement must be a token, such as the mask, for a model that computes its own "
            f"attention, of which nothing can be hidden; got None for {type(model).__name__}."
        )
    position, token = _output(logits, output, calls, inputs, has_memory)
    positions = counts.nonzero().flatten()

    def log_prob(answer: object) -> Tensor:
        logits = logits_of(model, answer)
        chosen = logits if logits.dim() == 2 else logits[:, position]
        return torch.log_softmax(chosen.float(), dim=-1)[:, token]

    with torch.no_grad():
        whole = float(log_prob(model(**inputs)))
    kinds = sorted({call.kind for call in calls if not has_memory or call.kind != "decoder"})
    replaced = _replacement(model, inputs, len(counts), replacement)
    names = dict.fromkeys(call.name for call in calls)
    without = _log_probs_without(model, inputs, log_prob, positions, kinds, replaced, rows)
    gradient = gradient_times_input(model, inputs, len(counts), log_prob, attentions=names)
    evidence = {
        "removed": whole - without,
        "gradient": gradient[positions],
        "attention": attention_of(calls, position, has_memory)[positions],
    }
    if kinds in (["encoder"], ["decoder"]):
        rollout = calls.rollout([position])
        evidence["rollout"] = rollout.reshape(-1)[positions]
    sizes = {name: values.abs() for name, values in evidence.items()}
    correlation = {
        (first, second): rank_correlation(sizes[first], sizes[second])
        for first, second in combinations(sizes, 2)
    }
    return Faithfulness(whole, (position, token), positions, evidence, correlation)


def rank_correlation(one: Float[Tensor, " P"], other: Float[Tensor, " P"]) -> float:
    """Spearman's: the correlation of ranks, equal values sharing the mean of theirs.

    Example:
        >>> rank_correlation(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([1.0, 9.0, 4.0]))
        0.5
        >>> rank_correlation(torch.tensor([1.0, 1.0]), torch.tensor([1.0, 2.0]))
        nan
    """
    first, second = (ranks - ranks.mean() for ranks in (_ranks(one), _ranks(other)))
    size = (first.square().sum() * second.square().sum()).sqrt()
    return float(first @ second / size) if float(size) else float("nan")


def _ranks(values: Tensor) -> Tensor:
    _, inverse, counts = torch.unique(values.double(), return_inverse=True, return_counts=True)
    last: Tensor = counts.cumsum(0).double()
    ranks: Tensor = (last - (counts - 1) / 2)[inverse]
    return ranks


def logits_of(model: nn.Module, answer: object) -> Tensor:
    """Return the logits of a model's output; states go through ``model.project``."""
    logits = getattr(answer, "logits", None)
    project = getattr(model, "project", None)
    if logits is None:
        first = answer[0] if isinstance(answer, tuple) and answer else answer
        logits = project(first) if project is not None else first
    if not isinstance(logits, Tensor) or logits.dim() not in (2, 3):
        raise SettingError(
            "model must give logits of (B, T, V) or (B, V), or have project(states); "
            f"got {type(answer).__name__} from {type(model).__name__}."
        )
    return logits


def _input_mask(calls: Watch, has_memory: bool) -> Tensor:
    """Mask of the input tokens that are no padding."""
    kinds = {call.kind: call for call in reversed(calls)}
    if has_memory and "encoder" not in kinds:
        received = kinds["cross"].summary.received
        return torch.ones(received.shape[-1], dtype=torch.bool, device=received.device)
    of_input = kinds["encoder"] if "encoder" in kinds else kinds["decoder"]
    return of_input.summary.counts[0].any(dim=0)


def _check_lengths(calls: Watch, length: int) -> None:
    """Raise SettingError unless all attention to the input is to all of it."""
    has_memory = any(call.kind == "cross" for call in calls)
    for call in calls:
        if has_memory and call.kind == "decoder":
            continue
        B, _, N, M = call.summary.shape
        if B != 1 or length != M or (call.kind != "cross" and N != M):
            raise SettingError(
                f"model must attend to its whole input, of {length} positions, in every layer; got "
                f"{call.name or call.kind}, which attends from {N} to {M} in {B} parts."
            )


def _output(
    logits: Tensor,
    output: tuple[int | None, int | None],
    calls: Watch,
    inputs: Mapping[str, object],
    has_memory: bool,
) -> tuple[int, int]:
    position, token = output
    counts = next(call for call in calls if (call.kind == "cross") == has_memory).summary.counts[0]
    length = counts.shape[-1]
    if position is None:
        is_first = logits.dim() == 2 and any(call.kind == "encoder" for call in calls)
        position = 0 if is_first else int(counts.any(dim=0).nonzero().max())
    if not 0 <= position < length:
        raise SettingError(f"output must be at a position below {length}; got {position}.")
    chosen = logits[0] if logits.dim() == 2 else logits[0, position]
    if token is None:
        token = int(chosen.argmax())
    if not 0 <= token < len(chosen):
        raise SettingError(f"output must be a token below {len(chosen)}; got {token}.")
    return position, token


@dataclass(frozen=True, slots=True, eq=False)
class _HideOne(AttentionChange):
    """Keeps one position of each batch row from everyone's attention."""

    positions: Tensor

    def mask(self, call: EditedCall) -> Mask | None:
        keys = torch.arange(call.keys.start, call.keys.stop, device=call.device)
        return dense((keys != self.positions[:, None])[:, None, None, :])


@torch.no_grad()
def _log_probs_without(
    model: nn.Module,
    inputs: Mapping[str, object],
    log_prob: Callable[[object], Tensor],
    positions: Tensor,
    kinds: Sequence[str],
    replacement: tuple[str, int] | None,
    rows: int,
) -> Tensor:
    """Log-probability of the output without each token."""
    log_probs = []
    for chunk in torch.split(positions, rows):
        batch = repeated(inputs, len(chunk))
        if replacement is None:
            with edit(model) as edits:
                for kind in kinds:
                    edits.change(_HideOne(chunk), kind=kind)
                log_probs.append(log_prob(model(**batch)))
        else:
            name, token = replacement
            ids = batch[name]
            assert isinstance(ids, Tensor)
            ids = ids.clone()
            ids[torch.arange(len(chunk)), chunk] = token
            log_probs.append(log_prob(model(**{**batch, name: ids})))
    return torch.cat(log_probs)


def _replacement(
    model: nn.Module, inputs: Mapping[str, object], length: int, replacement: int | None
) -> tuple[str, int] | None:
    """Name of the input's tokens, and the token to put in place of each."""
    if replacement is None:
        return None
    name = ids_of(model, inputs, length)
    if name is None:
        raise SettingError(
            f"replacement must be left out where no input is of token ids, (1, {length}); "
            f"got inputs {', '.join(inputs)}."
        )
    return name, replacement


def attention_of(calls: Watch, position: int, has_memory: bool) -> Float[Tensor, " M"]:
    """Return the attention of the output's position: the mean over layers and heads.

    Of all layers that attend from there: a pooling looks from one position only.
    """
    rows = [
        calls.rows(call.layer, [position], call.kind, name=call.name)[0].flatten(0, -2).mean(dim=0)
        for call in calls
        if (call.kind == "cross") == has_memory and position < call.summary.shape[-2]
    ]
    return torch.stack(rows).mean(dim=0)
