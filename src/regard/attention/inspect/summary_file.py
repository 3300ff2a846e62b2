"""Summaries on disk: safetensors with a version, read without trusting what is there."""

import json
from collections.abc import Mapping
from pathlib import Path
from tempfile import NamedTemporaryFile

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from regard.attention.inspect.summary import Summary
from regard.errors import DataError

FORMAT = 1
_KIND = "regard summary"


def save(summary: Summary, path: str | Path) -> None:
    """Write a summary as safetensors, complete or not at all."""
    path = Path(path)
    tensors = {name: each.detach().contiguous() for name, each in summary.tensors().items()}
    numbers = {"bucket": summary.bucket, "start": summary.start, "map": summary.map}
    about = {"kind": _KIND, "format": str(FORMAT), "numbers": json.dumps(numbers)}
    with NamedTemporaryFile(dir=path.parent, prefix=path.name, suffix=".part", delete=False) as at:
        half_written = Path(at.name)
    try:
        save_file(tensors, half_written, about)
        half_written.replace(path)
    except BaseException:
        half_written.unlink(missing_ok=True)
        raise


def load(path: str | Path) -> Summary:
    """Read what ``save`` wrote.

    Raises:
        DataError: The file is missing or damaged, or no summary, or of a newer version.
    """
    path = Path(path)
    if not path.is_file():
        raise DataError(f"{path} must be a file; there is none.")
    try:
        with safe_open(path, framework="pt") as file:
            about = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, ValueError, OSError) as error:
        raise DataError(f"{path} must be a safetensors file; it is damaged: {error}.") from error
    if about.get("kind") != _KIND:
        raise DataError(f"{path} must hold a summary; got other tensors.")
    version = about.get("format", "")
    if version != str(FORMAT):
        raise DataError(
            f"{path} must be of format {FORMAT}; got {version!r}. A newer regard may read it."
        )
    return _summary(path, about, tensors)


def _summary(path: Path, about: Mapping[str, str], tensors: dict[str, Tensor]) -> Summary:
    try:
        numbers = json.loads(about.get("numbers", ""))
        bucket, start = (tuple(map(int, numbers[name])) for name in ("bucket", "start"))
        summary = Summary(**tensors, bucket=bucket, start=start, map=int(numbers["map"]))  # type: ignore[arg-type]
        fits = len(bucket) == len(start) == 2 and summary.fits()
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"{path} must hold a whole summary; it is damaged: {error}.") from error
    if not fits:
        raise DataError(f"{path} must hold a whole summary; its tensors do not fit together.")
    return summary
