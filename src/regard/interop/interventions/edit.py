"""Acting on a whole model's attention: scale a head, hide a link, fix a row of weights."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.attention import AttentionCall
from regard.attention.observing import Edit, current_editor, editing
from regard.checks import choose
from regard.errors import SettingError
from regard.interop.interventions.changes import (
    AttentionChange,
    EditedCall,
    Fix,
    Hide,
    Numbers,
    Scale,
    numbers_of,
)
from regard.interop.modules.hooks import of_this_thread
from regard.interop.modules.inside import (
    Attending,
    ForwardTrace,
    check_seen,
    module_of,
    reached,
)
from regard.interop.modules.own_attention import AsGiven
from regard.interop.record import KINDS

AnswerT = TypeVar("AnswerT")


class Edits:
    """Edits of a model's attention; ``edit`` returns it.

    Every change is of some layers, heads and kinds of attention ("encoder", "decoder" or "cross"),
    of queries and keys by their positions in the text, from 0; None is all of them.

    Example:
        A head that is muted contributes nothing:

        >>> from regard.interop import use
        >>> layer = use(nn.MultiheadAttention(4, 2, bias=False, batch_first=True)).eval()
        >>> states = torch.ones(1, 3, 4)
        >>> with edit(layer) as edits:
        ...     edits.mute(layer=0)
        ...     before, after = edits.compare(lambda: layer(states, states, states)[0])
        >>> bool(before.any()), bool(after.any())
        (True, False)
    """

    def __init__(self, model: nn.Module | None = None) -> None:
        self.model = model
        self.hooks = ExitStack()
        self._changes: list[_Planned] = []
        self._is_on = True
        self.trace = ForwardTrace()
        self._sites: set[tuple[str, int]] = set()

    def mute(self, layer: Numbers, head: Numbers = None, *, kind: str | None = None) -> None:
        """Mute heads: the values that they mix become zeros."""
        self.scale(0.0, layer, head, kind=kind)

    def scale(
        self, factor: float, layer: Numbers, head: Numbers = None, *, kind: str | None = None
    ) -> None:
        """Multiply the values that heads mix by a factor; 0 mutes them, 1 changes nothing.

        Raises:
            SettingError: The factor is not finite.
        """
        if not math.isfinite(factor):
            raise SettingError(f"factor must be a finite number; got {factor}.")
        self.change(Scale(head, factor), layer, kind)

    def hide(
        self,
        query: Numbers,
        key: Numbers,
        *,
        layer: Numbers = None,
        head: Numbers = None,
        kind: str | None = None,
    ) -> None:
        """Hide keys from queries; their weight goes to the other keys."""
        self.change(Hide(query, key, head), layer, kind)

    def fix(
        self,
        query: Numbers,
        weights: Float[Tensor, "..."] | Sequence[float],
        *,
        layer: Numbers,
        head: Numbers = None,
        kind: str | None = None,
    ) -> None:
        """Give queries a row of weights instead of the model's own, which ``watch`` still shows.

        Args:
            query: Positions of the queries.
            weights: One per key, (K,) or (B, K); keys beyond K get none.
            layer: Which layers.
            head: Which heads.
            kind: Which kind of attention.

        Raises:
            SettingError: A weight is negative or not finite.
        """
        row = torch.as_tensor(weights)
        if row.dim() not in (1, 2) or not bool((row.isfinite() & (row >= 0)).all()):
            raise SettingError(
                f"weights must be finite numbers from 0, (K,) or (B, K); got {weights!r}."
            )
        self.change(Fix(query, row, head), layer, kind)

    def change(
        self, change: AttentionChange, layer: Numbers = None, kind: str | None = None
    ) -> None:
        """Add a change of any other sort."""
        if kind is not None:
            choose("kind", kind, dict.fromkeys(KINDS))
        self._changes.append(_Planned(change, layer, kind))

    def change_module(self, module: nn.Module, change: Callable[[Tensor], Tensor]) -> None:
        """Change the output of a module of the model, or the first of several."""

        def after(module: nn.Module, args: object, output: object) -> object:
            if not self._is_on:
                return None
            if isinstance(output, tuple):
                return (change(output[0]), *output[1:])
            return change(output) if isinstance(output, Tensor) else None

        self.hooks.enter_context(module.register_forward_hook(of_this_thread(after)))

    def clear(self) -> None:
        """Undo all changes."""
        self._changes.clear()
        self.hooks.close()

    def compare(self, run: Callable[[], AnswerT]) -> tuple[AnswerT, AnswerT]:
        """Results of ``run`` without the edits, and with them."""
        self._is_on = False
        try:
            before = run()
        finally:
            self._is_on = True
        return before, run()

    def edit(self, attention: AttentionCall) -> Edit | None:
        """Apply the edits to one call of ``attend``."""
        if not self.trace.is_ours():
            return None
        site, start, _ = self.trace.locate(attention)
        N, M = attention.query.shape[-2], attention.key.shape[-2]
        here = (site.kind, site.layer)
        self._sites.add(here)
        changes = [planned.change for planned in self._changes if planned.meets({here})]
        if not changes or not self._is_on:
            return None
        has_heads = attention.query.dim() > 3
        call = EditedCall(
            attention.query.shape[-3] if has_heads else 1,
            range(start, start + N),
            range(site.dropped, site.dropped + M),
            attention.query.device,
            site.name or f"{site.kind} {site.layer}",
            here,
            not isinstance(attention.weighting, AsGiven),
            attention,
        )
        mask = attention.mask
        for rule in (change.mask(call) for change in changes):
            if rule is not None:
                mask = rule if mask is None else mask & rule

        def finish(out: Tensor, value: Tensor) -> Tensor:
            if not has_heads:
                out, value = out.unsqueeze(-3), value.unsqueeze(-3)
            for change in changes:
                out = change.finish(out, value, call)
            return out if has_heads else out.squeeze(-3)

        def changed(part: str, tensor: Tensor) -> Tensor:
            given = tensor if has_heads else tensor.unsqueeze(-3)
            found = given
            for change in changes:
                found = change.change(part, found, call)
            return tensor if found is given else found if has_heads else found.squeeze(-3)

        has_values = any(change.changes_values() for change in changes)
        return Edit(
            mask,
            finish,
            _unless_same(changed("queries", attention.query), attention.query),
            _unless_same(changed("keys", attention.key), attention.key),
            partial(changed, "values") if has_values else None,
        )

    def finish(self, model: nn.Module) -> None:
        """Raise SettingError if a change met nothing that it could have been for, or not all."""
        if self._changes and not self._sites:
            check_seen(model, self.trace)
        if self.trace.unseen and any(
            (planned.layer, planned.kind) == (None, None) for planned in self._changes
        ):
            name, kind = next(iter(self.trace.unseen.items()))
            raise SettingError(
                "changes must be of attention that the engine computes; got one for all layers of "
                f"{type(model).__name__}, whose {name} ({kind}) computes its own. Name a layer or "
                "a kind."
            )
        for planned in self._changes:
            if self._sites and not planned.meets(self._sites):
                there = ", ".join(f"{kind} {layer}" for kind, layer in sorted(self._sites))
                raise SettingError(
                    f"layer must be one that attended: {there}; "
                    f"got layer={planned.layer!r}, kind={planned.kind!r}."
                )


@contextmanager
def edit(model: Attending) -> Iterator[Edits]:
    """Change a model's attention inside the block, and nowhere else.

    Works on whatever ``watch`` works on; ``watch`` inside the block shows the attention that is
    left. Numbers count from the beginning of a text, through the steps of a cached generation too.

    Args:
        model: Any module that attends, or a run that ``regard.load`` opened; called inside the
            block, in this thread.

    Raises:
        SettingError: The attention of the model cannot be reached, or a change named a layer or a
            head that it does not have.

    Example:
        >>> from regard.interop import use
        >>> layer = use(nn.TransformerEncoderLayer(8, 2, batch_first=True)).eval()
        >>> states = torch.randn(1, 5, 8)
        >>> with edit(layer) as edits:
        ...     edits.hide(query=0, key=slice(2, 5))
        ...     before, after = edits.compare(lambda: layer(states))
        >>> (before != after).any(dim=-1)
        tensor([[ True, False, False, False, False]])
    """
    module = module_of(model)
    edits, outer = Edits(module), current_editor()

    def edit_after_outer(call: AttentionCall) -> Edit | None:
        first = None if outer is None else outer(call)
        then = edits.edit(call if first is None else first.applied_to(call))
        return first if then is None else then if first is None else first.then(then)

    with reached(module) as edits.trace, editing(edit_after_outer), edits.hooks:
        yield edits
    edits.finish(module)


@dataclass(frozen=True, slots=True)
class _Planned:
    """A change and its target."""

    change: AttentionChange
    layer: Numbers
    kind: str | None

    def meets(self, sites: set[tuple[str, int]]) -> bool:
        return any(
            self.kind in (None, kind) and bool(numbers_of("layer", self.layer, layer, 1))
            for kind, layer in sites
        )


def _unless_same(changed: Tensor, given: Tensor) -> Tensor | None:
    return None if changed is given else changed
