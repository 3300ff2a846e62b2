"""Checkpoints fetched from a hub, which is a server of this machine here."""

import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import huggingface_hub.constants
import pytest

from regard.errors import DataError
from regard.interop.checkpoints.hub import fetch, is_hub_name

COMMIT = "a" * 40
FILES = {
    "config.json": b"{}",
    "vocab.txt": b"the\n",
    "model.safetensors": b"weights",
    "pytorch_model.bin": b"a pickle",
    "modeling_mine.py": b"code",
    "onnx/model.safetensors": b"for another tool",
}
PICKLED = {"config.json": b"{}", "pytorch_model.bin": b"a pickle"}


class Handler(BaseHTTPRequestHandler):
    """Answers what huggingface_hub asks of the Hub for ``me/bert`` and ``me/pickled``."""

    protocol_version = "HTTP/1.1"
    requests: list[str]

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        path = self.path.partition("?")[0]
        self.requests.append(path)
        repository = next((name for name in ("me/bert", "me/pickled") if name in path), "")
        files = {"me/bert": FILES, "me/pickled": PICKLED}.get(repository, {})
        name = path.partition(f"/resolve/{COMMIT}/")[2]
        if "/tree/" in path:
            self.answer([self.entry(name, content) for name, content in files.items()])
        elif path.endswith(("/revision/main", f"/revision/{COMMIT}")) and files:
            self.answer({"id": repository, "sha": COMMIT, "siblings": []})
        elif name in files:
            digest = self.entry(name, files[name])["oid"]
            self.answer(files[name], ETag=f'"{digest}"', **{"X-Repo-Commit": COMMIT})
        else:
            code = "RevisionNotFound" if files else "RepoNotFound"
            self.answer(b"", status=404, **{"X-Error-Code": code})

    @staticmethod
    def entry(name, content):
        digest = hashlib.sha1(content, usedforsecurity=False).hexdigest()
        return {"type": "file", "path": name, "size": len(content), "oid": digest}

    def answer(self, content, status=200, **headers):
        content = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)


@pytest.fixture
def hub(monkeypatch, tmp_path):
    """The server, with an empty cache; ``requests`` are the paths that it was asked for."""
    handler = type("Recorder", (Handler,), {"requests": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.requests = handler.requests
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    address = f"http://127.0.0.1:{server.server_port}"
    constants = {
        "ENDPOINT": address,
        "HUGGINGFACE_CO_URL_TEMPLATE": f"{address}/{{repo_id}}/resolve/{{revision}}/{{filename}}",
        "HF_HUB_CACHE": str(tmp_path / "cache"),
        "HF_HUB_DISABLE_PROGRESS_BARS": True,
    }
    for name, value in constants.items():
        monkeypatch.setattr(huggingface_hub.constants, name, value)
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_only_weights_and_texts_are_fetched(hub):
    folder = fetch("hf:me/bert")
    assert folder.name == COMMIT
    names = ["config.json", "model.safetensors", "vocab.txt"]
    assert sorted(path.name for path in folder.iterdir()) == names
    assert (folder / "model.safetensors").read_bytes() == FILES["model.safetensors"]
    assert not any("pytorch_model" in path or "onnx" in path for path in hub.requests)


def test_a_commit_that_is_in_the_cache_is_not_asked_for(hub):
    folder = fetch("hf:me/bert")
    hub.requests.clear()
    assert fetch("hf:me/bert", revision=COMMIT) == folder
    assert fetch(f"hf:me/bert@{COMMIT}") == folder
    assert hub.requests == []


def test_the_cache_is_enough_where_the_hub_cannot_be_reached(hub, monkeypatch):
    folder = fetch("hf:me/bert")
    assert fetch("hf:me/bert") == folder  # of the cache already
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    assert fetch("hf:me/bert") == folder
    message = r"hf:me/other must be in the cache, .*cache, where http://127.* cannot be reached; it"
    with pytest.raises(DataError, match=message):
        fetch("hf:me/other")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("hf:me/other", r"hf:me/other must be a model on http://127.*; there is none of that name"),
        ("hf:me/bert@new", r"hf:me/bert@new must have the revision new; it has none. Leave out @n"),
        ("hf:me/bert/x", r"hf:me/bert/x must be hf: and the name of a model, such as hf:google-"),
        ("hf:me/pickled", r"hf:me/pickled must have its weights in model.safetensors; it has not"),
    ],
)
def test_a_name_that_cannot_be_fetched_is_explained(hub, name, message):
    with pytest.raises(DataError, match=message):
        fetch(name)


def test_names_of_the_hub_begin_so():
    assert [is_hub_name(name) for name in ("hf:bert", "bert", "runs/hf:x")] == [True, False, False]
