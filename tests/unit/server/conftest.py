"""A translator that only turns texts around, and a client without a socket."""

import asyncio
import json
import threading
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
import torch

from regard.decoding import Hypothesis
from regard.inference.sequences import Sequences
from regard.inference.use import Request
from regard.server import Limits, Service, make_app
from regard.tasks import DecodingConfig
from regard.tasks.sequences.sequence_task import EncodedSequences
from regard.tasks.sequences.translations import Translations
from regard.text import Pair, normalize


class Turner(Sequences):
    """Translates a text into itself backwards, once it is let through."""

    def __init__(self):
        data = SimpleNamespace(source_language="zh", target_language="en", max_length=64)
        decoding = DecodingConfig(beam_size=4)
        recipe = SimpleNamespace(
            task="translation",
            model_type="turner",
            data=data,
            decoding=decoding,
            settings=lambda kind: decoding,
        )
        super().__init__(torch.nn.Linear(2, 3), self)
        self.task, self.data, self.of_task = self, data, recipe
        self.opened = threading.Event()
        self.opened.set()
        self.batches = []
        self.longest = 64

    @property
    def recipe(self):
        return self.of_task

    @property
    def explains(self):
        return False

    def parse(self, record, where):
        text = normalize(record)
        return Request(Pair(text, "", (), where), self.encoded_parts(text))

    def encoded_parts(self, text):
        is_long = len(text) > self.longest
        parts = [part for part in text.split("。") if part] if is_long else [text]
        return [EncodedSequences((1,), (), part, n == 0) for n, part in enumerate(parts)]

    def joined(self, source, parts):
        if len(parts) == 1:
            return parts[0]
        text = " ".join(part.best.text for part in parts)
        return Translations(source, (self.written(text, -0.5),), parts=len(parts))

    def written(self, text, score):
        return Hypothesis(tokens=(1,), score=score, log_prob=-1.0, is_finished=True, text=text)

    def answer_parts(self, parts, *, decoding, attention, layers, progress):
        texts = [part.text for part in parts]
        self.batches.append(texts)
        while not self.opened.wait(0.01):
            progress(0)
        if "bug" in texts:
            raise ZeroDivisionError("in /home/someone/regard/secret.py")
        return [
            Translations(text, (self.written(text[::-1], -0.12345),) * decoding.n_best)
            for text in texts
        ]


@dataclass
class Site:
    """A server without a socket."""

    turner: Turner
    service: Service
    app: Any

    async def ask(self, method, path, **options):
        """One request."""
        transport = httpx.ASGITransport(app=self.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await client.request(method, path, **options)

    def get(self, path, **options):
        """One request by GET."""
        return asyncio.run(self.ask("GET", path, **options))

    def post(self, path, members, **options):
        """One request by POST."""
        return asyncio.run(self.ask("POST", path, json=members, **options))


@pytest.fixture
def site():
    """Makes a server of one run, with limits and what else ``make_app`` takes."""

    def make(limits=None, **options):
        turner = Turner()
        service = Service({"turner": turner}, limits or Limits())
        return Site(turner, service, make_app(service, **options))

    return make


def answers_of(service, *requests):
    """Answers to requests that come together, each a path and its members, its bytes, or None."""
    transport = httpx.ASGITransport(app=make_app(service))
    head = {"Content-Type": "application/json"}

    async def every():
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await asyncio.gather(*(one(client, *request) for request in requests))

    def one(client, path, members):
        if members is None:
            return client.get(path)
        content = members if isinstance(members, bytes) else json.dumps(members).encode()
        return client.post(path, content=content, headers=head)

    return asyncio.run(every())


def refusal(answer, status):
    """The sentence of a refusal, which has the one form of all."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    error = json.loads(answer.content)["error"]
    assert set(error) - {"id"} == {"code", "message"}
    assert error["code"].replace("_", "").isalpha()
    assert "Traceback" not in answer.text
    assert "/home" not in answer.text
    return str(error["message"])
