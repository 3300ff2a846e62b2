"""``regard serve``."""

import logging
import os
import sys
from collections.abc import Collection, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from regard.cli.look import is_checkpoint
from regard.cli.output import note, require
from regard.devices.kinds import AUTO, Precision, check_device_name
from regard.errors import DataError, SettingError

if TYPE_CHECKING:
    from regard.inference.use import InUse

_MOST_PORTS = 65535
_VARIABLE, _LONGEST_TOKEN = "REGARD_TOKEN", 4096
_NEEDED = ("fastapi", "prometheus_client", "uvicorn")


def serve(
    *runs: Path,
    model: Annotated[tuple[Path, ...], Parameter(show_default=False)] = (),
    host: str = "127.0.0.1",
    port: int = 8000,
    token: str | None = None,
    token_file: Path | None = None,
    max_batch: int = 64,
    queue: int = 2000,
    timeout: float = 30.0,
    max_length: int = 10_000,
    precision: Precision | None = None,
    device: str = AUTO,
) -> None:
    """Serve runs and Hugging Face models over HTTP, with a page to type into and to look inside.

    Example: `regard serve tatoeba-zh-en`, then open http://127.0.0.1:8000

    Example: `regard serve --model gpt2-folder`

    On the page heads and whole layers can be muted or scaled; the answers before and after stand
    side by side. Of a Hugging Face model a causal one continues typed text, a masked one fills
    its mask in, a classifier says its label, an encoder-decoder writes; others are looked at.

    `/docs` describes the routes, `/metrics` is for Prometheus. Requests that come at the same time
    are answered together: runs of translation translate, others say labels, tags, spans. SIGTERM or
    Ctrl-C answers accepted requests, then stops.

    Args:
        runs: The run folders; requests name them as the folders are named.
        model: The folder of a Hugging Face model; give it several times for several.
        host: Where to listen. Anything but loopback lets other machines in: set a token.
        port: 0 takes a free one.
        token: Secret of clients, sent as `Authorization: Bearer TOKEN`. All users of this machine
            can read it in its list of processes; a file, or the variable REGARD_TOKEN, keeps it.
        token_file: A file with the token.
        max_batch: Sentences translated at once.
        queue: Sentences that may wait; beyond that, requests are refused with 503.
        timeout: Seconds after which a request is given up with 504.
        max_length: Characters of one text.
        precision: Type of the weights: `int8` takes a quarter of the memory and is faster of
            large models, and rounds; `auto`, the default, rounds nothing.
        device: Where it works: `auto` takes a GPU if there is one; `cpu`; `cuda`, or `cuda:1` for
            the second GPU; `mps` for that of a Mac.
    """
    _check_installed()
    check_device_name("--device", device)
    from regard.server import Limits
    from regard.server import serve as serve_runs
    from regard.server.guard import loopback_hosts
    from regard.server.process import check_address

    if not 0 <= port <= _MOST_PORTS:
        raise SettingError(f"--port must be from 0 to {_MOST_PORTS}; got {port}.")
    limits = Limits(max_batch=max_batch, queue=queue, timeout=timeout, max_length=max_length)
    token = _token(token, token_file)
    if not [folder for folder in runs if not is_checkpoint(folder)]:
        require({"--precision": precision}, "a run")
    check_address(host, port)  # before the minutes that loading may take
    served = _load([*runs, *model], set(model), precision or "auto", device)
    logging.basicConfig(stream=sys.stderr, format="%(asctime)s %(message)s", level=logging.INFO)
    if loopback_hosts(host) is None and token is None:
        note(f"warning: whoever reaches {host} can ask this server. Set a --token-file.")
    names = ", ".join(served)
    serve_runs(
        served,
        host=host,
        port=port,
        token=token,
        limits=limits,
        ready=lambda address: note(f"serving {names} at {address} (Ctrl-C to stop)"),
    )


def _token(token: str | None, file: Path | None) -> str | None:
    """The token by the option, of the file, or of the environment; None where none is given."""
    if token is not None and file is not None:
        raise SettingError("--token must be left out beside --token-file; got both.")
    name = "--token"
    if file is not None:
        name = f"the token in {file}"
        try:
            with file.open("rb") as opened:  # of a pipe too: --token-file <(pass show regard)
                token = opened.read(_LONGEST_TOKEN + 1).decode("utf-8", "replace").strip()
        except OSError as error:
            raise SettingError(
                f"--token-file must be a file that can be read; got {file}: {error.strerror}."
            ) from error
    elif token is None and _VARIABLE in os.environ:
        name, token = _VARIABLE, os.environ[_VARIABLE]
    if token is None:
        return None
    if not (token.isascii() and token.isprintable() and token.strip()):
        got = "something else" if token.strip() else "nothing"
        raise SettingError(f"{name} must be printable ASCII; got {got}. Make it of letters.")
    if len(token) > _LONGEST_TOKEN:
        raise SettingError(f"{name} must be at most {_LONGEST_TOKEN:,} characters long; got more.")
    return token


def _check_installed() -> None:
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        raise SettingError(
            f"regard serve must have {' and '.join(_NEEDED)}; got no {' and no '.join(missing)}. "
            "Install them: pip install 'regard[serve]'."
        )


def _load(
    folders: Sequence[Path], models: Collection[Path], precision: Precision, device: str
) -> "dict[str, InUse]":
    """The models by the names of their folders."""
    from regard.inference.checkpoint import Checkpoint
    from regard.inference.loading import load_run
    from regard.inference.text import MOST_WRITTEN

    if not folders:
        raise SettingError(
            "RUN must name a run folder, or --model one of Hugging Face's; got nothing. "
            "Try: regard serve tatoeba-zh-en"
        )
    served: dict[str, InUse] = {}
    for folder in folders:
        name = Path(os.path.realpath(folder)).name
        if name in served:
            raise SettingError(
                f"RUN folders must have different names; got {name!r} twice. Rename one of them."
            )
        if folder in models or is_checkpoint(folder):
            checkpoint = Checkpoint.load(folder, device=device, max_new_tokens=MOST_WRITTEN)
            checkpoint.check_served(folder)
            with suppress(DataError):  # not every vocabulary has it
                checkpoint.look(".", explain=False)  # one that cannot be looked at is refused now
            served[name] = checkpoint
            continue
        use = load_run(folder, precision=precision, device=device)
        note(f"warming {name} up; the first time, its loops are compiled: up to two minutes")
        use.warm_up()
        served[name] = use
    return served
