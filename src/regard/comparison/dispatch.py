"""What a call really does, counted as it is dispatched: products, steps that wait, bytes held.

A dispatch mode sees every kernel that torch starts, whoever asked for it. For each it counts the
multiply-adds of its matrix products, and notes after how many others it could start at the
earliest. Another follows the tensors that kernels make until they are let go.
"""

import weakref
from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from torch import Argument, Tensor
from torch._ops import OpOverload, OpOverloadPacket
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode_stack
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry

aten = torch.ops.aten
# What they write to they do not read.
_OVERWRITING = (aten.copy_, aten.fill_, aten.zero_)
# What takes memory and writes nothing is no kernel; what takes a shape alone waits for no numbers.
_EMPTY = (aten.empty, aten.empty_like, aten.empty_strided, aten.new_empty, aten.new_empty_strided)
_ZEROS = (aten.zeros_like, aten.new_zeros, aten.ones_like, aten.new_ones)
_BY_SHAPE = (*_ZEROS, aten.full_like, aten.new_full, aten.rand_like, aten.randn_like)


def _fused_attention(
    query: Tensor, key: Tensor, value: Tensor, *rest: object, **more: object
) -> int:
    return query.numel() * key.shape[-2] + query[..., 0].numel() * value[0, 0].numel()


# What torch's own counter leaves out: products with a vector, and the CPU's fused attention.
_LEFT_OUT: dict[OpOverloadPacket, Callable[..., int]] = {
    aten.mv: lambda matrix, vector: matrix.numel(),
    aten.addmv: lambda added, matrix, vector, **more: matrix.numel(),
    aten.dot: lambda one, other: one.numel(),
    aten._scaled_dot_product_flash_attention_for_cpu: _fused_attention,
}


class Traced(NamedTuple):
    """What was seen of a call.

    Attributes:
        multiply_adds: Of all matrix products and convolutions; one is two operations in torch's
            counting. What works number by number is not in it.
        kernels: How many were started.
        steps: How many had to run one after another from the input to the result, however many
            could run at once.
    """

    multiply_adds: int
    kernels: int
    steps: int


def trace(call: Callable[[Tensor], Tensor], given: Tensor) -> Traced:
    """Call, and count.

    What a kernel does inside is one step: a product's sums, a fused attention's pass over its keys.
    What does not come from ``given``, such as a mask, makes nobody wait.

    Args:
        call: What is counted.
        given: Its input.

    Example:
        >>> square = torch.ones(3, 3)
        >>> trace(lambda x: (x @ square).tanh() @ square, torch.ones(2, 3))
        Traced(multiply_adds=36, kernels=3, steps=3)
        >>> trace(lambda x: torch.cat([row.tanh() for row in x.split(1)]), torch.ones(5, 3))
        Traced(multiply_adds=0, kernels=6, steps=2)
    """
    counter = _Counter(given)
    with counter:
        result = call(given)
    return Traced(counter.multiply_adds, counter.kernels, max(0, counter.depth(result)))


def is_counting() -> bool:
    """Whether this is called by what is being counted."""
    return any(isinstance(mode, _Counter) for mode in _get_current_dispatch_mode_stack())


def peak_bytes(call: Callable[[], object]) -> int:
    """The most bytes that tensors made by a call take at once; what it returns is held to its end.

    What a kernel needs for itself alone while it runs is not seen.

    Example:
        >>> matrix = torch.ones(16, 16)  # 1 KiB
        >>> peak_bytes(lambda: (matrix + 1).exp().sum())
        2048
    """
    holder = _Holder()
    with holder:
        kept = call()
    del kept
    return holder.peak


class _Holder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts the bytes of new storages until they are gone."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.held = 0
        self.peak = 0

    def __torch_dispatch__(
        self,
        func: OpOverload,
        types: object,
        args: tuple[object, ...] = (),
        kwargs: dict[str, object] | None = None,
    ) -> object:
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        known = {_address(tensor) for tensor in _tensors((args, kwargs))}
        for tensor in _tensors(out):
            if _address(tensor) not in known:
                known.add(_address(tensor))
                self._hold(tensor.untyped_storage())
        return out

    def _hold(self, storage: torch.UntypedStorage) -> None:
        size = storage.nbytes()
        self.held += size
        self.peak = max(self.peak, self.held)
        weakref.finalize(storage, self._let_go, size)

    def _let_go(self, size: int) -> None:
        self.held -= size


class _Counter(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts what is dispatched, and how deep in a chain each stretch of memory was written."""

    def __init__(self, given: Tensor) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.multiply_adds = 0
        self.kernels = 0
        # For each storage, which bytes were written and how deep. Storages are held, so that no
        # other one can take the address of one that has gone.
        self._writes: dict[int, list[tuple[int, int, int]]] = {}
        self._held: list[torch.UntypedStorage] = []
        self._write(given, 0)

    def __torch_dispatch__(
        self,
        func: OpOverload,
        types: object,
        args: tuple[object, ...] = (),
        kwargs: dict[str, object] | None = None,
    ) -> object:
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        packet = func._overloadpacket
        if packet in _EMPTY or _is_view(func):
            return out
        written = list(_written(func, args, kwargs, out))
        if not written:
            return out
        self.kernels += 1
        if packet in flop_registry:
            self.multiply_adds += flop_registry[packet](*args, **kwargs, out_val=out) // 2
        elif packet in _LEFT_OUT:
            self.multiply_adds += _LEFT_OUT[packet](*args, **kwargs)
        unread = written if packet in _OVERWRITING else [kwargs.get("out")]
        read = [
            tensor
            for tensor in _tensors((args, kwargs))
            if packet not in _BY_SHAPE and not any(tensor is other for other in unread)
        ]
        depth = max((self.depth(tensor) for tensor in read), default=-1)
        for tensor in written:
            self._write(tensor, depth + 1 if depth >= 0 else -1)
        return out

    def depth(self, tensor: Tensor) -> int:
        """How many kernels in a row it took to make a tensor; -1 if it is not made of the input."""
        start, stop = _stretch(tensor)
        writes = self._writes.get(_address(tensor), ())
        return max((d for low, high, d in writes if low < stop and start < high), default=-1)

    def _write(self, tensor: Tensor, depth: int) -> None:
        start, stop = _stretch(tensor)
        if _address(tensor) not in self._writes:
            self._held.append(tensor.untyped_storage())
        before = self._writes.get(_address(tensor), [])
        still = [w for w in before if w[0] < start or w[1] > stop]
        self._writes[_address(tensor)] = [*still, (start, stop, depth)]


def _tensors(tree: object) -> list[Tensor]:
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, Tensor)]


def _address(tensor: Tensor) -> int:
    """What tells a storage from all others that are held."""
    return int(tensor.untyped_storage()._cdata)


def _is_view(func: OpOverload) -> bool:
    """Whether what comes back is what went in, seen otherwise."""
    infos = [value.alias_info for value in func._schema.returns]
    return any(info is not None and not info.is_write for info in infos)


def _written(
    func: OpOverload, args: tuple[object, ...], kwargs: dict[str, object], out: object
) -> Iterator[Tensor]:
    """The tensors a kernel wrote: new ones, and arguments it changed."""
    places = [i for i, given in enumerate(func._schema.arguments) if _is_changed(given)]
    names = [given.name for given in func._schema.arguments if _is_changed(given)]
    changed = [args[i] for i in places if i < len(args)]
    changed += [kwargs[name] for name in names if name in kwargs]
    yield from _tensors((changed, out))


def _is_changed(argument: Argument) -> bool:
    return argument.alias_info is not None and argument.alias_info.is_write


def _stretch(tensor: Tensor) -> tuple[int, int]:
    """From which to before which byte of its storage a tensor reaches."""
    if not tensor.numel():
        return 0, 0
    last = sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True))
    first = int(tensor.storage_offset())
    return first * tensor.element_size(), (first + int(last) + 1) * tensor.element_size()
