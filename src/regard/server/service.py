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
from regard.inference.checkpoint_predictor import CheckpointPredictor, Reply
from regard.inference.looking import looked_parts
from regard.server.batching import Batcher, QueueClosedError, QueueFullError
from regard.server.pages import example_requests
from regard.server.problems import Problem, quoted
from regard.server.requests import (
    MOST_SAMPLES,
    AttentionRequest,
    ExplainRequest,
    Limits,
    PredictRequest,
    RowsRequest,
    checked,
    inputs_of,
    sentences,
)
from regard.server.served import Served, explains, task_of
from regard.server.work import Job, Worker, named_unknown
from regard.tasks import DecodingConfig
from regard.tasks.sequences.sequence_task import EncodedSequences
from regard.tasks.sequences.translations import Translations
from regard.text import normalize
from regard.viewer import Document

# Bounds of histograms: seconds, from a page's file to a long list; texts worked on at once.
_LATENCIES = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_BATCH_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
# Sentences that are translated while a text is looked into: a short one, and any at most.
_SHORT_LOOK, _LONGEST_LOOK = 8, 64
# Characters that are cut into parts, and joined, without a thread of their own.
_AT_ONCE = 2000
# Tokens that a language model writes while a sentence is translated.
_WRITTEN = 32

LookT = TypeVar("LookT", bound=AttentionRequest)

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

    def __init__(self, served: Mapping[str, Served], limits: Limits) -> None:
        self.limits = limits
        self.meters = Meters()
        self.is_stopping = False
        self.active = 0  # requests not answered yet
        self._served = served
        self._batcher: Batcher[Job, Any, Any] = Batcher(
            Worker(served),
            weigh=_weigh,
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
        """Translations of the texts of a request, or the answers of another task."""
        run, predictor = self._run(request.run)
        _refuse_settings(request, predictor)
        decoding = self._decoding(predictor, request) if predictor.writes else None
        records = inputs_of(request, self.limits)
        if predictor.is_seq2seq:
            if request.records is not None:
                raise Problem(
                    422,
                    "records must be of a run that labels or tags; this one translates. "
                    "Send texts.",
                )
            texts = [cast(str, text) for text, _ in records]
            job = Job("translate", run, decoding, request.alignments)
            return {"run": run, "translations": await self._translated(predictor, job, texts, gone)}
        answers = await self._answers(Job("predict", run, decoding), records, gone)
        return {"run": run, "answers": answers}

    async def look(self, request: AttentionRequest, gone: Gone) -> str:
        """The viewer's document of a text, as JSON."""
        looked: list[tuple[Document, Reply]] = await self._looked("look", request, gone)
        replies = [reply.to_dict() for _, reply in looked]
        every = _joined([document for document, _ in looked])
        return await asyncio.to_thread(lambda: every.to_json(replies=replies))

    async def attribute(self, request: AttentionRequest, gone: Gone) -> str:
        """The viewer's document of a text whose answer is explained, as JSON."""
        _, served = self._find(request.run)
        if not explains(served):
            raise Problem(
                422, f"run must be one whose answers are explained; got one of {task_of(served)}."
            )
        documents: list[Document] = await self._looked("attribute", request, gone)
        return await asyncio.to_thread(_joined(documents).to_json)

    async def _looked(
        self, kind: Literal["look", "attribute"], request: AttentionRequest, gone: Gone
    ) -> list[Any]:
        """Results of each part of a text, and with edits once without and once with them."""
        name, served = self._find(request.run)
        request = self._checked(request)
        requests = [request]
        refused = [] if served.is_seq2seq else ["target", "beam_size"]
        if isinstance(served, CheckpointPredictor):
            refused = [*refused, "beam_size"]
        elif served.is_seq2seq:
            # Each part stands in line by itself, so that others are answered between them.
            texts = looked_parts(served, request.text, request.target)
            requests = [request.model_copy(update={"text": text}) for text in texts]
        for each in refused:
            if (value := getattr(request, each)) is not None:
                raise Problem(
                    422,
                    f"{each} must be left out for a run of {task_of(served)}; got {quoted(value)}.",
                )
        parts: list[list[Any]] = await self._answers(Job(kind, name), requests, gone)
        return [each for part in parts for each in part]

    async def rows(self, request: RowsRequest, gone: Gone) -> dict[str, JsonValue]:
        """Exact weights of one head."""
        run, predictor = self._run(request.run)
        if not predictor.is_seq2seq:
            raise Problem(
                422,
                f"run must be of translation; got one of {predictor.recipe.task}. "
                "All its weights are in what /attention gives.",
            )
        (weights,) = await self._answers(Job("rows", run), [self._checked(request)], gone)
        return {"weights": weights}

    async def explain(self, request: ExplainRequest, gone: Gone) -> dict[str, JsonValue]:
        """A mask's drawing, and how a call with it would be served."""
        (plan,) = await self._answers(Job("explain"), [request], gone)
        return cast("dict[str, JsonValue]", plan)

    def runs(self) -> list[dict[str, JsonValue]]:
        """List the served runs."""
        return [_about(name, served) for name, served in self._served.items()]

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
        """Finish what was taken, and end the working thread."""
        self.is_stopping = True
        await self._batcher.close()

    async def _translated(
        self, predictor: Predictor, job: Job, texts: Sequence[str], gone: Gone
    ) -> list[dict[str, JsonValue]]:
        """The translations of texts; parts of a long one stand in line by themselves."""
        is_much = sum(map(len, texts)) > _AT_ONCE
        task = predictor.sequence_task
        try:  # before any work is done for it
            self._batcher.check_room(sum(map(sentences, texts)))
        except QueueFullError as error:
            raise self._full(error) from None

        def cut() -> list[tuple[str, list[EncodedSequences]]]:
            sources = map(normalize, texts)
            return [(source, task.encoded_parts(source)) for source in sources]

        cuts = await asyncio.to_thread(cut) if is_much else cut()
        items = [part for _, parts in cuts for part in parts]
        written: list[Translations] = await self._answers(job, items, gone)

        def join() -> list[dict[str, JsonValue]]:
            rest = iter(written)
            return [
                {
                    **task.joined(source, [next(rest) for _ in parts]).to_dict(),
                    **named_unknown(task, source),
                }
                for source, parts in cuts
            ]

        return await asyncio.to_thread(join) if is_much or job.alignments else join()

    def _find(self, name: str | None) -> tuple[str, Served]:
        if name is None:
            name = next(iter(self._served))
        if name not in self._served:
            raise Problem(404, f"run must be one of {', '.join(self._served)}; got {quoted(name)}.")
        return name, self._served[name]

    def _run(self, name: str | None) -> tuple[str, Predictor]:
        name, served = self._find(name)
        if isinstance(served, CheckpointPredictor):
            raise Problem(
                422,
                f"run must be one that regard trained to be asked this; got {quoted(name)}, a "
                "Hugging Face model. Ask /attention.",
            )
        return name, served

    def _decoding(self, predictor: Predictor, request: PredictRequest) -> DecodingConfig:
        """Settings of the search: the request's over the run's; by default translators' beam."""
        settings = request.decoding()
        self._check_beam(settings.get("beam_size"))
        if predictor.is_seq2seq:
            settings = {"method": "beam", **settings}
        decoding = predictor.decoding.changed(**settings)
        if decoding.method == "sample" and decoding.n_best > MOST_SAMPLES:
            raise Problem(
                422, f"n_best must be at most {MOST_SAMPLES} samples; got {decoding.n_best}."
            )
        return decoding

    def _check_beam(self, beam_size: object) -> None:
        if isinstance(beam_size, int) and beam_size > self.limits.max_beam:
            raise Problem(
                422, f"beam_size must be at most {self.limits.max_beam}; got {quoted(beam_size)}."
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
            answers = self._batcher.submit(job, items)
        except QueueFullError as error:
            raise self._full(error) from None
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
    examples = tuple(each for document in documents for each in document.examples)
    return replace(documents[0], examples=examples)


def _about(name: str, served: Served) -> dict[str, JsonValue]:
    """Entry of a run in the list of runs."""
    about: dict[str, JsonValue] = {
        "name": name,
        "task": task_of(served),
        "model": type(served.model).__name__,
        "parameters": sum(each.numel() for each in served.model.parameters()),
        "source_language": None,
        "target_language": None,
        "beam_size": None,
        "max_tokens": getattr(served, "longest", None),
        "explains": explains(served),
    }
    if isinstance(served, CheckpointPredictor):
        return about
    about |= {
        "model": served.recipe.model_type,
        "max_tokens": getattr(served.recipe.data, "max_length", None),
    }
    if served.is_seq2seq:
        data = served.sequence_task.data
        about |= {"source_language": data.source_language, "target_language": data.target_language}
        about |= {"beam_size": served.decoding.beam_size}
    return about


def _refuse_settings(request: PredictRequest, predictor: Predictor) -> None:
    """Refuse settings without an effect on what the run answers."""
    settings = request.model_dump(
        exclude={"text", "texts", "records", "run"}, exclude_defaults=True
    )
    refused, reason = list(settings), "which searches for nothing"
    if predictor.is_seq2seq:
        refused, reason = ["max_tokens", "one_line"], "whose outputs end by themselves"
    elif predictor.writes:
        refused, reason = ["alignments"], "which has no source to look at"
    for name in refused:
        if name in settings:
            raise Problem(
                422,
                f"{name} must be left out for a run of {predictor.recipe.task}, {reason}; "
                f"got {quoted(settings[name])}.",
            )


def _weigh(job: Job, item: Any) -> int:
    """Cost of an item: attention weights grow with the square of a text."""
    match job.kind:
        case "translate":
            return sentences(item.text)
        case "predict" if job.decoding is not None:
            tokens = job.decoding.n_best * job.decoding.max_tokens
            return min(_LONGEST_LOOK, 1 + tokens // _WRITTEN)
        case "predict":
            return sentences(str(item[0]))
        case "look" | "attribute":
            longest = max(len(item.text), len(item.target or ""))
            short = _SHORT_LOOK if job.kind == "look" else _LONGEST_LOOK
            return min(_LONGEST_LOOK, short + (longest // 8) ** 2)
        case _:
            return 1
