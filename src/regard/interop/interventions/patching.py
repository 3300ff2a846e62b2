"""Parts of one run of a model put into another run: which of them carry the difference."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.checks import check_count, choose
from regard.errors import SettingError, ShapeError
from regard.interop.attribution.attribute import output_of
from regard.interop.attribution.input_vectors import Output, named_inputs, repeated
from regard.interop.interventions.changes import (
    AttentionChange,
    EditedCall,
    Numbers,
    Replace,
    numbers_of,
)
from regard.interop.interventions.edit import Edits, edit

if TYPE_CHECKING:
    from regard.viewer import NotebookPage

Site = tuple[str, int]  # kind and layer

_OF_ATTENTION = ("heads", "queries", "keys", "values")
_OF_MODULES = ("residual", "mlp")
PARTS = (*_OF_ATTENTION, *_OF_MODULES)
# The block that an attention is in, and names of its feed-forward part in it.
BLOCK = re.compile(r"^(?:.*?\.)?\d+(?=\.|$)")
_FEED_FORWARD = (
    re.compile(r"(^|\.)ffn_output$"),
    re.compile(r"(^|\.)(mlp|ffn|feed_?forward|feed|DenseReluDense)$", re.IGNORECASE),
    re.compile(r"^output\.dense$"),
    re.compile(r"^(fc2|linear2)$"),
)


@dataclass(frozen=True, slots=True, eq=False)
class Activations:
    """Parts of a run of a model; ``activations`` returns it.

    Attributes:
        parts: By part, kind and layer: "heads" (B, H, N, E), the mixed values; "queries",
            "keys" and "values", as heads match and mix them; "residual" and "mlp" (B, N, C), the
            output of a block, and of its feed-forward part.
        names: The name of each attention in the model.
        output: Output of the model.
    """

    parts: dict[tuple[str, str, int], Tensor]
    names: dict[Site, str]
    output: object = None

    def part(self, what: str, site: Site) -> Tensor:
        """Return a part; SettingError where the run has none."""
        found = self.parts.get((what, *site))
        if found is None:
            there = sorted({" ".join(map(str, key)) for key in self.parts})
            raise SettingError(
                f"source must hold {what} of {site[0]} {site[1]}; got {', '.join(there)}."
            )
        return found

    def put_into(
        self,
        edits: Edits,
        what: str,
        *,
        layer: Numbers = None,
        head: Numbers = None,
        position: Numbers = None,
        kind: str | None = None,
    ) -> None:
        """Put parts of this run into runs inside a block of ``edit``.

        Args:
            edits: The edits of the block; later ones go over earlier ones.
            what: "heads", "queries", "keys", "values", "residual" or "mlp".
            layer: Which layers; None is all.
            head: Which heads (of keys and values, those that they have); None is all.
            position: Positions of queries, or of keys and values; None is all.
            kind: "encoder", "decoder" or "cross"; None is all.

        Raises:
            SettingError: There is no such part.
            ShapeError: The run inside the block is of another length.

        Example:
            >>> from regard.interop import edit, use
            >>> layer = nn.TransformerEncoderLayer(8, 2, batch_first=True)
            >>> model = use(nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)).eval()
            >>> source = activations(model, {"src": torch.randn(1, 5, 8)})
            >>> with torch.no_grad(), edit(model) as edits:
            ...     source.put_into(edits, "residual", layer=1)
            ...     patched = model(torch.randn(1, 5, 8))
            >>> torch.allclose(patched, source.output)
            True
        """
        choose("what", what, dict.fromkeys(PARTS))
        if what in _OF_ATTENTION:
            edits.change(Replace(what, partial(_of_run, self, what, head, position)), layer, kind)
            return
        if head is not None:
            raise SettingError(f"head must be None for {what}; got {head!r}.")
        for site, module in modules_of(edits.model, what, self.names).items():
            if kind in (None, site[0]) and numbers_of("layer", layer, site[1], 1):
                edits.change_module(module, partial(_at, self.part(what, site), position))


@dataclass(frozen=True, slots=True, eq=False)
class PatchEffects:
    """Effects of parts of another run; ``patch`` returns it.

    Attributes:
        what: The part that was replaced.
        by: "head" or "position".
        layers: Numbers of the layers, the rows.
        values: (layers, heads or positions) The output with that part replaced.
        before: The output of the run without any.
        source: The output of the other run.

    Example:
        >>> effects = PatchEffects("heads", "head", (0, 1), torch.tensor([[1.0, 2.0], [3.0, 1.0]]),
        ...     before=1.0, source=3.0)
        >>> print(effects)
        layer  head 0  head 1
            0    0.00    0.50
            1    1.00    0.00
    """

    what: str
    by: str
    layers: tuple[int, ...]
    values: Float[Tensor, "L K"]
    before: float
    source: float

    @property
    def effects(self) -> Float[Tensor, "L K"]:
        """``(values − before) / (source − before)``: 1 where the part carries all of it."""
        return (self.values - self.before) / (self.source - self.before)

    def page(self) -> "NotebookPage":
        """Effects as a page, up to 1: those towards the other run, and those away from it.

        Rows are layers, columns heads or positions.
        """
        from regard.viewer import show

        return show(
            torch.stack([self.effects, -self.effects]).clamp(0, 1),
            names=["towards the other run", "away from it"],
            title=f"Effects of {self.what} from another run",
            keys=[f"{self.by} {n}" for n in range(self.values.shape[1])],
            queries=[f"layer {layer}" for layer in self.layers],
        )

    def __str__(self) -> str:
        names = [f"{self.by} {n}" for n in range(self.values.shape[1])]
        lines = ["layer  " + "  ".join(names)]
        for layer, row in zip(self.layers, self.effects.tolist(), strict=True):
            cells = [f"{effect:{len(name)}.2f}" for name, effect in zip(names, row, strict=True)]
            lines.append(f"{layer:5}  " + "  ".join(cells))
        return "\n".join(lines)


@torch.no_grad()
def activations(
    model: nn.Module, inputs: Mapping[str, object] | Tensor, *, modules: bool = True
) -> Activations:
    """Run a model and keep the outputs of its heads and blocks.

    Args:
        model: One that ``edit`` can reach, in evaluation mode.
        inputs: Inputs by name, or the first argument.
        modules: Whether "residual" and "mlp" are kept too, for which the model runs twice.

    Raises:
        SettingError: The attention of the model cannot be reached.

    Example:
        >>> from regard.interop import use
        >>> model = use(nn.TransformerEncoderLayer(8, 2, batch_first=True)).eval()
        >>> run = activations(model, torch.randn(1, 5, 8), modules=False)
        >>> run.part("heads", ("encoder", 0)).shape  # (B, H, N, E)
        torch.Size([1, 2, 5, 4])
    """
    inputs = named_inputs(model, inputs)
    stored = Activations({}, {})
    with edit(model) as edits:
        edits.change(_Note(stored))
        stored = replace(stored, output=model(**inputs))
    if modules:
        with edit(model) as edits:
            for part in _OF_MODULES:
                for site, module in modules_of(model, part, stored.names, is_needed=False).items():
                    edits.change_module(module, partial(_keep, stored, (part, *site)))
            model(**inputs)
    return stored


@torch.no_grad()
def patch(
    model: nn.Module,
    inputs: Mapping[str, object] | Tensor,
    source: Mapping[str, object] | Tensor,
    *,
    target: int | Output | None = None,
    against: int | None = None,
    position: int | None = None,
    what: str = "heads",
    by: str = "head",
    kind: str | None = None,
    rows: int = 64,
) -> PatchEffects:
    """Effects of each head, or position, of each layer: the output with it taken from another run.

    Activation patching (Vig et al., 2020, https://arxiv.org/abs/2004.12265; Meng et al., 2022,
    https://arxiv.org/abs/2202.05262): every cell of layers × heads, or layers × positions, is one
    run of ``inputs`` in which that one part is the part of the run of ``source``. Runs are rows of
    batches. For paths, put parts by hand: ``activations`` and ``Activations.put_into``.

    Args:
        model: One that ``edit`` can reach, in evaluation mode.
        inputs: The run that is changed, of one text: by name, or the first argument.
        source: The other run, of as many tokens.
        target: Token or class whose logit is the output; None is the likeliest of ``source``; or a
            function of the model's output that gives (B,) numbers.
        against: A token or class whose logit is subtracted.
        position: Position in the output; None is the last.
        what: "heads", "queries", "keys", "values", "residual" or "mlp".
        by: "head", at all positions, or "position", of all heads.
        kind: "encoder", "decoder" or "cross"; None where the model has one only.
        rows: Runs of a batch.

    Raises:
        SettingError: The model cannot be reached, or has no such part or output.
        ShapeError: The two runs are of different lengths.

    Example:
        >>> from regard.interop import use
        >>> layer = nn.TransformerEncoderLayer(8, 2, batch_first=True)
        >>> body = use(nn.TransformerEncoder(layer, 2, enable_nested_tensor=False))
        >>> model = nn.Sequential(nn.Embedding(9, 8), body).eval()
        >>> one, other = torch.tensor([[1, 2, 3]]), torch.tensor([[1, 5, 3]])
        >>> patch(model, one, other, what="residual", by="position").effects[1, 2]
        tensor(1.)
    """
    choose("what", what, dict.fromkeys(PARTS))
    choose("by", by, dict.fromkeys(("head", "position")))
    check_count("rows", rows)
    if by == "head" and what in _OF_MODULES:
        raise SettingError(f"by must be 'position' for {what}; got 'head'.")
    inputs, source = named_inputs(model, inputs), named_inputs(model, source)
    source_run = activations(model, source, modules=what in _OF_MODULES)
    output, _ = output_of(source_run.output, model, target, against, position)
    part_kind = "decoder" if what in _OF_MODULES and kind == "cross" else kind
    sites = sorted(
        (k, n) for part, k, n in source_run.parts if part == what and part_kind in (None, k)
    )
    if len({site_kind for site_kind, _ in sites}) != 1:
        kinds = sorted({site_kind for part, site_kind, _ in source_run.parts if part == what})
        raise SettingError(f"kind must be one of {', '.join(kinds)}; got {kind!r}.")
    parts = [source_run.part(what, site) for site in sites]
    count = parts[0].shape[-3 if by == "head" else -2]
    cells = [(n, index) for n in range(len(sites)) for index in range(count)]
    values = []
    for start in range(0, len(cells), rows):
        chunk = cells[start : start + rows]
        batch = repeated(inputs, len(chunk))
        with edit(model) as edits:
            for n in {n for n, _ in chunk}:
                chosen = [(row, index) for row, (m, index) in enumerate(chunk) if m == n]
                of_rows, positions = ([pair[side] for pair in chosen] for side in (0, 1))
                put = partial(_of_rows, parts[n], by, of_rows, positions)
                kind_of, layer = sites[n]
                if what in _OF_ATTENTION:
                    edits.change(Replace(what, put), layer, kind_of)
                else:
                    module = modules_of(model, what, source_run.names)[kind_of, layer]
                    edits.change_module(module, put)
            values.append(output(model(**batch)).float())
    before = float(output(model(**inputs)))
    grid = torch.cat(values).reshape(len(sites), count)
    layers = tuple(layer for _, layer in sites)
    return PatchEffects(what, by, layers, grid, before, float(output(source_run.output)))


@dataclass(frozen=True, slots=True, eq=False)
class _Note(AttentionChange):
    """Keeps the parts of attention."""

    kept: Activations

    def change(self, part: str, given: Tensor, call: EditedCall) -> Tensor:
        self.kept.names[call.site] = call.name
        return _keep(self.kept, (part, *call.site), given)

    def finish(self, out: Tensor, value: Tensor, call: EditedCall) -> Tensor:
        if call.has_output:
            _keep(self.kept, ("values", *call.site), value)
            _keep(self.kept, ("heads", *call.site), out)
        return out


def _of_run(
    source: Activations,
    part: str,
    head: Numbers,
    position: Numbers,
    tensor: Tensor,
    call: EditedCall,
) -> Tensor:
    """Put heads and positions of another run into a part of attention, (B, H, N, D)."""
    replacement = source.part(part, call.site)
    _check_shapes(replacement, tensor, part)
    span = call.queries if part in ("heads", "queries") else call.keys
    positions = numbers_of("position", position, span.start, len(span))
    heads = torch.tensor(numbers_of("head", head, 0, tensor.shape[-3]))
    if not len(heads):
        raise SettingError(
            f"head must be below {tensor.shape[-3]}, the {part} of {call.name}; got {head!r}."
        )
    tensor = tensor.clone()
    tensor[:, heads[:, None], positions] = replacement.to(tensor)[:, heads[:, None], positions]
    return tensor


def _of_rows(
    replacement: Tensor,
    by: str,
    rows: list[int],
    positions: list[int],
    tensor: Tensor,
    _: object = None,
) -> Tensor:
    """Put a head, or a position, of another run into each of some batch rows."""
    _check_shapes(replacement, tensor, by)
    tensor, replacement = tensor.clone(), replacement.to(tensor)
    if tensor.dim() == 4 and by == "position":
        tensor[rows, :, positions] = replacement[0, :, positions].transpose(0, 1)
    else:
        tensor[rows, positions] = replacement[0, positions]
    return tensor


def _at(replacement: Tensor, position: Numbers, tensor: Tensor) -> Tensor:
    """Put positions of another run into the output of a module, (B, N, C)."""
    _check_shapes(replacement, tensor, "states")
    positions = numbers_of("position", position, 0, tensor.shape[1])
    tensor = tensor.clone()
    tensor[:, positions] = replacement.to(tensor)[:, positions]
    return tensor


def _keep(stored: Activations, key: tuple[str, str, int], tensor: Tensor) -> Tensor:
    stored.parts[key] = tensor.detach()
    return tensor


def _check_shapes(replacement: Tensor, tensor: Tensor, part: str) -> None:
    if replacement.shape[1:] != tensor.shape[1:] or len(replacement) not in (1, len(tensor)):
        raise ShapeError(
            f"source must be a run of as many tokens; got {part} of {tuple(replacement.shape)} for "
            f"{tuple(tensor.shape)}."
        )


def modules_of(
    model: nn.Module | None, part: str, names: Mapping[Site, str], *, is_needed: bool = True
) -> dict[Site, nn.Module]:
    """The blocks of a model, or their feed-forward parts, by the names of its attention."""
    assert model is not None
    modules: dict[Site, nn.Module] = {}
    for (kind, layer), name in names.items():
        block = BLOCK.match(name)
        if kind == "cross" or block is None:
            continue
        module: nn.Module | None = model.get_submodule(block.group())
        if part == "mlp" and module is not None:
            inner = dict(module.named_modules())
            named = (n for form in _FEED_FORWARD for n in inner if form.search(n))
            module = inner.get(next(named, "-"))
        if module is not None and module not in modules.values():
            modules[kind, layer] = module
    if is_needed and not modules:
        raise SettingError(
            f"model must have numbered blocks for {part}, each with attention in it; got "
            f"{type(model).__name__} with {', '.join(names.values())}."
        )
    return modules
