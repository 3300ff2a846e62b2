"""A translator that only turns texts around, and a client without a socket."""

import asyncio
import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
import torch

from regard.inference import Translation
from regard.server import Limits, Service, make_app
from regard.tasks.translations import Translations


class Turner:
    """Translates a text into itself backwards, once it is let through."""

    def __init__(self) -> None:
        self.decoding = SimpleNamespace(beam_size=4, length_penalty=0.6)
        self.data = SimpleNamespace(source_language="zh", target_language="en", max_length=64)
        self.recipe = SimpleNamespace(task="translation", model_type="turner", data=self.data)
        self.model = torch.nn.Linear(2, 3)
        self.opened = threading.Event()
        self.opened.set()
        self.batches: list[list[str]] = []
        self.longest = 64
        self.writes, self.sequence_task = True, self

    def parts(self, text: str) -> list[str]:
        return [part for part in text.split("。") if part] if len(text) > self.longest else [text]

    def joined(self, source: str, parts: Sequence[Translations]) -> Translations:
        if len(parts) == 1:
            return parts[0]
        text = " ".join(found.best.text for found in parts)
        return Translations((Translation(source, text, -0.5, -1.0, (1,), True, parts=len(parts)),))

    def translate_parts(
        self,
        texts: Sequence[str],
        is_first: Sequence[bool],
        *,
        beam_size: int,
        n_best: int,
        length_penalty: float,
        attention: bool,
        progress: Callable[[int], None],
    ) -> list[Translations]:
        self.batches.append(list(texts))
        while not self.opened.wait(0.01):
            progress(0)
        if "bug" in texts:
            raise ZeroDivisionError("in /home/someone/regard/secret.py")
        answers = [Translation(text, text[::-1], -0.12345, -1.0, (1,), True) for text in texts]
        return [Translations((answer,) * n_best) for answer in answers]


@dataclass
class Site:
    """A server without a socket.

    Attributes:
        turner: Its model.
        service: What answers.
        app: The routes, guarded.
    """

    turner: Turner
    service: Service
    app: Any
    statuses: list[int] = field(default_factory=list)

    async def ask(self, method: str, path: str, **options: Any) -> httpx.Response:
        """One request."""
        transport = httpx.ASGITransport(app=self.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await client.request(method, path, **options)

    def get(self, path: str, **options: Any) -> httpx.Response:
        """One request by GET."""
        return asyncio.run(self.ask("GET", path, **options))

    def post(self, path: str, members: Any, **options: Any) -> httpx.Response:
        """One request by POST."""
        return asyncio.run(self.ask("POST", path, json=members, **options))


@pytest.fixture
def site() -> Callable[..., Site]:
    """Makes a server of one run, with limits and what else ``make_app`` takes."""

    def make(limits: Limits | None = None, **options: Any) -> Site:
        turner = Turner()
        service = Service({"turner": turner}, limits or Limits())  # type: ignore[dict-item]
        return Site(turner, service, make_app(service, **options))

    return make


def refusal(answer: httpx.Response, status: int) -> str:
    """The sentence of a refusal, which has the one form of all."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    error = json.loads(answer.content)["error"]
    assert set(error) - {"id"} == {"code", "message"}
    assert error["code"].replace("_", "").isalpha()
    assert "Traceback" not in answer.text
    assert "/home" not in answer.text
    return str(error["message"])
