"""Where a run is, or can be made."""

from pathlib import Path

from regard.errors import RunError
from regard.runs.card import CARD_FILE, RECIPE_FILE
from regard.runs.files import explain_path, make_folder, tidy
from regard.runs.lock import Lock

# What a `create` that was killed may leave, and the next one may write over; or what stands there.
_BEFORE_CARD = {"lock", RECIPE_FILE}


def is_run(path: str | Path) -> bool:
    """Whether a run has been made at ``path``, of whatever version and however damaged.

    Args:
        path: Where its folder may be.

    Raises:
        RunError: The system does not say, since the path is too long, or is not ours to look into.

    Example:
        >>> import tempfile
        >>> from regard.runs import Run
        >>> home = Path(tempfile.mkdtemp())
        >>> Run.create(home / "run", {"task": "translation"}, "translation").close()
        >>> is_run(home / "run"), is_run(home)
        (True, False)
    """
    with explain_path(Path(path)):
        return (Path(path) / CARD_FILE).exists()


def lock_new(path: Path) -> Lock:
    """The lock of a folder in which a run can be made, and which is made itself if need be."""
    make_folder(path)
    if is_run(path):
        Lock(path).release()  # whoever has made it meanwhile may be training there
    _check_empty(path)
    lock = Lock(path)
    try:
        _check_empty(path)
        tidy(path)
    except BaseException:
        lock.release()
        raise
    return lock


def _check_empty(path: Path) -> None:
    if is_run(path):
        raise RunError(
            f"{path} must be a new folder; it already holds a run, made since this one started."
            " The same command goes on with it; to begin anew, choose another folder: --run FOLDER."
        )
    contents = {item.name for item in path.iterdir() if not item.name.startswith(".tmp-")}
    if contents - _BEFORE_CARD:
        names = ", ".join(sorted(contents - _BEFORE_CARD)[:3])
        raise RunError(f"{path} must be a new or empty folder; it holds {names}.")
