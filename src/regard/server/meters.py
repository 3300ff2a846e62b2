"""Counts of what the server does, in the text format of Prometheus."""

import os
import sys
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from pathlib import Path

# Seconds, from a page's file to a long list of texts.
LATENCIES = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
# Texts translated at once.
BATCH_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)

_STATM = Path("/proc/self/statm")


class Counter:
    """How often something happened, by labels.

    Args:
        name: Of the series.
        says: What is counted.
        labels: Their names.

    Example:
        >>> requests = Counter("requests_total", "Requests.", ["route"])
        >>> requests.add("/predict")
        >>> list(requests.lines())[-1]
        'requests_total{route="/predict"} 1'
    """

    def __init__(self, name: str, says: str, labels: Sequence[str] = ()) -> None:
        self._head = _head(name, says, "counter")
        self._name, self._labels = name, labels
        self._counts: dict[tuple[str, ...], int] = {}

    def add(self, *values: str) -> None:
        """Count once for these values of the labels; there must be few different ones."""
        self._counts[values] = self._counts.get(values, 0) + 1

    def lines(self) -> Iterator[str]:
        """The lines of the series."""
        yield from self._head
        for values, count in self._counts.items():
            yield f"{self._name}{_braces(self._labels, values)} {count}"


class Histogram:
    """How values are spread, by labels.

    Args:
        name: Of the series.
        says: What is measured.
        bounds: Upper ends of the buckets, ascending; one without an end is added.
        labels: Their names.

    Example:
        >>> sizes = Histogram("size", "Sizes.", [1, 2])
        >>> sizes.add(1); sizes.add(2); sizes.add(7)
        >>> list(sizes.lines())[2:]
        ['size_bucket{le="1"} 1', 'size_bucket{le="2"} 2', 'size_bucket{le="+Inf"} 3',
         'size_sum 10', 'size_count 3']
    """

    def __init__(
        self, name: str, says: str, bounds: Sequence[float], labels: Sequence[str] = ()
    ) -> None:
        self._head = _head(name, says, "histogram")
        self._name, self._labels, self._bounds = name, labels, bounds
        self._counts: dict[tuple[str, ...], list[int]] = {}
        self._sums: dict[tuple[str, ...], float] = {}

    def add(self, value: float, *values: str) -> None:
        """Take one value in, for these values of the labels."""
        counts = self._counts.setdefault(values, [0] * (len(self._bounds) + 1))
        counts[bisect_left(self._bounds, value)] += 1
        self._sums[values] = self._sums.get(values, 0) + value

    def lines(self) -> Iterator[str]:
        """The lines of the series."""
        yield from self._head
        for values, counts in self._counts.items():
            total = 0
            for bound, count in zip([*self._bounds, "+Inf"], counts, strict=True):
                total += count
                braces = _braces([*self._labels, "le"], [*values, str(bound)])
                yield f"{self._name}_bucket{braces} {total}"
            braces = _braces(self._labels, values)
            yield f"{self._name}_sum{braces} {self._sums[values]:.6g}"
            yield f"{self._name}_count{braces} {total}"


class Meters:
    """Everything that is measured of one server."""

    def __init__(self) -> None:
        self.requests = Counter(
            "regard_requests_total", "Requests answered.", ["route", "method", "status"]
        )
        self.seconds = Histogram(
            "regard_request_seconds", "From a request to its answer.", LATENCIES, ["route"]
        )
        self.batches = Histogram("regard_batch_size", "Texts worked on at once.", BATCH_SIZES)

    def text(self, *, waiting: int, active: int) -> str:
        """All of it, as Prometheus reads it.

        Args:
            waiting: Sentences in line.
            active: Requests not answered yet.
        """
        lines = [
            *self.requests.lines(),
            *self.seconds.lines(),
            *self.batches.lines(),
            *_gauge("regard_queue_sentences", "Sentences that wait.", waiting),
            *_gauge("regard_active_requests", "Requests not answered yet.", active),
            *_gauge("process_resident_memory_bytes", "Memory in use.", resident_memory()),
        ]
        return "\n".join(lines) + "\n"


def resident_memory() -> int:
    """Bytes of memory this process uses; the most it ever used where Linux does not say."""
    if _STATM.exists():
        return int(_STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    import resource

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def _head(name: str, says: str, kind: str) -> tuple[str, str]:
    return f"# HELP {name} {says}", f"# TYPE {name} {kind}"


def _gauge(name: str, says: str, value: int) -> list[str]:
    return [*_head(name, says, "gauge"), f"{name} {value}"]


def _braces(labels: Sequence[str], values: Sequence[str]) -> str:
    if not labels:
        return ""
    pairs = ",".join(f'{label}="{value}"' for label, value in zip(labels, values, strict=True))
    return f"{{{pairs}}}"
