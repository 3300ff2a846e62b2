"""Service behind the routes: checks requests, queues them, answers in time, counts them."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeVar, cast

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)

from regard.config import JsonValue
from regard.errors import RegardError
from regard.inference import Predictor
from regard.inference.options import AnswerOptions
from regard.inference.use import InUse, Reply, Request, RunInUse
from regard.server.batching import Batcher, QueueClosedError, QueueFullError
from regard.server.pages import example_requests
from regard.server.problems import Problem, bad_input, quoted
from regard.server.requests import (
    MOST_SAMPLES,
    AttentionRequest,
    ExplainRequest,
    Limits,
    LookRequest,
    PredictRequest,
    RowsRequest,
    checked,
    inputs_of,
)
from regard.server.work import Job, Part, Worker, cost_of, weigh
from regard.tasks import AnyTask, DecodingConfig
from regard.tasks.task import Answer
from regard.viewer import Document

# Bounds of histograms: seconds, from a page's file to a long list; texts worked on at once.
_LATENCIES = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_BATCH_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
# Characters that are cut into parts, and joined, without a thread of their own.
_AT_ONCE = 2000

# Seconds within which it is noticed that a client has gone, while the worker has all cores.
_NOTICED = 0.5

ResultT = TypeVar("ResultT")
LookT = TypeVar("LookT", bound=LookRequest)

# Returns once the client has gone away.
Gone = Callable[[], Awaitable[object]]


class ClientGoneError(Exception):
    """The client went away before it had its answer."""


class Meters:
    """Counts of one server for Prometheus, in a registry of its own."""

    def __init__(self) -> None:
        # When a series began is a line more for each, which nobody asks for.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = registry = CollectorRegistry()
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
            buckets=_LATENCIES,
            registry=registry,
        )
        self.batches = Histogram(
            "regard_batch_size", "Texts worked on at once.", buckets=_BATCH_SIZES, registry=registry
        )

    def gauge(self, name: str, text: str, value: Callable[[], float]) -> None:
        """Add a value that is read whenever somebody asks for it."""
        Gauge(name, text, registry=self.registry).set_function(value)


class Service:
    """The runs that are served, and the line of requests before them.

    ``gone`` of each method returns once the client has gone, which raises ``ClientGoneError``. A
    request that is wrong, too much, or took too long is a ``Problem``, or a ``RegardError`` where
    its search cannot be as it is wanted.

    Args:
        served: Runs and Hugging Face models by name; requests that name none go to the first.
        limits: How much is taken on.

    Example:
        >>> async def drawing(service):
        ...     request = ExplainRequest(mask="causal()", queries=2, keys=3)
        ...     plan = await service.explain(request, asyncio.Event().wait)
        ...     await service.close()
        ...     return plan["drawing"]
        >>> print(asyncio.run(drawing(Service({}, Limits()))))
        1 1 .
        1 1 1
    """

    def __init__(self, served: Mapping[str, Predictor | InUse], limits: Limits) -> None:
        self.limits = limits
        self.meters = Meters()
        self.is_stopping = False
        self.active = 0  # requests not answered yet
        self._served: dict[str, InUse] = {
            name: cast(InUse, getattr(run, "use", run)) for name, run in served.items()
        }
        self._batcher: Batcher[Job, Any, Any] = Batcher(
            Worker(self._served),
            weigh=weigh,
            max_batch=limits.max_batch,
            capacity=limits.queue,
            turn=limits.turn,
            on_batch=self.meters.batches.observe,
        )
        self.meters.gauge(
            "regard_queue_sentences", "Sentences that wait.", lambda: self._batcher.waiting
        )
        self.meters.gauge(
            "regard_active_requests", "Requests not answered yet.", lambda: self.active
        )

    async def predict(self, request: PredictRequest, gone: Gone) -> dict[str, JsonValue]:
        """The answers to the texts or records of a request; parts of a long text wait apart."""
        name, use = self._run(request.run)
        options = request.options()
        decoding = self._decoding(use, request, options)
        records = inputs_of(request, self.limits)
        weights = [cost_of(use, decoding, str(record)) for record, _ in records]
        # Before any work is done for it.
        await self._in_line(lambda: self._batcher.check_room(sum(weights)))
        is_much = sum(len(str(record)) for record, _ in records) > _AT_ONCE

        def parse() -> list[Request]:
            return [use.parse(*record) for record in records]

        requests = await asyncio.to_thread(parse) if is_much else parse()
        job = Job("answer", name, decoding, options.attention, options.layers)
        items = [
            Part(part, 1 + (weight - 1) // len(parsed.parts))
            for parsed, weight in zip(requests, weights, strict=True)
            for part in parsed.parts
        ]
        answers: list[Answer] = await self._answers(job, items, gone)

        def join() -> list[JsonValue]:
            remaining, joined = iter(answers), list[JsonValue]()
            for parsed in requests:
                answer = use.join(parsed, [next(remaining) for _ in parsed.parts])
                unknown = {"unknown": list(dict.fromkeys(parsed.unknown))} if parsed.unknown else {}
                joined.append({**answer.to_dict(), **unknown})
            return joined

        made = await asyncio.to_thread(join) if is_much or options.attention else join()
        return {"run": name, use.answers_name: made}

    async def look(self, request: AttentionRequest, gone: Gone) -> str:
        """The viewer's document of a text, as JSON."""
        looked: list[tuple[Document, Reply]] = await self._looked("look", request, gone)
        replies = [reply.to_dict() for _, reply in looked]
        every = _joined([document for document, _ in looked])
        return await asyncio.to_thread(lambda: every.to_json(replies=replies))

    async def attribute(self, request: AttentionRequest, gone: Gone) -> str:
        """The viewer's document of a text whose answer is explained, as JSON."""
        _, use = self._find(request.run)
        if not use.explains:
            raise bad_input(f"run must be one whose answers are explained; got one of {use.job}.")
        documents: list[Document] = await self._looked("attribute", request, gone)
        return await asyncio.to_thread(_joined(documents).to_json)

    async def _looked(
        self, kind: Literal["look", "attribute"], request: AttentionRequest, gone: Gone
    ) -> list[Any]:
        """Results of each part of a text, and with edits once without and once with them."""
        name, use = self._find(request.run)
        request, given = self._checked(request), request.options().given()
        for option in given.keys() & use.unused(explain=kind == "attribute"):
            raise bad_input(
                f"{option} must be left out for a run of {use.job}; got {quoted(given[option])}."
            )
        # Each part stands in line by itself, so that others are answered between them.
        texts = use.parts(request.text, request.target)
        requests = [request.model_copy(update={"text": text}) for text in texts]
        parts: list[list[Any]] = await self._answers(Job(kind, name), requests, gone)
        return [result for part in parts for result in part]

    async def rows(self, request: RowsRequest, gone: Gone) -> dict[str, JsonValue]:
        """Exact weights of one head."""
        run, use = self._run(request.run)
        if not use.has_rows:
            raise bad_input(
                f"run must be of translation; got one of {use.job}. "
                "All its weights are in the answer of /attention.",
            )
        (weights,) = await self._answers(Job("rows", run), [self._checked(request)], gone)
        return {"weights": weights}

    async def explain(self, request: ExplainRequest, gone: Gone) -> dict[str, JsonValue]:
        """A mask's drawing, and how a call with it would be served."""
        (plan,) = await self._answers(Job("explain"), [request], gone)
        return cast("dict[str, JsonValue]", plan)

    def runs(self) -> list[dict[str, JsonValue]]:
        """List the served runs."""
        return [{"name": name, **use.about()} for name, use in self._served.items()]

    def examples(self) -> dict[str, dict[str, JsonValue]]:
        """A request that is answered, for each route that some run answers."""
        return example_requests(self._served)

    def health(self) -> dict[str, JsonValue]:
        """Whether requests are taken."""
        return {
            "live": True,
            "ready": not self.is_stopping,
            "runs": len(self._served),
            "waiting": self._batcher.waiting,
        }

    def metrics(self) -> str:
        """Metrics in the format of Prometheus."""
        return generate_latest(self.meters.registry).decode()

    async def close(self) -> None:
        """Finish the accepted requests, and end the working thread."""
        self.is_stopping = True
        await self._batcher.close()

    def _find(self, name: str | None) -> tuple[str, InUse]:
        if name is None:
            name = next(iter(self._served))
        if name not in self._served:
            raise Problem(404, f"run must be one of {', '.join(self._served)}; got {quoted(name)}.")
        return name, self._served[name]

    def _run(self, name: str | None) -> tuple[str, RunInUse[AnyTask]]:
        name, use = self._find(name)
        if not use.answers_name:
            raise bad_input(
                f"run must be one that regard trained to be asked this; got {quoted(name)}, a "
                "Hugging Face model. Ask /attention.",
            )
        return name, cast("RunInUse[AnyTask]", use)

    def _decoding(
        self, use: RunInUse[AnyTask], request: PredictRequest, options: AnswerOptions
    ) -> DecodingConfig | None:
        """Settings of the search: the request's over the run's; by default translators' beam."""
        _refuse_settings(request, use, options)
        settings = options.search()
        if options.prefix:
            checked("prefix", options.prefix, self.limits.max_length)
        for number, word in enumerate(options.avoid or ()):
            checked(f"avoid[{number}]", word, self.limits.max_length)
        self._check_beam(options.beam_size)
        if use.recipe.decoding is None:
            return None
        decoding = use.search(use.recipe, {**use.served, **settings})
        if decoding is not None and decoding.method == "sample" and decoding.n_best > MOST_SAMPLES:
            raise bad_input(
                f"n_best must be at most {MOST_SAMPLES} samples; got {decoding.n_best}."
            )
        return decoding

    def _check_beam(self, beam_size: object) -> None:
        if isinstance(beam_size, int) and beam_size > self.limits.max_beam:
            raise bad_input(
                f"beam_size must be at most {self.limits.max_beam}; got {quoted(beam_size)}."
            )

    def _checked(self, request: LookT) -> LookT:
        """The request, if its texts can be looked into."""
        self._check_beam(request.beam_size)
        for name in ("text", "target"):
            if (text := getattr(request, name)) is not None:
                checked(name, text, self.limits.max_looked)
        return request

    async def _answers(self, job: Job, items: Sequence[object], gone: Gone) -> list[Any]:
        """The worker's answers; given up when they take too long or nobody waits."""
        try:
            answers = await self._in_line(lambda: self._batcher.submit(job, items))
        except QueueClosedError:
            raise stopping() from None
        leaving: asyncio.Future[object] = asyncio.ensure_future(gone())
        try:
            await asyncio.wait(
                cast(list[asyncio.Future[object]], [answers, leaving]),
                timeout=self.limits.timeout,
                return_when=asyncio.FIRST_COMPLETED,
            )
        finally:
            has_gone = leaving.done()
            leaving.cancel()
            if not answers.done():
                answers.cancel()
        if answers.cancelled() and has_gone:
            raise ClientGoneError
        if answers.cancelled():
            raise Problem(
                504,
                f"request must be answered within {self.limits.timeout:g} s; it was given up. "
                "Send less at once, or try again later.",
                headers={"Retry-After": str(self._batcher.retry_after())},
            )
        results = answers.result()
        for answer in results:
            if isinstance(answer, RegardError):
                raise answer
        return results

    async def _in_line(self, enter: Callable[[], ResultT]) -> ResultT:
        """Enter the line. Where it is full, those who have hung up are noticed within a moment."""
        loop = asyncio.get_running_loop()
        until = loop.time() + _NOTICED
        while True:
            try:
                return enter()
            except QueueFullError as error:
                if loop.time() >= until:
                    raise self._full(error) from None
            await asyncio.sleep(_NOTICED / 5)

    def _full(self, error: QueueFullError) -> Problem:
        return Problem(
            503,
            f"server must have room for a request; {self._batcher.waiting:,} sentences wait. "
            f"Try again in {error.retry_after} s.",
            headers={"Retry-After": str(error.retry_after)},
        )


def stopping() -> Problem:
    """Error for requests that arrive while the server stops."""
    return Problem(
        503,
        "server must be running to answer; it is stopping. Try again when it is back.",
        headers={"Retry-After": "5", "Connection": "close"},
        code="stopping",
    )


def _joined(documents: Sequence[Document]) -> Document:
    """All examples in the first document."""
    examples = tuple(example for document in documents for example in document.examples)
    return replace(documents[0], examples=examples)


def _refuse_settings(
    request: PredictRequest, use: RunInUse[AnyTask], options: AnswerOptions
) -> None:
    """Refuse settings without an effect on the run's answers."""
    reason = "which searches for nothing" if use.recipe.decoding is None else use.no_attention
    inputs = {"text", "texts", "records", "run"}
    given = request.model_dump(exclude=inputs, exclude_defaults=True)
    refused = given if use.recipe.decoding is None else given.keys() & {"alignments", "layers"}
    for name in refused if reason else ():
        raise bad_input(
            f"{name} must be left out for a run of {use.job}, {reason}; got {quoted(given[name])}.",
        )
    if options.layers is not None and not options.attention:
        raise bad_input(f"layers must go with alignments; got {quoted(options.layers)} alone.")
