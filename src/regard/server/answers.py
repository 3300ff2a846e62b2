"""Schemas of requests and answers, for the OpenAPI page.

Answers are made as plain data; a test holds them to these models.
"""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from regard.inference.use import Reply


class _Answer(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class Refusal(_Answer):
    """Why there is no answer; every refusal has this form."""

    class Error(_Answer):
        """Message of an error."""

        code: str = Field(description="For programs, such as bad_input.")
        message: str = Field(description="For people: what must be, what came, and the cure.")
        id: str | None = Field(None, description="Of a bug, which the server's log has too.")

    error: Error


class Ranked(_Answer):
    """One of several translations of a text."""

    translation: str
    score: float = Field(description="Higher is better; of one run and length they compare.")
    log_prob: float = Field(description="Of its tokens and its end, in nats.")
    is_finished: bool = Field(True, description="False where the longest length cut it.")


class Translated(Ranked):
    """The translation of one text."""

    source: str = Field(description="The text as it was read.")
    parts: int | None = Field(None, description="How many parts a long text was cut into.")
    unknown: list[str] | None = Field(
        None, description="Words or characters outside the vocabulary."
    )
    n_best: list[Ranked] | None = Field(None, description="All that were asked for, best first.")
    source_tokens: list[str] | None = Field(None, description="With alignments.")
    output_tokens: list[str] | None = Field(None, description="With alignments.")
    attention: list[list[float]] | None = Field(
        None, description="With alignments: a row of weights over the source for each output token."
    )
    links: list[tuple[int, int]] | None = Field(
        None, description="With alignments: positions of source and output tokens that go together."
    )
    copied_from: list[int | None] | None = Field(
        None, description="Of models that copy: the source token each output token may be from."
    )


class Translations(_Answer):
    """Translations or summaries of texts, in their order."""

    run: str
    translations: list[Translated]


class JobAnswers(_Answer):
    """Answers of other tasks: labels, tags, spans, numbers, continuations of a prompt."""

    run: str
    answers: list[dict[str, object]]


class AttributionDocument(BaseModel):
    """The viewer's document; it may have more members than these."""

    model_config = ConfigDict(extra="allow")

    format: Literal["regard.attention"]
    version: int
    title: str
    task: str
    model: str
    examples: list[dict[str, object]]


class AttentionDocument(AttributionDocument):
    """The viewer's document, and the answers in words."""

    replies: list[Reply] = Field(description="Of each example.")


class Rows(_Answer):
    """Exact weights, a row for each query."""

    weights: list[list[float]]


class Plan(_Answer):
    """How the engine would serve a call."""

    backend: str
    reason: str
    notes: list[str]
    bytes: int
    operations: int


class Explained(_Answer):
    """A mask, and a call with it."""

    mask: str
    drawing: str | None = Field(description="A line for each query; null of a large one.")
    plan: Plan
    matrix_bytes: int = Field(description="Bytes of the whole matrix of weights.")


class About(_Answer):
    """One run that is served."""

    name: str
    task: str
    model: str
    parameters: int
    source_language: str | None
    target_language: str | None
    beam_size: int | None
    max_tokens: int | None
    explains: bool = Field(description="Whether /attribution explains its answers.")


class Runs(_Answer):
    """All runs that are served; the first is asked where a request names none."""

    runs: list[About]


class Health(_Answer):
    """Whether requests are taken."""

    live: bool
    ready: bool
    runs: int
    waiting: int = Field(description="Sentences in line.")


class Live(_Answer):
    """That the process runs."""

    live: bool
