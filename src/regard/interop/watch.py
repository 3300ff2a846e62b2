"""Watching a whole model: a summary of the attention of every layer, in the pass that it makes.

Nothing is kept of the N×M weights; outputs are those of the model, up to rounding.
"""

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import overload

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.attention import AttentionCall, observe, rollout
from regard.attention.inspect.head_scores import HeadScores
from regard.attention.inspect.summary import Summary
from regard.attention.observing import Edit, Mixed, current_editor, current_observer, editing
from regard.errors import SettingError
from regard.interop.modules.inside import (
    Attending,
    ForwardTrace,
    Key,
    Site,
    check_all_seen,
    check_seen,
    counted_of,
    is_in_backward,
    module_of,
    reached,
)
from regard.interop.record import KINDS, Options, Queries, Record, Watched, kinds_of, numbers_of


class Watch(Sequence[Watched]):
    """Records of a watched model, in order of passes, kinds and layers; ``watch`` returns it.

    Example:
        >>> import torch
        >>> from regard.interop import use
        >>> stack = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, batch_first=True), 2)
        >>> model = use(stack).eval()
        >>> with watch(model, keep=True) as seen:
        ...     _ = model(torch.zeros(1, 4, 8))
        >>> len(seen), [(each.kind, each.layer) for each in seen]
        (2, [('encoder', 0), ('encoder', 1)])
        >>> seen.rows(1, queries=[2]).shape  # (B, H, chosen, M)
        torch.Size([1, 2, 1, 4])
    """

    def __init__(self, model: nn.Module, options: Options) -> None:
        self._model, self._options = model, options
        self._records = dict[tuple[int, Key], Record]()
        self._layers: set[int] = set()
        self._counted: Tensor | None = None
        self.trace = ForwardTrace()
        self.mixed: Mixed | None = None  # of the call that is being made

    def __len__(self) -> int:
        return len(self._records)

    @overload
    def __getitem__(self, index: int) -> Watched: ...

    @overload
    def __getitem__(self, index: slice) -> list[Watched]: ...

    def __getitem__(self, index: int | slice) -> Watched | list[Watched]:
        """Summary of one attention, by its index."""
        if isinstance(index, slice):
            return [record.watched() for record in self._ordered()[index]]
        return self._ordered()[index].watched()

    def __repr__(self) -> str:
        lines = [f"Watch of {type(self._model).__name__}: {len(self)} attentions"]
        for call in self:
            lines.append(f"  {call.kind} {call.layer} ({call.name or '?'}): {call.summary!r}")
            lines += [f"    {note}" for note in call.notes]
        return "\n".join(lines)

    def summary(
        self,
        layer: int,
        kind: str | None = None,
        *,
        name: str | None = None,
        call: int = -1,
    ) -> Summary:
        """The summary of one layer.

        Args:
            layer: Which layer, from 0; below zero counts from the last.
            kind: "encoder", "decoder" or "cross"; None where the layer has one of them only.
            name: The module's name, where several have one number.
            call: Which pass; -1 is the last.

        Raises:
            SettingError: There is no such attention, or there are several.
        """
        return self._find(layer, kind, name, call).summary()

    def rows(
        self,
        layer: int,
        queries: Iterable[int],
        kind: str | None = None,
        *,
        name: str | None = None,
        call: int = -1,
    ) -> Float[Tensor, "*b R M"]:
        """The exact weights of chosen queries, (B, heads, chosen, M), of the call of ``summary``.

        Raises:
            SettingError: There is no such attention or query, or ``keep=True`` was not asked for.
        """
        return self._find(layer, kind, name, call).rows(list(queries))

    def rollout(
        self,
        queries: Iterable[int],
        kind: str | None = None,
        *,
        residual: float = 0.5,
        call: int = -1,
    ) -> Float[Tensor, "*batch R N"]:
        """Fractions of chosen outputs that come from each input, through all layers: ``rollout``.

        Args:
            queries: The positions of the outputs.
            kind: "encoder" or "decoder"; None where the model has one of them only.
            residual: The share that goes past the attention of a layer.
            call: Which pass; -1 is the last. Not a cached generation.

        Raises:
            SettingError: ``keep=True`` was not asked for, or the pass was not made at once.
        """
        records = [record for record in self._pass(call) if kind in (None, record.key[0])]
        kinds = {record.key[0] for record in records if record.key[0] != "cross"}
        if len(kinds) != 1:
            raise SettingError(f"kind must be one of {_listed(sorted(kinds))}; got {kind!r}.")
        calls = [record.calls() for record in records if record.key[0] in kinds]
        if any(len(steps) > 1 for steps in calls):
            raise SettingError("call must be a pass made at once; got one of several steps.")
        return rollout([steps[0] for steps in calls], list(queries), residual=residual)

    def head_scores(
        self,
        layer: int,
        tokens: Sequence[str] | Sequence[int] | Tensor,
        kind: str | None = None,
        *,
        links: Iterable[tuple[int, int]] | None = None,
        tree: Sequence[int] | None = None,
        call: int = -1,
    ) -> HeadScores:
        """Roles of the heads of a layer: ``head_scores`` of one text, with its arguments.

        Raises:
            SettingError: ``keep=True`` was not asked for, or the pass was not made at once.
            ShapeError: There is more than one text, or the tokens, links or tree do not fit.
        """
        return self._find(layer, kind, None, call).head_scores(tokens, links, tree)

    def weight_gradients(
        self,
        layer: int,
        queries: Iterable[int],
        output: Float[Tensor, ""],
        kind: str | None = None,
        *,
        name: str | None = None,
        call: int = -1,
    ) -> Float[Tensor, "*b R M"]:
        """Gradients of a number by the weights of chosen queries, (B, heads, chosen, M).

        ``∂output/∂context · valueᵀ``: exact, without the other rows of the matrix. Of hidden keys
        too, whose weight is zero. ``output`` is a number of the model's output, computed inside or
        after the block; the rest is as in ``rows``.

        Raises:
            SettingError: ``gradients=True`` was not asked for, or the model ran without gradients.

        Example:
            >>> import torch
            >>> from regard.interop import use
            >>> layer = use(nn.TransformerEncoderLayer(8, 2, batch_first=True)).eval()
            >>> with watch(layer, keep=True, gradients=True) as seen:
            ...     states = layer(torch.randn(1, 5, 8))
            >>> seen.weight_gradients(0, [4], states[0, 4, 0]).shape
            torch.Size([1, 2, 1, 5])
        """
        record = self._find(layer, kind, name, call)
        (gradient,) = torch.autograd.grad(output, record.output(), retain_graph=True)
        return record.slopes(list(queries), gradient)

    def output_gradients(self, output: Tensor) -> list[Tensor]:
        """Gradients of a number by the output of each attention."""
        outs = [record.output() for record in self._ordered()]
        gradients = torch.autograd.grad(
            output, outs, retain_graph=True, allow_unused=True, materialize_grads=True
        )
        return list(gradients)

    def slopes(
        self, layer: int, queries: list[int], gradient: Tensor, kind: str, *, name: str
    ) -> Float[Tensor, "*b R M"]:
        """Gradients by weights, from the gradient by the output of an attention."""
        return self._find(layer, kind, name, -1).slopes(queries, gradient)

    def add(self, call: AttentionCall) -> None:
        """Record a call of ``attend``."""
        # In a backward pass, a checkpoint repeats calls that were seen in the forward.
        if not self.trace.is_ours() or is_in_backward():
            return
        site, start, is_repeated = self.trace.locate(call)
        if is_repeated:
            return
        key = (site.kind, site.layer, site.name)
        self._layers.add(site.layer)
        chosen = self._options
        if chosen.layers is not None and site.layer not in chosen.layers:
            return
        if chosen.kinds is not None and site.kind not in chosen.kinds:
            return
        number = self.trace.progress.number
        record = self._records.setdefault((number, key), Record(key, number, chosen))
        record.add(call, (start, site.dropped), self._counted_of(call, site), self.mixed)

    def finish(self) -> None:
        """Raise SettingError if the block did not see all that it was to see."""
        trace, chosen = self.trace, self._options
        if not self._layers:
            check_seen(self._model, trace)
        if chosen.layers is None and chosen.kinds is None:
            check_all_seen(trace)
        if not self._layers:
            name = type(self._model).__name__
            warnings.warn(
                f"the watch saw no attention: {name} has none, or was not called in the block.",
                UserWarning,
                stacklevel=4,
            )
        unknown = set(self._options.layers or ()) - self._layers
        if unknown and self._layers:
            raise SettingError(
                f"layers must be of {_listed(sorted(self._layers))}; "
                f"got {_listed(sorted(unknown))}."
            )

    def _counted_of(self, call: AttentionCall, site: Site) -> Tensor | None:
        """Mask of queries that are no padding; those of cross-attention are its decoder's."""
        counted = counted_of(call, site)
        if site.kind == "decoder":
            self._counted = counted
        if site.kind == "cross" and self._counted is not None:
            fits = self._counted.shape == (len(call.query), call.query.shape[-2])
            return self._counted if fits else None
        return counted

    def _ordered(self) -> list[Record]:
        def order(record: Record) -> tuple[int, int, int, str]:
            kind, layer, name = record.key
            return record.call, KINDS.index(kind) if kind in KINDS else len(KINDS), layer, name

        return sorted(self._records.values(), key=order)

    def _pass(self, call: int) -> list[Record]:
        records = self._ordered()
        calls = sorted({record.call for record in records})
        if not calls:
            name = type(self._model).__name__
            raise SettingError(
                f"the block of the watch must call {name}; it saw no attention. Call it there."
            )
        if not -len(calls) <= call < len(calls):
            raise SettingError(
                f"call must be of the passes that were seen, {len(calls)}; got {call}."
            )
        return [record for record in records if record.call == calls[call]]

    def _find(self, layer: int, kind: str | None, name: str | None, call: int) -> Record:
        records = self._pass(call)
        if layer < 0:
            layer += 1 + max(record.key[1] for record in records if kind in (None, record.key[0]))
        matches = [
            record
            for record in records
            if record.key[1] == layer
            and kind in (None, record.key[0])
            and name in (None, record.key[2])
        ]
        if len(matches) == 1:
            return matches[0]
        seen = ", ".join("{} {} {}".format(*record.key) for record in matches or records)
        raise SettingError(
            f"layer must be one of those that were seen: {seen}; "
            f"got layer={layer}, kind={kind!r}, name={name!r}."
        )


@contextmanager
def watch(
    model: "Attending",
    layers: Iterable[int] | int | None = None,
    heads: Iterable[int] | int | None = None,
    *,
    kinds: Iterable[str] | str | None = None,
    top: int = 8,
    map: int = 64,  # noqa: A002  (its name everywhere else)
    queries: Queries | Mapping[str, Queries] | None = None,
    keep: bool = False,
    gradients: bool = False,
    tokens: Mapping[str, Sequence[str]] | None = None,
) -> Iterator[Watch]:
    """Summarise every attention of a model inside the block, by ``summarize``, at any length.

    Works on models of this package, on torch's after ``use``, on Hugging Face models, whose
    attention is the engine's inside the block only, and on any module that calls
    ``F.scaled_dot_product_attention`` or marks its weights (``mark_weights``): their outputs
    stay torch's, bit for bit. Where the engine attends on a CPU and no gradient is recorded, one
    pass gives output and summary. The steps of a cached generation are joined. In a beam search, a
    batch row is a position in the beam, whichever hypothesis holds it; of several texts, of which
    some end before others, it has to be one text a pass.

    Where a Hugging Face model computes its own attention, as DeBERTa, GPT-Neo, Bloom and
    Longformer do, the weights that its ``output_attentions`` gives are summarised: exact too, but
    the model then holds B × H × N × M of them for every layer, which ``notes`` says.

    Queries that are padding do not count in the weights that keys receive, where the model's mask
    says which those are.

    Args:
        model: Any module that attends, or a run that ``regard.load`` opened; called inside the
            block, in this thread.
        layers: Which layers are summarised; None is all.
        heads: Which heads; None is all.
        kinds: Of "encoder", "decoder" and "cross"; None is all.
        top: How many keys of each query are named.
        map: How many rows and columns the pooled map has at most.
        queries: Which queries count besides: a slice of their positions, or booleans (B, all
            positions); by kind, if given as ``{"decoder": …}``. None counts all but padding.
        keep: Whether queries and keys are kept, for ``rows``.
        gradients: Whether summaries and rows are parts of the graph of gradients, and gradients
            by weights can be asked for: ``weight_gradients``.
        tokens: Tokens of the keys of one text, by kind: heads are scored by them as they are seen,
            as ``head_scores`` does, and a page has that among its measures.

    Raises:
        SettingError: The attention of the model cannot be seen, or it has no such layer or head.

    Example:
        >>> import torch
        >>> from regard.interop import use
        >>> layer = use(nn.TransformerEncoderLayer(8, 2, batch_first=True)).eval()
        >>> with watch(layer) as seen:
        ...     _ = layer(torch.zeros(1, 5, 8))
        >>> seen.summary(0).effective_keys[0, 0].round(decimals=3)
        tensor([5., 5., 5., 5., 5.])
    """
    model = module_of(model)
    options = Options(
        *(numbers_of("layers", layers), numbers_of("heads", heads), kinds_of(kinds)),
        top=top,
        map=map,
        queries=queries,
        keep=keep,
        gradients=gradients,
        tokens=tokens,
    )
    watched, outer = Watch(model, options), current_observer()
    outer_editor = current_editor()

    def see(call: AttentionCall) -> None:
        if outer is not None:
            outer(call)
        with observe(lambda _: None):  # summarising attends too, which is nobody's attention
            watched.add(call)

    def note_mixed(call: AttentionCall) -> Edit:
        mixed = watched.mixed = Mixed()

        def keep_both(out: Tensor, value: Tensor) -> Tensor:
            mixed.out, mixed.value = out, value
            return out

        first = Edit(call.mask) if outer_editor is None else outer_editor(call) or Edit(call.mask)
        return first.then(Edit(first.mask, keep_both))

    with ExitStack() as block:
        watched.trace = block.enter_context(reached(model, reads=True))
        if gradients:
            block.enter_context(editing(note_mixed))
        block.enter_context(observe(see))
        yield watched
    watched.finish()


def _listed(things: Iterable[object]) -> str:
    return ", ".join(map(str, things))
