"""Input vectors of a model, one per position: found by the calls of a forward.

A table may be shared and be called by another name than the model has for it, and pixels or sounds
have no table; so nothing is looked up by name.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from inspect import signature

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.errors import SettingError, ShapeError
from regard.interop.modules.hooks import hooked
from regard.interop.modules.locations import Arguments, Options

# (B,) numbers from a model's output.
Output = Callable[[object], Float[Tensor, " B"]]


def named_inputs(model: nn.Module, inputs: Mapping[str, object] | Tensor) -> Mapping[str, object]:
    """Return inputs of one text by name; a tensor is the first argument."""
    if isinstance(inputs, Tensor):
        inputs = {next(iter(signature(model.forward).parameters)): inputs}
    for name, tensor in inputs.items():
        if isinstance(tensor, Tensor) and len(tensor) != 1:
            raise ShapeError(f"inputs must be of one text; got {name} of {len(tensor)}.")
    return inputs


def checked_inputs(model: nn.Module, inputs: Mapping[str, object] | Tensor) -> Mapping[str, object]:
    """Return inputs of one text by name, for a model that must be in evaluation mode."""
    if model.training:
        raise SettingError("model must be in evaluation mode; got training. Call model.eval().")
    return named_inputs(model, inputs)


def repeated(inputs: Mapping[str, object], rows: int) -> dict[str, object]:
    """Return inputs of one text as those of several rows."""
    return {
        name: value.expand(rows, *value.shape[1:]) if isinstance(value, Tensor) else value
        for name, value in inputs.items()
    }


def gradient_times_input(
    model: nn.Module,
    inputs: Mapping[str, object],
    length: int,
    answer: Callable[[object], Float[Tensor, "..."]],
    *,
    attentions: Collection[str] = (),
) -> Float[Tensor, " M"]:
    """Return the gradient of an answer times the input vectors, of ``length`` positions."""
    arguments = dict(inputs)
    floats = {name: value.detach().requires_grad_() for name, value in _floats(inputs).items()}
    ids = ids_of(model, inputs, length)
    with torch.enable_grad():
        # Not the leaves themselves: some models write into their inputs.
        arguments |= {name: leaf.clone() for name, leaf in floats.items()}
        if ids is not None and not floats:
            tokens = inputs[ids]
            assert isinstance(tokens, Tensor)
            arguments[ids] = tokens = tokens.clone()  # the decoder may be given the same
            leaves: list[Tensor] = []
            with lookups_taken(model, [tokens], lambda vectors: _take(vectors, leaves)):
                output = answer(model(**arguments))
            if leaves:
                return _products(model, output, leaves, [])
        width = _width(model, inputs, length, attentions)

        def is_input(tensor: Tensor) -> bool:
            return (
                _has_positions(tensor, length)
                and width in (None, tensor.shape[-1])
                and (not floats or _depends(tensor, list(floats.values())))
            )

        with _first_taken(model, is_input) as leaves:
            output = answer(model(**arguments))
        if leaves:
            return _products(model, output, leaves, list(floats.values()))
    raise SettingError(
        f"model must make one vector of each position of its input, (1, {length}, C); got "
        f"{type(model).__name__}, none of whose modules gives or is given so many."
    )


def ids_of(model: nn.Module, inputs: Mapping[str, object], length: int) -> str | None:
    """Return the name of the input's tokens: ``length`` whole numbers, the main input first."""
    main = getattr(model, "main_input_name", None)
    for name in sorted(inputs, key=lambda name: name != main):
        tensor = inputs[name]
        if not isinstance(tensor, Tensor) or tensor.dtype not in (torch.int64, torch.int32):
            continue
        if tensor.shape == (1, length):
            return name
    return None


@torch.no_grad()
def _width(
    model: nn.Module, inputs: Mapping[str, object], length: int, attentions: Collection[str]
) -> int | None:
    """Width of the states that attend first; None where no module is given them."""
    widths: list[int] = []

    def note(module: nn.Module, args: Arguments, options: Options) -> None:
        states = (tensor for tensor in _tensors(args, options) if _has_positions(tensor, length))
        widths.extend(tensor.shape[-1] for tensor in states)

    with hooked(map(model.get_submodule, attentions), before=note):
        model(**inputs)
    return widths[0] if widths else None


def _has_positions(tensor: Tensor, length: int) -> bool:
    return tensor.dim() == 3 and tensor.shape[:2] == (1, length) and tensor.is_floating_point()


def _floats(inputs: Mapping[str, object]) -> dict[str, Tensor]:
    """Inputs that are no tokens: pixels, sounds, vectors."""
    return {
        name: value
        for name, value in inputs.items()
        if isinstance(value, Tensor) and value.is_floating_point() and "mask" not in name
    }


def _take(vectors: Tensor, leaves: list[Tensor]) -> Tensor:
    """Replace vectors by a leaf of the graph, at which gradients end."""
    leaves.append(vectors.detach().requires_grad_())
    return leaves[-1].clone()


@contextmanager
def lookups_taken(
    model: nn.Module, ids: Sequence[Tensor], take: Callable[[Tensor], Tensor]
) -> Iterator[None]:
    """Replace all vectors that the model looks up for these very ids, (B, N), in a table."""

    # Ids (B, N, L) are of parts of tokens, of which a module may make one vector for each token.
    def after(module: nn.Module, args: Arguments, options: Options, output: object) -> object:
        if not isinstance(output, Tensor) or not output.is_floating_point():
            return None
        given = list(_tensors(args, options))
        is_table = not any(True for _ in module.children())
        for tokens in ids:
            is_read = is_table if tokens.dim() == 2 else len(given) == 1
            is_given = any(one.data_ptr() == tokens.data_ptr() for one in given)
            if is_read and is_given and output.shape[:-1] == tokens.shape[:2]:
                return take(output)
        return None

    with hooked(model.modules(), after=after):
        yield


@contextmanager
def _first_taken(model: nn.Module, is_input: Callable[[Tensor], bool]) -> Iterator[list[Tensor]]:
    """Take the first tensor of input vectors that a module of the model is given or returns."""
    leaves: list[Tensor] = []

    def before(
        module: nn.Module, args: Arguments, options: Options
    ) -> tuple[Arguments, Options] | None:
        old = next((tensor for tensor in _tensors(args, options) if is_input(tensor)), None)
        if old is None or leaves:
            return None
        new = _take(old, leaves)
        return (
            tuple(new if value is old else value for value in args),
            {name: new if value is old else value for name, value in options.items()},
        )

    def after(module: nn.Module, args: Arguments, options: Options, output: object) -> object:
        is_first = not leaves and isinstance(output, Tensor) and is_input(output)
        return _take(output, leaves) if is_first and isinstance(output, Tensor) else None

    with hooked(model.modules(), before=before, after=after):
        yield leaves


def _tensors(args: Arguments, options: Mapping[str, object]) -> Iterator[Tensor]:
    return (value for value in (*args, *options.values()) if isinstance(value, Tensor))


def _depends(tensor: Tensor, inputs: Sequence[Tensor]) -> bool:
    """Whether a tensor has a gradient by an input."""
    gradients = _gradients(tensor, inputs, retain_graph=True)
    return any(gradient is not None for gradient in gradients)


def _gradients(
    output: Tensor, inputs: Sequence[Tensor], *, retain_graph: bool = False
) -> Sequence[Tensor | None]:
    """The gradients of an output by inputs; None for those that it does not depend on."""
    if not output.requires_grad:
        return [None] * len(inputs)
    return torch.autograd.grad(output.sum(), inputs, retain_graph=retain_graph, allow_unused=True)


def _products(
    model: nn.Module, answer: Tensor, leaves: list[Tensor], inputs: list[Tensor]
) -> Float[Tensor, " M"]:
    """Gradient times vector, summed over all vectors of a position."""
    gradients = _slopes(model, answer, [*leaves, *inputs])
    if any(bool(gradient.any()) for gradient in gradients[len(leaves) :]):
        raise SettingError(
            "model must read its input through one vector of each position; got "
            f"{type(model).__name__}, which its input reaches past them too."
        )
    products = [
        (gradient * leaf.detach()).sum(dim=-1).flatten()
        for gradient, leaf in zip(gradients, leaves, strict=False)
    ]
    return torch.stack(products).sum(dim=0)


def _slopes(model: nn.Module, answer: Tensor, inputs: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """The gradients of an answer by inputs, one of which it depends on."""
    gradients = _gradients(answer, inputs)
    if all(gradient is None for gradient in gradients):
        raise SettingError(
            "model must have a gradient from its logits to its input; got none of "
            f"{type(model).__name__}."
        )
    return tuple(
        torch.zeros_like(tensor) if gradient is None else gradient
        for tensor, gradient in zip(inputs, gradients, strict=True)
    )


class InputVectors:
    """The vectors that a model looks up for an input, and its outputs for others."""

    def __init__(self, model: nn.Module, inputs: Mapping[str, object], name: str | None) -> None:
        self._model, self._inputs = model, dict(inputs)
        self._name = name if name is not None else _explained(model, inputs)
        explained = inputs.get(self._name)
        if not isinstance(explained, Tensor) or explained.dim() not in (2, 3):
            raise SettingError(
                "name must be of an input of token ids (1, N) or of vectors (1, N, C); got "
                f"{self._name!r} among {', '.join(inputs)}."
            )
        self._is_float = explained.is_floating_point()
        self._ids = {} if self._is_float else _ids_of_tokens(inputs, self._name)
        self.given = [explained.detach()] if self._is_float else self._looked_up(self._ids)
        if not self.given:
            raise SettingError(
                f"model must look {self._name} up in a table, such as an nn.Embedding; got "
                f"{type(model).__name__}, none of whose modules does."
            )

    @torch.no_grad()
    def _looked_up(self, ids: Mapping[str, Tensor]) -> list[Tensor]:
        looked_up: list[Tensor] = []

        def note(vectors: Tensor) -> Tensor:
            looked_up.append(vectors.detach())
            return vectors

        self._run(lambda _: torch.zeros(1), ids, 1, note)
        return looked_up

    def baseline(self, token: int | None) -> list[Tensor]:
        """Return the vectors of a token at every position, or zeros."""
        if token is None:
            return [torch.zeros_like(vectors) for vectors in self.given]
        if self._is_float:
            raise SettingError(f"baseline must be None for vectors; got {token}.")
        # A token of parts has no parts that are known.
        zeros = {name: torch.zeros_like(ids) for name, ids in self._ids.items()}
        return self._looked_up({**zeros, self._name: torch.full_like(zeros[self._name], token)})

    def outputs(
        self, number: Output, vectors: Sequence[Float[Tensor, "R N C"]]
    ) -> Float[Tensor, " R"]:
        """Return the outputs for vectors in place of the input's."""
        R = len(vectors[0])
        if self._is_float:
            return self._run(number, {self._name: vectors[0]}, R, None)
        remaining = iter(vectors)
        return self._run(number, self._ids, R, lambda _: next(remaining))

    def gradients(
        self, number: Output, vectors: Sequence[Tensor]
    ) -> tuple[tuple[Tensor, ...], Tensor]:
        """Return gradients of the outputs at these vectors, and the outputs."""
        leaves = [vector.detach().requires_grad_() for vector in vectors]
        numbers = self.outputs(number, [leaf.clone() for leaf in leaves])
        return _slopes(self._model, numbers, leaves), numbers.detach()

    def _run(
        self,
        number: Output,
        read: Mapping[str, Tensor],
        R: int,
        take: Callable[[Tensor], Tensor] | None,
    ) -> Tensor:
        arguments = repeated({**self._inputs, **read}, R)
        if take is None:
            return number(self._model(**arguments))
        copies = {name: ids.expand(R, *ids.shape[1:]).clone() for name, ids in read.items()}
        with lookups_taken(self._model, list(copies.values()), take):
            return number(self._model(**{**arguments, **copies}))


def _ids_of_tokens(inputs: Mapping[str, object], name: str) -> dict[str, Tensor]:
    """The token ids (1, N) of an input, and those of the tokens' parts (1, N, L), by name."""
    ids = inputs[name]
    assert isinstance(ids, Tensor)
    parts = {
        field: value
        for field, value in inputs.items()
        if isinstance(value, Tensor)
        and value.dtype in (torch.int64, torch.int32)
        and value.dim() == 3
        and value.shape[:2] == ids.shape
    }
    return {name: ids, **parts}


def _explained(model: nn.Module, inputs: Mapping[str, object]) -> str:
    """Name of the main input: token ids, or vectors."""
    main = getattr(model, "main_input_name", None)
    for name in sorted(inputs, key=lambda name: name != main):
        tensor = inputs[name]
        if isinstance(tensor, Tensor) and (
            (tensor.is_floating_point() and tensor.dim() == 3)
            or (tensor.dim() == 2 and ids_of(model, {name: tensor}, tensor.shape[1]))
        ):
            return name
    raise SettingError(
        "inputs must hold token ids (1, N) or vectors (1, N, C) to explain; got "
        f"{', '.join(inputs)}."
    )
