"""The choice of a backend: the order in which they are asked, and the sizes where one is faster."""

from collections.abc import Callable

import torch

from regard.attention.backends.additive_cpu import AdditiveCpu
from regard.attention.backends.additive_triton import AdditiveTriton
from regard.attention.backends.base import Backend, Offer, Tiled
from regard.attention.backends.dot_cpu import DotCpu
from regard.attention.backends.flash import Flash
from regard.attention.backends.packed import Packed
from regard.attention.backends.sdpa import Sdpa
from regard.attention.backends.short import Short
from regard.attention.engine.request import Request
from regard.attention.masks.grid import Segments
from regard.checks import choose
from regard.errors import SettingError

# Sizes, measured with one thread: ``benchmarks/records/backend_choice.json`` has the time of
# each choice beside the fastest.

# For fewer scores than this, one call of the fused kernel is cheaper than several of anything else;
# with its gradient, for fewer than twice as many, and where it gains by threads for eight times.
FEWEST_PAIRS, FEWEST_PAIRS_OF_SHORT, FEWEST_PAIRS_IN_THREADS = 2**15, 2**16, 2**18
# Up to so many keys, the fused kernel gains nothing by threads, unless the processor has AVX-512.
MOST_KEYS_WITHOUT_THREADS = 16
HAS_FAST_THREADS = torch.backends.cpu.get_cpu_capability() == "AVX512"
# From so many keys on, compiled loops that leave out hidden pairs beat the fused kernel's
# gradient, where each query sees a range of the keys; where all see the same ones, up to so many.
FEWEST_KEYS_OF_LOOPS, MOST_KEYS_OF_LENGTHS = 256, 512
# Blocks of so many queries along a band are about so many times slower for each pair than the fused
# kernel with a mask, and worth it from so many pairs on.
BAND_ROWS, BAND_COST, FEWEST_PAIRS_OF_A_BAND = 64, 2, 2**16
# With more of the grid than this inside documents, one call with a mask is as fast as one for each.
LARGEST_SHARE_OF_DOCUMENTS = 0.5
# The most numbers of queries, keys and values, and of a mask, which stay in memory: of more, a bare
# kernel takes far longer than a plan.
MOST_NUMBERS_OF_A_KERNEL, MOST_OF_ITS_MASK = 2**16, 2**14


def _offer_of_document(request: Request) -> Offer:
    """The offer for one of several documents: of a simple backend, or blocks."""
    for backend in (_SHORT, _SDPA):
        if _SLOWER[type(backend)](request) is None and (offer := _offer(backend, request)):
            return offer
    return _TILED.offer(request)


_SHORT, _SDPA, _DOT_CPU, _TILED = Short(), Sdpa(), DotCpu(), Tiled()
# In the order they are asked; the last serves everything.
BACKENDS: dict[str, Backend] = {
    "short": _SHORT,
    "flash": Flash(),
    "packed": Packed(_SDPA, _offer_of_document),
    "sdpa": _SDPA,
    "additive_cpu": AdditiveCpu(),
    "additive_triton": AdditiveTriton(),
    "dot_cpu": _DOT_CPU,
    "tiled": _TILED,
}
_DEVICES = {None: "any device", "cpu": "CPUs", "cuda": "NVIDIA GPUs"}


def register_backend(name: str, backend: Backend) -> None:
    """Let ``attend`` know a backend of one's own; it is asked before the others.

    Args:
        name: Its name; a backend of this name is replaced.
        backend: The backend.

    Example:
        >>> import torch
        >>> from regard.attention import explain
        >>> register_backend("blocks", Tiled())  # asked first, and serves everything
        >>> print(explain(torch.zeros(3, 4), torch.zeros(5, 4)).backend)
        blocks
        >>> del BACKENDS["blocks"]
    """
    remaining = {title: entry for title, entry in BACKENDS.items() if title != name}
    BACKENDS.clear()
    BACKENDS.update({name: backend, **remaining})


def choose_backend(request: Request, pinned: str | None) -> tuple[str, Offer, str, bool]:
    """Name, offer and reason of the backend that serves, and whether it would for other numbers.

    Raises:
        SettingError: There is no backend of the pinned name, or it refuses.
    """
    backends = BACKENDS if pinned is None else {pinned: choose("backend", pinned, BACKENDS)}
    refusals, is_lasting, device = "", True, request.query.device.type
    for name, backend in backends.items():
        is_lasting = is_lasting and backend.ignores_numbers
        slower = _SLOWER.get(type(backend)) if pinned is None else None
        why = None if slower is None else slower(request)
        if why is None and backend.device in (None, device):
            offer = backend.offer(request)
            if isinstance(offer, Offer):
                reason = "the fastest path that serves it" if pinned is None else "asked for"
                return name, offer, refusals or reason, is_lasting
            why = offer.why
        why = why or f"it is for {_DEVICES.get(backend.device, backend.device)}"
        refusals += f"{'; ' if refusals else ''}not {name}, since {why}"
    raise SettingError(
        f"backend must be able to serve the call; got {pinned!r}, but {why}. "
        "Leave backend=None to have one chosen."
    )


def is_small(request: Request) -> bool:
    """Whether a bare kernel is over so soon that nothing else should be done."""
    numbers = request.query.numel() + request.key.numel() + request.value.numel()
    pairs = request.query.shape[:3].numel() * request.key.shape[2]
    if numbers > MOST_NUMBERS_OF_A_KERNEL or not pairs:
        return False
    mask = request.mask
    return mask is None or pairs <= MOST_OF_ITS_MASK or mask.size <= MOST_OF_ITS_MASK


def _offer(backend: Backend, request: Request) -> Offer | None:
    is_for_it = backend.device in (None, request.query.device.type)
    offer = backend.offer(request) if is_for_it else None
    return offer if isinstance(offer, Offer) else None


def _is_short_slower(request: Request) -> str | None:
    if request.dropout:
        return None  # which the fused kernel has not
    pairs = request.query.shape[:3].numel() * request.key.shape[2]
    if pairs < FEWEST_PAIRS_OF_SHORT:
        return "there is too little to do"
    threads = torch.get_num_threads()
    has_slow_threads = threads > 1 and not HAS_FAST_THREADS
    is_slow = has_slow_threads and request.key.shape[2] <= MOST_KEYS_WITHOUT_THREADS
    if not is_slow and not request.needs_grad():
        return "no gradient is wanted, and the fused forward pass is as fast"
    if pairs < FEWEST_PAIRS_IN_THREADS and threads > 1 and HAS_FAST_THREADS:
        return "there is too little to do for several threads"
    return None


def _is_packed_slower(request: Request) -> str | None:
    form = None if request.mask is None else request.mask.form
    if not isinstance(form, Segments):
        return "the mask is not one of documents"
    # In one pass, and of the hidden pairs within documents none is worked out.
    if form.band is not None and _offer(_DOT_CPU, request):
        return "compiled loops are faster with a mask inside documents"
    if form.pairs > LARGEST_SHARE_OF_DOCUMENTS * request.query.shape[2] * request.key.shape[2]:
        return "the documents are most of the row"
    return None


def _is_sdpa_slower(request: Request) -> str | None:
    form, mask = request.form(), request.mask
    if form is None:
        return None
    N, M = request.query.shape[2], request.key.shape[2]
    is_large = request.query.is_cpu and N * M >= FEWEST_PAIRS_OF_A_BAND
    if mask is not None and is_large and (mask.width + BAND_ROWS) * BAND_COST < M:
        return "the window is so narrow that blocks along it are faster"
    if form.of_keys is not None and not _is_dot_cpu_slower(request) and _offer(_DOT_CPU, request):
        return "a compiled pass adds a number of each key faster than wider keys would"
    if mask is None or request.bias is not None or M < FEWEST_KEYS_OF_LOOPS:
        return None
    if request.query.dtype is torch.float32 and request.needs_grad() and _offer(_DOT_CPU, request):
        _, heads, queries, keys = mask.mask.extent(mask.grid)
        if mask.is_range or (heads == queries == 1 and keys <= MOST_KEYS_OF_LENGTHS):
            return "a compiled pass leaves out hidden keys, which makes its gradient faster"
    return None


def _is_dot_cpu_slower(request: Request) -> str | None:
    pairs = request.query.shape[:3].numel() * request.key.shape[2]
    if pairs < FEWEST_PAIRS and not request.needs_grad():
        return "there is too little to do"
    return None


_SLOWER: dict[type[Backend], Callable[[Request], str | None]] = {
    Short: _is_short_slower,
    Packed: _is_packed_slower,
    Sdpa: _is_sdpa_slower,
    DotCpu: _is_dot_cpu_slower,
}
