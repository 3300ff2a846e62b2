"""Service behind the routes: checks requests, queues them, answers in time."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import cast

from regard.config import JsonValue
from regard.errors import RegardError
from regard.inference import Predictor
from regard.inference.looking import document, looked_parts
from regard.server.batching import Batcher, QueueClosedError, QueueFullError
from regard.server.examples import example_requests
from regard.server.limits import Limits, sentences
from regard.server.meters import Meters
from regard.server.problems import Problem, shown
from regard.server.requests import (
    AttentionRequest,
    ContinueRequest,
    ExplainRequest,
    PredictRequest,
    RowsRequest,
    checked,
    records_of,
    texts_of,
)
from regard.server.work import (
    Answering,
    AnswerT,
    Call,
    Continuing,
    Item,
    Looking,
    Planning,
    Prompt,
    Reading,
    RecordItem,
    Subject,
    TextItem,
    Tile,
    Translating,
    Work,
    Worker,
)
from regard.text import normalize

# Sentences that are translated while a text is looked into: a short one, and any at most.
_SHORT_LOOK, _LONGEST_LOOK = 8, 64
# Characters that are cut into parts, and joined, without a thread of their own.
_AT_ONCE = 2000
# Tokens that a language model writes while a sentence is translated.
_WRITTEN = 32

# Returns once the client has gone away.
Gone = Callable[[], Awaitable[object]]


class ClientGoneError(Exception):
    """The client went away before it had its answer."""


class Service:
    """The runs that are served, and the line of requests before them.

    Args:
        predictors: The models by name; requests that name none go to the first.
        limits: How much is taken on.

    Example:
        >>> async def drawing(service):
        ...     asked = ExplainRequest(mask="causal()", queries=2, keys=3)
        ...     found = await service.explain(asked, asyncio.Event().wait)
        ...     await service.close()
        ...     return found["drawing"]
        >>> print(asyncio.run(drawing(Service({}, Limits()))))
        1 1 .
        1 1 1
    """

    def __init__(self, predictors: Mapping[str, Predictor], limits: Limits) -> None:
        self.limits = limits
        self.meters = Meters()
        self.is_stopping = False
        self.active = 0  # requests not answered yet
        self._predictors = predictors
        self._batcher: Batcher[Work[object], Item, object] = Batcher(
            Worker(predictors),
            weigh=_weigh,
            max_batch=limits.max_batch,
            max_wait=limits.max_wait,
            capacity=limits.queue,
            turn=limits.turn,
            on_batch=self.meters.batches.observe,
        )

    async def predict(self, request: PredictRequest, gone: Gone) -> dict[str, JsonValue]:
        """Translations of the texts of a request, or the answers of another task.

        Raises:
            Problem: The request is wrong, too much, or took too long.
            ClientGoneError: Nobody waits for the answer.
        """
        run, predictor = self._run(request.run)
        if not predictor.writes:
            asked = [
                RecordItem(record, name)
                for name, record in records_of(request, predictor.recipe.task, self.limits)
            ]
            return {"run": run, "answers": await self._answers(Answering(run), asked, gone)}
        decoding = predictor.decoding
        beam_size = self._beam_size(predictor, request.beam_size)
        if request.n_best > beam_size:
            raise Problem(
                422,
                "n_best must be at most beam_size; "
                f"got n_best={request.n_best}, beam_size={beam_size}.",
            )
        penalty = request.length_penalty
        task = Translating(
            run=run,
            beam_size=beam_size,
            n_best=request.n_best,
            length_penalty=decoding.length_penalty if penalty is None else penalty,
            alignments=request.alignments,
        )
        texts = texts_of(request, self.limits)
        return {"run": run, "translations": await self._translated(predictor, task, texts, gone)}

    async def go_on(self, request: ContinueRequest, gone: Gone) -> dict[str, JsonValue]:
        """Continue the texts of a request by a language model.

        Raises:
            Problem: The request is wrong, too much, or took too long.
            RegardError: The search cannot be as it is asked for.
            ClientGoneError: Nobody waits for the answer.
        """
        run, served = self._run(request.run)
        recipe = served.recipe
        if recipe.task != "language_modelling":
            raise Problem(
                422, f"run must be of language_modelling; got one of {recipe.task}. Ask /predict."
            )
        decoding = served.decoding.changed(**request.decoding())
        texts = texts_of(request, self.limits)
        prompts = [Prompt(text, decoding.n_best * decoding.max_tokens) for text in texts]
        return {
            "run": run,
            "answers": await self._answers(Continuing(run, decoding), prompts, gone),
        }

    async def document(self, request: AttentionRequest, gone: Gone) -> str:
        """The viewer's document of a text, as JSON.

        Raises:
            Problem: The request is wrong, too much, or took too long.
            ClientGoneError: Nobody waits for the answer.
        """
        run, predictor = self._run(request.run)
        if not predictor.writes:
            return await self._job_document(run, predictor, request, gone)
        task = Looking(run, self._beam_size(predictor, request.beam_size))
        subject = self._subject(request)
        # Each part stands in line by itself, so that others are answered between them.
        parts = looked_parts(predictor, subject.text, subject.target)
        examples = await self._answers(
            task, [Subject(part, subject.target) for part in parts], gone
        )
        return await asyncio.to_thread(lambda: document(predictor, examples).to_json())

    async def _job_document(
        self, run: str, predictor: Predictor, request: AttentionRequest, gone: Gone
    ) -> str:
        for name in ("target", "beam_size"):
            if (got := getattr(request, name)) is not None:
                task = predictor.recipe.task
                raise Problem(
                    422, f"{name} must be left out for a run of {task}; got {shown(got)}."
                )
        examples = await self._answers(Looking(run, 1), [self._subject(request)], gone)
        return await asyncio.to_thread(lambda: document(predictor, examples).to_json())

    async def rows(self, request: RowsRequest, gone: Gone) -> dict[str, JsonValue]:
        """Exact weights of one head.

        Raises:
            Problem: The request is wrong, too much, or took too long.
            ClientGoneError: Nobody waits for the answer.
        """
        run, predictor = self._run(request.run)
        if not predictor.writes:
            raise Problem(
                422,
                f"run must be of translation; got one of {predictor.recipe.task}. "
                "All its weights are in what /attention gives.",
            )
        task = Reading(run, self._beam_size(predictor, request.beam_size))
        asked = Tile(
            self._subject(request),
            request.kind,
            request.layer,
            request.head,
            None if request.queries is None else tuple(request.queries),
            None if request.keys is None else (request.keys[0], request.keys[1]),
        )
        (weights,) = await self._answers(task, [asked], gone)
        return {"weights": weights}

    async def explain(self, request: ExplainRequest, gone: Gone) -> dict[str, JsonValue]:
        """A mask's drawing, and how a call with it would be served.

        Raises:
            Problem: The request is wrong, too much, or took too long.
            ClientGoneError: Nobody waits for the answer.
        """
        call = Call(
            mask=request.mask,
            queries=request.queries,
            keys=request.queries if request.keys is None else request.keys,
            heads=request.heads,
            head_dim=request.head_dim,
        )
        (found,) = await self._answers(Planning(), [call], gone)
        return found

    def runs(self) -> list[dict[str, JsonValue]]:
        """List the served runs."""
        return [_about(name, served) for name, served in self._predictors.items()]

    def examples(self) -> dict[str, dict[str, JsonValue]]:
        """A request that is answered, for each route that some run answers."""
        return example_requests(self._predictors)

    def health(self) -> dict[str, JsonValue]:
        """Whether requests are taken."""
        return {
            "live": True,
            "ready": not self.is_stopping,
            "runs": len(self._predictors),
            "waiting": self._batcher.waiting,
        }

    def metrics(self) -> str:
        """Metrics in the format of Prometheus."""
        return self.meters.text(waiting=self._batcher.waiting, active=self.active)

    async def close(self) -> None:
        """Finish what was taken, and end the working thread."""
        self.is_stopping = True
        await self._batcher.close()

    async def _translated(
        self, predictor: Predictor, task: Translating, texts: Sequence[str], gone: Gone
    ) -> list[dict[str, JsonValue]]:
        """The translations of texts; parts of a long one stand in line by themselves."""
        is_much = sum(map(len, texts)) > _AT_ONCE
        self._check_room(sum(map(sentences, texts)))

        of_texts = predictor.sequence_task

        def cut() -> list[tuple[str, list[str]]]:
            sources = map(normalize, texts)
            return [(source, of_texts.parts(source)) for source in sources]

        cuts = await asyncio.to_thread(cut) if is_much else cut()
        parts = [TextItem(part, place == 0) for _, cut in cuts for place, part in enumerate(cut)]
        found = iter(await self._answers(task, parts, gone))

        def join() -> list[dict[str, JsonValue]]:
            return [
                of_texts.joined(source, [next(found) for _ in parts]).to_dict()
                for source, parts in cuts
            ]

        return await asyncio.to_thread(join) if is_much or task.alignments else join()

    def _run(self, name: str | None) -> tuple[str, Predictor]:
        if name is None:
            name = next(iter(self._predictors))
        if name not in self._predictors:
            raise Problem(
                404, f"run must be one of {', '.join(self._predictors)}; got {shown(name)}."
            )
        return name, self._predictors[name]

    def _beam_size(self, predictor: Predictor, asked: int | None) -> int:
        beam_size = predictor.decoding.beam_size if asked is None else asked
        if asked is not None and asked > self.limits.max_beam:
            raise Problem(
                422, f"beam_size must be at most {self.limits.max_beam}; got {shown(asked)}."
            )
        return beam_size

    def _subject(self, request: AttentionRequest) -> Subject:
        target = request.target
        return Subject(
            checked("text", request.text, self.limits.max_looked),
            None if target is None else checked("target", target, self.limits.max_looked),
        )

    async def _answers(
        self, task: Work[AnswerT], items: Sequence[Item], gone: Gone
    ) -> list[AnswerT]:
        """The worker's answers; given up when they take too long or nobody waits."""
        try:
            answers = self._batcher.submit(task, items)
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
        if answers.cancelled():
            raise ClientGoneError if has_gone else self._too_late()
        found = answers.result()
        for answer in found:
            if isinstance(answer, RegardError):
                raise answer
        return cast(list[AnswerT], found)

    def _check_room(self, weight: int) -> None:
        """Refuse what there is no room for, before any work is done for it."""
        try:
            self._batcher.check_room(weight)
        except QueueFullError as error:
            raise self._full(error) from None

    def _full(self, error: QueueFullError) -> Problem:
        return Problem(
            503,
            f"server must have room for a request; {self._batcher.waiting:,} sentences wait. "
            f"Try again in {error.retry_after} s.",
            headers={"Retry-After": str(error.retry_after)},
        )

    def _too_late(self) -> Problem:
        again = str(self._batcher.retry_after())
        return Problem(
            504,
            f"request must be answered within {self.limits.timeout:g} s; it was given up. "
            "Send less at once, or try again later.",
            headers={"Retry-After": again},
        )


def stopping() -> Problem:
    """Error for requests that arrive while the server stops."""
    return Problem(
        503,
        "server must be running to answer; it is stopping. Try again when it is back.",
        headers={"Retry-After": "5", "Connection": "close"},
        code="stopping",
    )


def _about(name: str, served: Predictor) -> dict[str, JsonValue]:
    """Entry of a run in the list of runs."""
    recipe, is_translator = served.recipe, served.writes
    return {
        "name": name,
        "task": recipe.task,
        "model": recipe.model_type,
        "parameters": sum(each.numel() for each in served.model.parameters()),
        "source_language": served.sequence_task.data.source_language if is_translator else None,
        "target_language": served.sequence_task.data.target_language if is_translator else None,
        "beam_size": served.decoding.beam_size if is_translator else None,
        "max_tokens": getattr(recipe.data, "max_length", None),
    }


def _weigh(item: Item) -> int:
    """Cost of an item: attention weights grow with the square of a text."""
    match item:
        case TextItem():
            return sentences(item.text)
        case RecordItem():
            return sentences(str(item.record))
        case Prompt():
            return min(_LONGEST_LOOK, 1 + item.tokens // _WRITTEN)
        case Subject():
            longest = max(len(item.text), len(item.target or ""))
            return min(_LONGEST_LOOK, _SHORT_LOOK + (longest // 8) ** 2)
        case _:
            return 1
