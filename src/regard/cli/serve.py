"""``regard serve``."""

import logging
import os
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from regard.cli.output import note
from regard.devices.kinds import AUTO, check_device_name
from regard.errors import SettingError
from regard.layers.choices import Precision

if TYPE_CHECKING:
    from regard.inference import Predictor

_MOST_PORTS = 65535
_NEEDED = ("fastapi", "prometheus_client", "uvicorn")


def serve(
    *runs: Path,
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
    """Serve runs over HTTP, with a page to look inside them.

    Example: `regard serve regard-demo`, then open http://127.0.0.1:8000

    `/docs` describes the routes, `/metrics` is for Prometheus. Requests that come at the same time
    are answered together: runs of translation translate, others say labels, tags, spans. SIGTERM or
    Ctrl-C answers what was accepted, then stops.

    Args:
        runs: The run folders; requests name them as the folders are named.
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
    predictors = _load(runs, precision, device)
    logging.basicConfig(stream=sys.stderr, format="%(asctime)s %(message)s", level=logging.INFO)
    if loopback_hosts(host) is None and token is None:
        note(f"warning: whoever reaches {host} can ask this server. Set a --token.")
    names = ", ".join(predictors)
    serve_runs(
        predictors,
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


def _load(runs: Sequence[Path], precision: Precision, device: str) -> "dict[str, Predictor]":
    """The models by the names of their folders."""
    from regard.inference import Predictor

    if not runs:
        raise SettingError("RUN must name a run folder; got nothing. Try: regard serve regard-demo")
    predictors: dict[str, Predictor] = {}
    for run in runs:
        name = Path(os.path.realpath(run)).name
        if name in predictors:
            raise SettingError(
                f"RUN folders must have different names; got {name!r} twice. Rename one of them."
            )
        predictors[name] = Predictor.load(
            run, precision=precision, device=device, setting="--device"
        )
        note(f"warming {name} up; the first time, its loops are compiled: up to two minutes")
        predictors[name].warm_up()
    return predictors
