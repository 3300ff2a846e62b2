"""Runs of a model in which one thing alone writes to its residual stream.

A circuit of a head maps the embedding of a token alone: nothing else is added, no position, no
earlier head or feed-forward part, no bias. So each token is a text of its own, at position 0, and
norms divide by the deviation of this embedding. The output of a head or a neuron is read as the
model reads it in a text: there all scales are those that the text has.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property, partial

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.errors import SettingError
from regard.interop.attribution.faithfulness import logits_of
from regard.interop.attribution.linear_functions import LinearFunctions, StreamPart
from regard.interop.attribution.linear_run import FeedForwardChange, LinearRun, token_inputs
from regard.interop.interventions.changes import AttentionChange, EditedCall
from regard.interop.interventions.edit import edit
from regard.interop.interventions.patching import BLOCK, Site
from regard.interop.modules.hooks import hooked, returning

_ROWS = 1024  # tokens, each a text of its own, that a model reads at once


@dataclass(frozen=True, slots=True, eq=False)
class HeadInputs:
    """Queries (R, H, D), keys (R, G, D) and values (R, G, E) of an attention, of R tokens."""

    query: Tensor
    key: Tensor
    value: Tensor


class _Captured(BaseException):
    """The end of a run.

    No Exception: for these, torch goes through a module's hooks, which other threads change.
    """


class DirectPath:
    """Direct paths of a model: from the embedding of a token to a head, and from there to logits.

    Raises:
        SettingError: The parts of the model cannot be told apart.
    """

    def __init__(self, model: nn.Module, inputs: Mapping[str, object]) -> None:
        self._scales: list[Tensor] = []  # of norms and gates in the text, in order
        self._is_noting = True
        self.run = LinearRun(model, inputs, hold=self._note)
        self.logits: Tensor | None = None  # of the text
        with suppress(SettingError), self.run.mode:
            self.logits = logits_of(model, self.run.answer)
        self._is_noting, self._is_checked = False, False
        self._tokens = token_inputs(inputs)
        self._counts: dict[Site, int] = {}  # of scales before queries and keys
        self._skipped: dict[Site, list[tuple[nn.Module, int]]] = {}
        self._parameters = {id(parameter): name for name, parameter in model.named_parameters()}
        self._sites = {(name, site[1]): site for site, name in self.run.names.items()}

    def _note(self, scale: Tensor) -> Tensor:
        if self._is_noting:
            self._scales.append(scale)
        return scale

    def tokens(self, site: Site, side: str) -> tuple[str, Int[Tensor, " N"]]:
        """Name and ids of the input whose tokens are the queries, or the keys, of an attention."""
        names = list(self._tokens)
        kind, _ = site
        is_read = kind == "encoder" or (kind == "cross" and side == "key")
        name = names[0 if is_read else -1]
        return name, self._tokens[name][0]

    def vocab_size(self, site: Site, side: str) -> int:
        """Number of tokens in the table of the queries, or of the keys, of an attention."""
        name, _ = self.tokens(site, side)
        if name not in self.run.tables:
            raise SettingError(
                "model must look its tokens up in a table, as they are given to it, for a head to "
                f"be followed from them; got {type(self.run.model).__name__}."
            )
        return len(self.run.tables[name])

    def writes_logits(self, site: Site) -> bool:
        """Whether the output of an attention is read as logits directly, as an encoder's is not.

        That is of an encoder whose output a decoder reads.
        """
        has_decoder = any(kind != "encoder" for kind, _ in self.run.names)
        return self.logits is not None and not (site[0] == "encoder" and has_decoder)

    def writes_keys(self, site: Site) -> bool:
        """Whether logits are of the tokens that the keys are of."""
        tables, last = self.run.tables, list(self._tokens)[-1]
        name, _ = self.tokens(site, "key")
        if self.logits is None or last not in tables or name not in tables:
            return False
        is_same = name == last or tables[name].data_ptr() == tables[last].data_ptr()
        return is_same and self.logits.shape[-1] == len(tables[name])

    @cached_property
    def position(self) -> int:
        """The position whose state the logits of a class are made of, or the last of the text."""
        if self.logits is None or self.logits.dim() == 3:
            return self.length - 1
        with torch.enable_grad():
            reached = self.run.reached_by(self.logits.sum())
        return int(reached.argmax())

    @property
    def length(self) -> int:
        """Number of positions of the text whose logits there are."""
        return int(list(self._tokens.values())[-1].shape[1])

    def unembedding(
        self, site: Site, head: int, width: int, position: int
    ) -> Float[Tensor, "V E"] | None:
        """The map from a head's context to logits at a position; None where there is none.

        Raises:
            SettingError: It is not that of the text.
        """
        if not self.writes_logits(site):
            return None
        unit = torch.eye(width, dtype=self.run.calls[site].query.dtype)
        unit = unit.to(self.run.calls[site].query.device)
        made = self.effects(site, unit, positions=[position] * width, head=head).mT
        if not self._is_checked:
            self._check(site, head, position, made)
            self._is_checked = True
        return made

    def _check(self, site: Site, head: int, position: int, made: Float[Tensor, "V E"]) -> None:
        """Raise SettingError unless a head adds to a logit of the text as much as its map says."""
        assert self.logits is not None
        row = self.logits[0, position] if self.logits.dim() == 3 else self.logits[0]
        target = int(row.argmax())

        def number(answer: object) -> Tensor:
            logits = logits_of(self.run.model, answer)
            return logits[:, position, target] if logits.dim() == 3 else logits[:, target]

        parts, _ = self.run.output(number)
        part = StreamPart("head", *site, head)
        mixed = self.run.mixed(site)[0, head, position].to(made)
        found, wanted = float(made[target] @ mixed), parts.get(part, 0.0)
        size = float((made[target] * mixed).abs().sum())
        if abs(found - wanted) > 1e-3 * size:
            raise self._refused()

    def chunks(self, site: Site, side: str, size: int) -> Iterator[tuple[range, HeadInputs]]:
        """Go through all tokens of a table, some at a time."""
        with self._shortened(site):
            for start in range(0, size, _ROWS):
                chunk = range(start, min(size, start + _ROWS))
                yield chunk, self.of_tokens(site, side, torch.arange(chunk.start, chunk.stop))

    def effects(
        self,
        site: Site,
        vectors: Float[Tensor, "R K"],
        *,
        positions: Sequence[int],
        head: int | None = None,
    ) -> Float[Tensor, "R V"]:
        """Changes of logits by a head's context, or without one by a feed-forward part's output.

        Each row is written at its position of the text, with the scales of norms that are there.
        """
        rows = torch.as_tensor(positions, device=vectors.device)
        scales = iter(self._scales)

        def hold(computed: Tensor) -> Tensor:
            scale = next(scales, None)
            if (
                scale is None
                or scale.dim() != computed.dim()
                or scale.shape[-1] != computed.shape[-1]
            ):
                raise self._refused()
            if scale.dim() == 3:
                return scale[0, rows.clamp(max=scale.shape[1] - 1)][:, None]
            return scale if scale.dim() == 2 and len(scale) == 1 else computed

        write = _Writing(self, site, head, vectors)
        given = self._given({}, len(vectors))
        logits = self._forward(given, write, hold, None)
        return (logits[:, -1] if logits.dim() == 3 else logits).detach()

    def _refused(self) -> SettingError:
        return SettingError(
            "model must compute a text of one token as it computes others for its direct paths to "
            f"be followed; got {type(self.run.model).__name__}."
        )

    def of_tokens(
        self, site: Site, side: str, ids: Int[Tensor, " R"], *, has_biases: bool = False
    ) -> HeadInputs:
        """Compute the queries or keys of tokens, each alone; ``side`` is "query" or "key".

        Biases are left out, but with ``has_biases`` those after the last norm, which a run without
        them has counted.
        """
        name, _ = self.tokens(site, side)
        capture = _Capturing(self, site)
        self._count = 0  # of scales that were computed

        def hold(scale: Tensor) -> Tensor:
            self._count += 1
            return scale

        try:
            start = self._counts[site] if has_biases else None
            self._forward(self._given({name: ids}, len(ids)), capture, hold, start)
        except _Captured:
            if not has_biases:
                self._counts[site] = self._count
            return HeadInputs(*(tensor[:, :, 0].detach() for tensor in capture.made))
        raise self._refused()

    def _forward(
        self,
        given: Mapping[str, object],
        change: "_Silent",
        hold: Callable[[Tensor], Tensor],
        biases_from: int | None,
    ) -> Tensor:
        """Run the model with nothing but its tokens, or the outputs of ``change``."""
        model, is_writing = self.run.model, isinstance(change, _Writing)

        def add(tensor: Tensor, part: StreamPart) -> Tensor:
            is_given = part.kind == "token" and not is_writing
            is_given |= (
                part.kind == "biases" and biases_from is not None and self._count >= biases_from
            )
            return (tensor if is_given else torch.zeros_like(tensor)).detach().requires_grad_()

        tokens = list(token_inputs(given).values())
        mode = LinearFunctions(add, tokens, self._parameters, hold)
        with torch.enable_grad(), mode, edit(model) as edits:
            edits.change(change)
            for site, module in self.run.feed_forward.items():
                edits.change_module(module, FeedForwardChange(change.write, site))
            answer = model(**given)
            return logits_of(model, answer)  # where there may be norms, too

    def _given(self, ids: Mapping[str, Int[Tensor, " R"]], rows: int) -> dict[str, object]:
        """Inputs of R texts of one token."""
        given: dict[str, object] = {}
        for name, value in self.run.inputs.items():
            if not isinstance(value, Tensor):
                given[name] = value
            elif name in ids:
                given[name] = ids[name].to(value)[:, None]
            elif value.dim() == 1 and not value.is_floating_point():  # lengths
                given[name] = value.clamp(max=1).expand(rows).clone()
            elif value.dim() == 2:
                given[name] = value[:, :1].expand(rows, 1).clone()
            else:
                raise self._refused()
        return given

    @contextmanager
    def _shortened(self, site: Site) -> Iterator[None]:
        """Leave blocks out that only hand their input on, as where norms are inside residuals."""
        if site not in self._skipped:
            self._skipped[site] = self._idle_blocks(site)
        with ExitStack() as replaced:
            for module, size in self._skipped[site]:
                replaced.enter_context(returning(module, partial(_handed_on, size)))
            yield

    def _idle_blocks(self, site: Site) -> list[tuple[nn.Module, int]]:
        """Blocks whose output is their input where nothing is written, and sizes of outputs."""
        model = self.run.model
        matches = {attention: BLOCK.match(name) for attention, name in self.run.names.items()}
        blocks = {
            attention: match.group() for attention, match in matches.items() if match is not None
        }
        if site not in blocks:
            return []
        idle: dict[nn.Module, int] = {}

        def note(module: nn.Module, args: object, options: object, out: object) -> None:
            given = _first_of(args, options)
            first = out[0] if isinstance(out, tuple) and out else out
            if isinstance(first, Tensor) and given is not None and torch.equal(first, given):
                idle[module] = len(out) if isinstance(out, tuple) else 0

        side = "key" if site[0] == "cross" else "query"
        ids = self.tokens(site, side)[1]
        remaining = set(blocks.values()) - {blocks[site]}
        with hooked(map(model.get_submodule, remaining), after=note):
            whole = self.of_tokens(site, side, ids[:2])
        found = list(idle.items())
        with ExitStack() as replaced, suppress(Exception):  # of blocks that do more
            for module, size in found:
                replaced.enter_context(returning(module, partial(_handed_on, size)))
            short = self.of_tokens(site, side, ids[:2])
            if torch.equal(short.query, whole.query) and torch.equal(short.key, whole.key):
                return found
        return []


def _first_of(args: object, options: object) -> Tensor | None:
    """The states that a block is given."""
    values = [*(args if isinstance(args, tuple) else ())]
    values += [*(options.values() if isinstance(options, dict) else ())]
    return next((value for value in values if isinstance(value, Tensor)), None)


def _handed_on(size: int, *args: object, **options: object) -> object:
    states = _first_of(args, options)
    return (states, *[None] * (size - 1)) if size else states


class _Silent(AttentionChange):
    """Heads and feed-forward parts that write nothing."""

    def __init__(self, path: DirectPath, site: Site) -> None:
        self.path, self.site = path, site

    def is_at(self, call: EditedCall) -> bool:
        """Whether a call is of the attention that is followed, by the name of its module."""
        return self.path._sites.get((call.name, call.site[1])) == self.site

    def finish(self, out: Tensor, value: Tensor, call: EditedCall) -> Tensor:
        return torch.zeros_like(out).requires_grad_()

    def write(self, output: Tensor, site: Site) -> Tensor:
        """Output that a feed-forward part writes in place of its own."""
        return torch.zeros_like(output).requires_grad_()


class _Capturing(_Silent):
    """Ends a run at an attention, of which it has queries, keys and values."""

    def __init__(self, path: DirectPath, site: Site) -> None:
        super().__init__(path, site)
        self.made: list[Tensor] = []

    def changes_values(self) -> bool:
        return True

    def change(self, part: str, given: Tensor, call: EditedCall) -> Tensor:
        if self.is_at(call):
            self.made.append(given)
            if len(self.made) == 3:
                raise _Captured
        return given


class _Writing(_Silent):
    """Writes vectors (R, K) in place of a head's context, or of a feed-forward part's output."""

    def __init__(
        self, path: DirectPath, site: Site, head: int | None, vectors: Float[Tensor, "R K"]
    ) -> None:
        super().__init__(path, site)
        self.head, self.vectors, self.has_written = head, vectors, False

    def finish(self, out: Tensor, value: Tensor, call: EditedCall) -> Tensor:
        silent = torch.zeros_like(out)
        if self.head is not None and self.is_at(call):
            silent[:, self.head, 0] = self.vectors.to(out)
        return silent.requires_grad_()

    def write(self, output: Tensor, site: Site) -> Tensor:
        silent = torch.zeros_like(output)
        if self.head is None and site == self.site:
            silent.view_as(self.vectors).copy_(self.vectors)  # (R, 1, K); of some models (R, K)
        return silent.requires_grad_()
