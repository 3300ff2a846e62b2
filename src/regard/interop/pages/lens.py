"""Predictions of every layer and the loss of every token: a model's head on its blocks' states."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.errors import SettingError
from regard.interop.attribution.attribute import ExplainedText
from regard.interop.attribution.faithfulness import logits_of
from regard.interop.interventions.patching import BLOCK
from regard.interop.modules.hooks import hooked, returning
from regard.interop.record import Watched
from regard.viewer import Lens, pack, pack_integers

_POSITIONS = 128  # whose predictions by layer are kept at most, the last of a text
_PRODUCTS = 10**11  # of the output matrix with states, for all layers together
_ROWS = 128  # states whose logits are computed at once
_TOP = 5


class Readout:
    """Logits and losses that a model computes from any states after its last block."""

    # The model itself is called, its blocks replaced: so norms, scales and caps of the head are its
    # own, whatever the architecture. Tokens are predicted at the positions of the input ``name``.

    def __init__(self, text: ExplainedText, name: str) -> None:
        self._text, self._name = text, name
        states: dict[str, Tensor] = {}
        sizes: dict[str, int] = {}
        whole: dict[str, Tensor] = {}
        calls: list[Watched] = []

        def note(module: nn.Module, args: object, options: object, output: object) -> None:
            name = numbered[module]
            first = output[0] if isinstance(output, tuple) and output else output
            if isinstance(first, Tensor) and first.dim() == 3 and len(first) == 1:
                states[name] = first[0, -_POSITIONS:].clone()
                sizes[name] = len(output) if isinstance(output, tuple) else 0
                whole.clear()  # but of the last
                whole[name] = first[0]

        modules = text.body.named_modules()
        numbered = {module: name for name, module in modules if name.rpartition(".")[2].isdecimal()}
        with hooked(numbered, after=note):
            with suppress(SettingError):  # it attends to nothing
                calls = list(text.seen)
            if not states:  # that pass was made before
                text.body(**text.inputs)
        kind = "decoder" if any(call.kind == "decoder" for call in calls) else "encoder"
        blocks = (BLOCK.match(call.name) for call in calls if call.kind == kind)
        stacks = [block.group().rpartition(".")[0] for block in blocks if block is not None][:1]
        named = [block for block in states if block.rpartition(".")[0] in stacks]
        named.sort(key=lambda block: int(block.rpartition(".")[2]))
        self._blocks = [(text.body.get_submodule(block), sizes[block]) for block in named]
        self.layers = [states[block] for block in named]  # (P, C) each, the last positions
        self.states = whole.get(named[-1]) if named else None  # (N, C) after the last block
        with suppress(Exception):  # of blocks that do more than hand states on
            self.logits(self.layers[-1][-1:])
            return
        self.states = None

    @torch.no_grad()
    def logits(self, states: Float[Tensor, "P C"]) -> Float[Tensor, "P V"]:
        """Return the logits that follow from states after the last block."""
        ids = self._text.inputs[self._name]
        assert isinstance(ids, Tensor)
        with ExitStack() as replaced:
            for module, size in self._blocks:
                output = (states[None], *[None] * (size - 1)) if size else states[None]
                replaced.enter_context(returning(module, output))
            inputs = {**self._text.inputs, self._name: ids[:, : len(states)]}
            return logits_of(self._text.model, self._text.model(**inputs))[0].float()

    def lens(
        self, name: Callable[[int], str], ahead: int, positions: Sequence[int] | None = None
    ) -> Lens | None:
        """The likeliest tokens of each layer at the last positions, or at some; or None."""
        if self.states is None or (
            positions is not None and min(positions, default=-1) < self._first
        ):
            return None
        size = self.logits(self.layers[-1][-1:]).shape[-1]
        cost = len(self.layers) * size * self.states.shape[-1]
        count = min(len(self.layers[0]), max(1, _PRODUCTS // cost))
        chosen: slice | list[int] = slice(-count, None)
        if positions is not None:
            chosen = [position - self._first for position in positions]
        top = [
            self.logits(states[chosen]).softmax(dim=-1).topk(min(_TOP, size), dim=-1)
            for states in self.layers
        ]
        indices = torch.stack([best.indices for best in top])
        ids, numbers = torch.unique(indices, return_inverse=True)
        chances = torch.stack([best.values for best in top])
        return Lens(
            words=tuple(map(name, ids.tolist())),
            tokens=pack_integers(numbers.cpu().numpy()),
            probabilities=pack(chances.cpu().numpy(), bits=16, scale="log"),
            first=len(self.states) - count if positions is None else 0,
            ahead=ahead,
        )

    @property
    def _first(self) -> int:
        """Position of the first of the layers' states."""
        return 0 if self.states is None else len(self.states) - len(self.layers[0])

    def surprise(self, next_ids: Sequence[int]) -> list[float]:
        """Return −log p of a token after each of the first positions, in nats."""
        costs: list[float] = []
        for start in range(0, len(next_ids), _ROWS):
            ids = list(next_ids[start : start + _ROWS])
            if self.states is not None:
                logits = self.logits(self.states[start : start + len(ids)])
            else:
                logits = logits_of(self._text.model, self._text.answer)[0, start:].float()
            costs += (-logits.log_softmax(dim=-1)[range(len(ids)), ids]).tolist()
        return costs
