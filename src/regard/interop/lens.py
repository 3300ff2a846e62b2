"""Predictions of every layer and the loss of every token: a model's head on its blocks' states."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.interop.faithfulness import logits_of
from regard.interop.patching import BLOCK
from regard.interop.watch import Watch
from regard.viewer import Lens, pack, pack_integers

_POSITIONS = 128  # whose predictions by layer are kept at most, the last of a text
_PRODUCTS = 10**11  # of the output matrix with states, for all layers together
_ROWS = 128  # states whose logits are computed at once
_TOP = 5
# What a block returned besides its states: its length in a tuple; 0 of a tensor alone.
Block = tuple[nn.Module, int]


@dataclass(slots=True)
class BlockOutputs:
    """Outputs of a model's numbered modules in one forward."""

    states: dict[str, Tensor] = field(default_factory=dict)  # (P, C), the last positions
    sizes: dict[str, int] = field(default_factory=dict)
    last: tuple[str, Tensor] | None = None  # all positions of the module that returned last

    def note(self, name: str, module: nn.Module, args: object, output: object) -> None:
        """Keep the states that a module returns."""
        states = output[0] if isinstance(output, tuple) and output else output
        if isinstance(states, Tensor) and states.dim() == 3 and len(states) == 1:
            self.states[name] = states[0, -_POSITIONS:].detach().clone()
            self.sizes[name] = len(output) if isinstance(output, tuple) else 0
            self.last = name, states[0].detach()


@contextmanager
def block_outputs(body: nn.Module) -> Iterator[BlockOutputs]:
    """Keep the outputs of a model's numbered modules in a forward inside the block."""
    outputs = BlockOutputs()
    with ExitStack() as hooks:
        for name, module in body.named_modules():
            if name.rpartition(".")[2].isdecimal():
                hooks.enter_context(module.register_forward_hook(partial(outputs.note, name)))
        yield outputs


class Readout:
    """What a model computes after its last block, for any states.

    The model itself is called, its blocks replaced: so norms, scales and caps of the head are its
    own, whatever the architecture.

    Args:
        model: In evaluation mode, with logits as ``attribute`` has them.
        inputs: Of the forward that ``outputs`` were kept of.
        text: The name of the input of token ids at whose positions the states are.
        body: The part of the model whose modules' names ``outputs`` and ``seen`` have.
    """

    def __init__(
        self,
        model: nn.Module,
        inputs: Mapping[str, object],
        text: str,
        *,
        body: nn.Module,
        outputs: BlockOutputs,
        seen: Watch,
    ) -> None:
        self._model, self._inputs, self._text = model, inputs, text
        kinds = {each.kind for each in seen}
        kind = "decoder" if "decoder" in kinds else "encoder"
        found = (BLOCK.match(each.name) for each in seen if each.kind == kind)
        stacks = [block.group().rpartition(".")[0] for block in found if block is not None]
        known = [name for name in outputs.states if name.rpartition(".")[0] in stacks[:1]]
        known.sort(key=lambda name: int(name.rpartition(".")[2]))
        self._blocks: list[Block] = [
            (body.get_submodule(name), outputs.sizes[name]) for name in known
        ]
        self.layers = [outputs.states[name] for name in known]
        is_last = bool(known) and outputs.last is not None and outputs.last[0] == known[-1]
        self.states = outputs.last[1] if is_last and outputs.last is not None else None

    @torch.no_grad()
    def logits(self, states: Float[Tensor, "P C"]) -> Float[Tensor, "P V"]:
        """Return the logits that follow from states after the last block."""
        ids = self._inputs[self._text]
        assert isinstance(ids, Tensor)
        inputs = {**self._inputs, self._text: ids[:, : len(states)]}
        with ExitStack() as replaced:
            for module, size in self._blocks:
                output = (states[None], *[None] * (size - 1)) if size else states[None]
                replaced.enter_context(_returning(module, output))
            found = logits_of(self._model, self._model(**inputs))
        return found[0].float()

    def lens(self, name: Callable[[int], str], ahead: int) -> Lens | None:
        """Return the likeliest tokens of each layer at the last positions; None without layers.

        As many positions as take 10¹¹ multiplications, at most 128.
        """
        if self.states is None:
            return None
        size = self.logits(self.layers[-1][-1:]).shape[-1]
        cost = len(self.layers) * size * self.states.shape[-1]
        count = min(len(self.layers[0]), max(1, _PRODUCTS // cost))
        chances = [self.logits(states[-count:]).softmax(dim=-1) for states in self.layers]
        top = [each.topk(min(_TOP, size), dim=-1) for each in chances]
        ids = torch.stack([each.indices for each in top])
        known, numbers = ids.unique(return_inverse=True)
        return Lens(
            words=tuple(map(name, known.tolist())),
            tokens=pack_integers(numbers.cpu().numpy()),
            probabilities=pack(
                torch.stack([each.values for each in top]).cpu().numpy(), bits=16, scale="log"
            ),
            first=len(self.states) - count,
            ahead=ahead,
        )

    def surprise(self, next_ids: Int[Tensor, " N"]) -> list[float]:
        """Return −log p of a token after each of the first positions, in nats."""
        if self.states is None:
            return []
        costs: list[float] = []
        pairs = zip(self.states[: len(next_ids)].split(_ROWS), next_ids.split(_ROWS), strict=True)
        for states, ids in pairs:
            log_probs = self.logits(states).log_softmax(dim=-1)
            costs += (-log_probs[torch.arange(len(ids)), ids]).tolist()
        return costs


@contextmanager
def _returning(module: nn.Module, output: object) -> Iterator[None]:
    """Let a module return this instead of computing it."""
    module.forward = lambda *args, **options: output  # type: ignore[method-assign]
    try:
        yield
    finally:
        del module.forward


def rounded(values: Sequence[float | None]) -> tuple[float | None, ...]:
    """Round to four significant digits."""
    return tuple(None if value is None else float(f"{value:.4g}") for value in values)
