"""Checkpoints of the Hugging Face Hub: ``hf:OWNER/NAME``, or ``hf:OWNER/NAME@REVISION``.

Weights as safetensors are fetched, and JSON and text beside them; nothing else is, so that there
is nothing that could be unpickled or run.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from regard.errors import DataError, SettingError, excerpt
from regard.interop.checkpoints.models import INDEX, WEIGHTS
from regard.progress import progress

_PREFIX = "hf:"
# Of the folder itself: files in folders below are for other tools.
_FETCHED, _LEFT_OUT = ["*.safetensors", "*.json", "*.txt"], ["*/*"]
_COMMIT = re.compile(r"[0-9a-f]{40}")


def is_hub_name(name: str) -> bool:
    """Whether a name is of the Hub rather than of a folder."""
    return name.startswith(_PREFIX)


def fetch(name: str, *, revision: str | None = None) -> Path:
    """Return the folder of a checkpoint in the cache, fetched where the Hub has newer files.

    Without a connection it is the one in the cache.

    Args:
        name: ``hf:OWNER/NAME``; a revision after ``@`` is a branch, a tag or a commit.
        revision: The commit to take, over the name's; None is the name's, or the main branch.

    Returns:
        The folder, which is named by its commit.

    Raises:
        DataError: There is no such checkpoint, it is not open to all, its weights are no
            safetensors, or it is not in the cache and the Hub cannot be reached.
        SettingError: huggingface_hub is not installed.
    """
    folder = _snapshot(name, revision)
    if not any((folder / file).is_file() for file in (WEIGHTS, INDEX)):
        raise DataError(
            f"{name} must have its weights in {WEIGHTS}; it has not, and no other form is fetched. "
            "Where you trust it, load it with transformers once, and name the folder that "
            "save_pretrained of model and tokenizer writes."
        )
    return folder


def _snapshot(name: str, revision: str | None) -> Path:
    """The folder of a revision in the cache."""
    try:
        from huggingface_hub import HfApi, constants, errors, snapshot_download
    except ImportError as error:
        raise SettingError(
            f"huggingface_hub must be installed to fetch {name}; got none. "
            "Install it: pip install 'regard[interop]'."
        ) from error
    repository, _, named = name.removeprefix(_PREFIX).partition("@")
    revision = commit = revision or named or None
    if commit is None or not _COMMIT.fullmatch(commit):
        commit = None
        with suppress(Exception):  # the download reports the error
            commit = HfApi().model_info(repository, revision=revision).sha
    patterns = {"allow_patterns": _FETCHED, "ignore_patterns": _LEFT_OUT}
    download = partial(snapshot_download, repository, **patterns)
    try:
        if commit is not None:  # which never changes
            with suppress(errors.LocalEntryNotFoundError):
                return Path(download(revision=commit, local_files_only=True))
        with progress(f"fetching {name}"), _without_bars():
            return Path(download(revision=revision))  # the cache learns the branch's commit
    except errors.HFValidationError as error:
        raise DataError(
            f"{name} must be hf: and the name of a model, such as "
            "hf:google-bert/bert-base-chinese; it is not."
        ) from error
    except errors.GatedRepoError as error:
        raise DataError(
            f"{name} must be open to you; its owner asks for consent first. Give it on "
            f"{constants.ENDPOINT}/{repository}, and log in: hf auth login."
        ) from error
    except errors.RevisionNotFoundError as error:
        raise DataError(
            f"{name} must have the revision {revision}; it has none. Leave out @{revision}."
        ) from error
    except errors.RepositoryNotFoundError as error:
        raise DataError(
            f"{name} must be a model on {constants.ENDPOINT}; there is none of that name, or it is "
            "private. Look its name up there; of a private one, log in: hf auth login."
        ) from error
    except Exception as error:  # of the connection, of many kinds
        raise DataError(
            f"{name} must be in the cache, {constants.HF_HUB_CACHE}, where {constants.ENDPOINT} "
            f"cannot be reached; it is not ({excerpt(_reason(error))}). Connect once, or copy its "
            "folder to this machine and name that."
        ) from error


@contextmanager
def _without_bars() -> Iterator[None]:
    """Without the bars of huggingface_hub, which would stay below all that is printed later."""
    from huggingface_hub.utils.tqdm import (
        are_progress_bars_disabled,
        disable_progress_bars,
        enable_progress_bars,
    )

    if are_progress_bars_disabled():
        yield
        return
    disable_progress_bars()
    try:
        yield
    finally:
        enable_progress_bars()


def _reason(error: Exception) -> str:
    """The first cause of an error, in one line."""
    first: BaseException = error
    while first.__cause__ is not None:
        first = first.__cause__
    return " ".join(f"{type(first).__name__}: {first}".split())
