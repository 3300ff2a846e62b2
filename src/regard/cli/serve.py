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
from regard.cli.output import note
from regard.devices.kinds import AUTO, Precision, check_device_name
from regard.errors import DataError, SettingError

if TYPE_CHECKING:
    from regard.server.served import Served

_MOST_PORTS = 65535
_NEEDED = ("fastapi", "prometheus_client", "uvicorn")


def serve(
    *runs: Path,
    model: Annotated[tuple[Path, ...], Parameter(show_default=False)] = (),
    host: str = "127.0.0.1",
    port: int = 8000,
    token: str | None = None,
    max_batch: int = 64,
    queue: int = 2000,
    timeout: float = 30.0,
    max_length: int = 10_000,
    precision: Precision = "auto",
    device: str = AUTO,
) -> None:
    """Serve runs and Hugging Face models over HTTP, with a page to type into and to look inside.

    Example: `regard serve regard-demo`, then open http://127.0.0.1:8000

    Example: `regard serve --model gpt2-folder`

    On the page heads and whole layers can be muted or scaled; the answers before and after stand
    side by side. Of a Hugging Face model a causal one continues what is typed, a masked one fills
    its mask in, a classifier says its label, an encoder-decoder writes; others are looked at.

    `/docs` describes the routes, `/metrics` is for Prometheus. Requests that come at the same time
    are answered together: runs of translation translate, others say labels, tags, spans. SIGTERM or
    Ctrl-C answers what was accepted, then stops.

    Args:
        runs: The run folders; requests name them as the folders are named.
        model: The folder of a Hugging Face model; give it several times for several.
        host: Where to listen. Anything but loopback lets other machines in: set a token.
        port: 0 takes a free one.
        token: What clients must send as `Authorization: Bearer TOKEN`.
        max_batch: Sentences translated at once.
        queue: Sentences that may wait; beyond that, requests are refused with 503.
        timeout: Seconds after which a request is given up with 504.
        max_length: Characters of one text.
        precision: What weights are kept in: `int8` takes a quarter of the memory and is faster of
            large models, and rounds; `auto` rounds nothing.
        device: Where it works: `auto` takes a GPU if there is one; `cpu`; `cuda`, or `cuda:1` for
            the second GPU; `mps` for that of a Mac.
    """
    _check_installed()
    check_device_name("--device", device)
    from regard.server import Limits
    from regard.server import serve as serve_runs
    from regard.server.guard import loopback_hosts

    if not 0 <= port <= _MOST_PORTS:
        raise SettingError(f"--port must be from 0 to {_MOST_PORTS}; got {port}.")
    limits = Limits(
        max_batch=max_batch,
        queue=queue,
        timeout=timeout,
        max_length=max_length,
    )
    if token is not None and (not token.isascii() or not token.isprintable() or not token.strip()):
        raise SettingError("token must be printable ASCII; got something else. Make it of letters.")
    served = _load([*runs, *model], set(model), precision, device)
    logging.basicConfig(stream=sys.stderr, format="%(asctime)s %(message)s", level=logging.INFO)
    if loopback_hosts(host) is None and token is None:
        note(f"warning: whoever reaches {host} can ask this server. Set a --token.")
    names = ", ".join(served)
    serve_runs(
        served,
        host=host,
        port=port,
        token=token,
        limits=limits,
        ready=lambda address: note(f"serving {names} at {address} (Ctrl-C to stop)"),
    )


def _check_installed() -> None:
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        raise SettingError(
            f"regard serve must have {' and '.join(_NEEDED)}; got no {' and no '.join(missing)}. "
            "Install them: pip install 'regard[serve]'."
        )


def _load(
    folders: Sequence[Path], models: Collection[Path], precision: Precision, device: str
) -> "dict[str, Served]":
    """The models by the names of their folders."""
    from regard.inference import Predictor
    from regard.inference.checkpoint_predictor import CheckpointPredictor

    if not folders:
        raise SettingError(
            "RUN must name a run folder, or --model one of Hugging Face's; got nothing. "
            "Try: regard serve regard-demo"
        )
    served: dict[str, Served] = {}
    for folder in folders:
        name = Path(os.path.realpath(folder)).name
        if name in served:
            raise SettingError(
                f"RUN folders must have different names; got {name!r} twice. Rename one of them."
            )
        if folder in models or is_checkpoint(folder):
            checkpoint = CheckpointPredictor.load(folder, device=device)
            with suppress(DataError):  # not every vocabulary has it
                checkpoint.look_at(".")  # a model that cannot be looked at is refused now
            served[name] = checkpoint
            continue
        predictor = Predictor.load(folder, precision=precision, device=device)
        note(f"warming {name} up; the first time, its loops are compiled: up to two minutes")
        predictor.warm_up()
        served[name] = predictor
    return served
