"""Counts of what the server does, in the text format of Prometheus."""

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)

# Seconds, from a page's file to a long list of texts.
LATENCIES = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
# Texts translated at once.
BATCH_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Meters:
    """Everything that is measured of one server.

    Attributes:
        requests: Requests answered, by route, method and status.
        seconds: From a request to its answer, by route.
        batches: Texts worked on at once.
    """

    def __init__(self) -> None:
        # When a series began is a line more for each, which nobody asks for.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        # A registry of its own, so that two servers in a process do not count together.
        self._registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)  # memory among others, where Linux tells it
        self.requests = Counter(
            "regard_requests_total",
            "Requests answered.",
            ["route", "method", "status"],
            registry=registry,
        )
        self.seconds = Histogram(
            "regard_request_seconds",
            "From a request to its answer.",
            ["route"],
            buckets=LATENCIES,
            registry=registry,
        )
        self.batches = Histogram(
            "regard_batch_size", "Texts worked on at once.", buckets=BATCH_SIZES, registry=registry
        )
        self._waiting = Gauge("regard_queue_sentences", "Sentences that wait.", registry=registry)
        self._active = Gauge(
            "regard_active_requests", "Requests not answered yet.", registry=registry
        )

    def text(self, *, waiting: int, active: int) -> str:
        """All of it, as Prometheus reads it.

        Args:
            waiting: Sentences in line.
            active: Requests not answered yet.
        """
        self._waiting.set(waiting)
        self._active.set(active)
        return generate_latest(self._registry).decode()
