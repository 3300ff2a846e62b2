"""Where a model's input becomes vectors, one per place: found by what is called in a forward.

A table may be shared and be called by another name than the model has for it, and pixels or sounds
have no table; so nothing is asked by name.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.errors import SettingError
from regard.interop.places import Arguments, Options


def gradient_times_input(
    model: nn.Module,
    inputs: Mapping[str, object],
    length: int,
    answer: Callable[[object], Float[Tensor, "..."]],
    *,
    attentions: Collection[str] = (),
) -> Float[Tensor, " M"]:
    """The gradient of an answer times the vectors of the input, of each of its places.

    Of token ids, the vectors are what every table gives that is looked up with them; of pixels,
    sounds or vectors, the first with one for each place, as wide as what attends, that all of the
    input goes through.

    Args:
        model: Called once, or a few times.
        inputs: What it is called with, by name.
        length: M, the places of the input, as its attention has them.
        answer: Of what the model gives, the number to explain.
        attentions: The names of the modules that attend.

    Raises:
        SettingError: No such vectors are met, or the input reaches the answer past them too.
    """
    given = dict(inputs)
    floats = {name: each.detach().requires_grad_() for name, each in _floats(inputs).items()}
    ids = ids_of(model, inputs, length)
    looked_up = None
    if ids is not None and not floats:
        tokens = inputs[ids]
        assert isinstance(tokens, Tensor)
        given[ids] = looked_up = tokens.clone()  # the decoder may be given the same
    with _frozen(model), torch.enable_grad():
        # Not the leaves themselves: some models write into what they are given.
        given |= {name: leaf.clone() for name, leaf in floats.items()}
        for taker in _takers(model, inputs, length, attentions, looked_up):
            with taker.following(model):
                found = answer(model(**given))
            if taker.leaves:
                return _products(model, found, taker.leaves, list(floats.values()))
    raise SettingError(
        f"model must make one vector of each place of its input, (1, {length}, C); got "
        f"{type(model).__name__}, none of whose modules gives or is given so many."
    )


def ids_of(model: nn.Module, inputs: Mapping[str, object], length: int) -> str | None:
    """The name of the input's tokens: whole numbers of that length, the model's main input first.

    Example:
        >>> ids_of(nn.Module(), {"image": torch.zeros(1, 5), "text": torch.tensor([[1, 2, 3]])}, 3)
        'text'
    """
    main = getattr(model, "main_input_name", None)
    for name in sorted(inputs, key=lambda name: name != main):
        tensor = inputs[name]
        if not isinstance(tensor, Tensor) or tensor.dtype not in (torch.int64, torch.int32):
            continue
        if tensor.shape == (1, length):
            return name
    return None


def _takers(
    model: nn.Module,
    inputs: Mapping[str, object],
    length: int,
    attentions: Collection[str],
    ids: Tensor | None,
) -> "Iterator[_Taker]":
    """The ways to the vectors, in the order in which they are to be tried."""
    if ids is not None:
        yield _LookedUp(ids)
    width = _width(model, inputs, length, attentions)
    yield _First(length, width, depends=bool(_floats(inputs)))


@torch.no_grad()
def _width(
    model: nn.Module, inputs: Mapping[str, object], length: int, attentions: Collection[str]
) -> int | None:
    """How wide the states are that attend first; None where no module is given them."""
    widths: list[int] = []

    def note(module: nn.Module, args: Arguments, options: Options) -> None:
        given = (each for each in _tensors(args, options) if _has_places(each, length))
        widths.extend(each.shape[-1] for each in given)

    handles = [
        model.get_submodule(name).register_forward_pre_hook(note, with_kwargs=True)
        for name in attentions
    ]
    try:
        model(**inputs)
    finally:
        for handle in handles:
            handle.remove()
    return widths[0] if widths else None


def _has_places(tensor: Tensor, length: int) -> bool:
    return tensor.dim() == 3 and tensor.shape[:2] == (1, length) and tensor.is_floating_point()


def _floats(inputs: Mapping[str, object]) -> dict[str, Tensor]:
    """Inputs that are no tokens: pixels, sounds, vectors."""
    return {
        name: each
        for name, each in inputs.items()
        if isinstance(each, Tensor) and each.is_floating_point() and "mask" not in name
    }


class _Taker:
    """Takes vectors out of a model's graph as they come by, so that gradients end at them."""

    def __init__(self) -> None:
        self.leaves: list[Tensor] = []

    @contextmanager
    def following(self, model: nn.Module) -> Iterator[None]:
        """Look at what every module is given and gives, inside the block."""
        handles = []
        try:
            for module in model.modules():
                handles.append(module.register_forward_pre_hook(self.before, with_kwargs=True))
                handles.append(module.register_forward_hook(self.after, with_kwargs=True))
            yield
        finally:
            for handle in handles:
                handle.remove()

    def before(
        self, module: nn.Module, args: Arguments, options: Options
    ) -> tuple[Arguments, Options] | None:
        """Replacement of the module's input; None leaves it."""
        return None

    def after(
        self,
        module: nn.Module,
        args: Arguments,
        options: Options,
        output: object,
    ) -> object:
        """Replacement of the module's output; None leaves it."""
        return None

    def take(self, vectors: Tensor) -> Tensor:
        """Copy of the input that retains its gradient."""
        self.leaves.append(vectors.detach().requires_grad_())
        return self.leaves[-1].clone()


class _LookedUp(_Taker):
    """All that is looked up with these very ids."""

    def __init__(self, ids: Tensor) -> None:
        super().__init__()
        self._ids = ids

    def after(
        self,
        module: nn.Module,
        args: Arguments,
        options: Options,
        output: object,
    ) -> object:
        """The vectors, taken, where the module is a table that was given the ids."""
        if any(True for _ in module.children()) or not isinstance(output, Tensor):
            return None
        is_of_ids = any(
            each.data_ptr() == self._ids.data_ptr() and output.shape[:-1] == each.shape
            for each in _tensors(args, options)
        )
        return self.take(output) if is_of_ids and output.is_floating_point() else None


class _First(_Taker):
    """The first tensor with a vector for each place.

    Args:
        length: How many places.
        width: How wide it must be; None is any.
        depends: Whether it must depend on what gradients are recorded of.
    """

    def __init__(self, length: int, width: int | None, *, depends: bool) -> None:
        super().__init__()
        self._length, self._width, self._depends = length, width, depends

    def before(
        self, module: nn.Module, args: Arguments, options: Options
    ) -> tuple[Arguments, Options] | None:
        """The vectors, taken, wherever the module is given them."""
        old = next((each for each in _tensors(args, options) if self._is_it(each)), None)
        if old is None:
            return None
        new = self.take(old)
        return (
            tuple(new if each is old else each for each in args),
            {name: new if each is old else each for name, each in options.items()},
        )

    def after(
        self,
        module: nn.Module,
        args: Arguments,
        options: Options,
        output: object,
    ) -> object:
        """The vectors, taken, where they are all that the module gives."""
        return self.take(output) if isinstance(output, Tensor) and self._is_it(output) else None

    def _is_it(self, tensor: Tensor) -> bool:
        return (
            not self.leaves
            and _has_places(tensor, self._length)
            and self._width in (None, tensor.shape[-1])
            and (tensor.requires_grad or not self._depends)
        )


def _tensors(args: Arguments, options: Mapping[str, object]) -> Iterator[Tensor]:
    return (each for each in (*args, *options.values()) if isinstance(each, Tensor))


@contextmanager
def _frozen(model: nn.Module) -> Iterator[None]:
    """A gradient flows through what depends on the input, and to no parameter."""
    learned = [each for each in model.parameters() if each.requires_grad]
    try:
        for each in learned:
            each.requires_grad_(False)
        yield
    finally:
        for each in learned:
            each.requires_grad_()


def _products(
    model: nn.Module, answer: Tensor, leaves: Iterable[Tensor], inputs: list[Tensor]
) -> Float[Tensor, " M"]:
    """Gradient times vector, summed over all vectors of a place."""
    leaves = list(leaves)
    if not answer.requires_grad:
        raise SettingError(
            "model must have a gradient from its logits to its input; got none of "
            f"{type(model).__name__}."
        )
    slopes = torch.autograd.grad(
        answer.sum(), [*leaves, *inputs], allow_unused=True, materialize_grads=True
    )
    if any(bool(slope.any()) for slope in slopes[len(leaves) :]):
        raise SettingError(
            "model must read its input through one vector of each place; got "
            f"{type(model).__name__}, which its input reaches past them too."
        )
    products = [
        (slope * leaf.detach()).sum(dim=-1).flatten()
        for slope, leaf in zip(slopes, leaves, strict=False)
    ]
    return torch.stack(products).sum(dim=0)
