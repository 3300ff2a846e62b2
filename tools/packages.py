"""The packages that people install, built and used where the repository is not.

python -m tools.packages    wheel and sdist, and the wheel in use from a folder of its own
"""

import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
# What somebody does first; each line is a program in a process of its own.
_USES = (
    "import regard; assert regard.__file__.startswith({folder!r}), regard.__file__",
    "from regard.cli import run_command as run; assert run(['demo']) == 0",
    "from regard.cli import run_command as run; assert run(['train', 'demo', '--run', 'run',"
    " '--set', 'training.updates=2', '--set', 'training.validate_every=2']) == 0",
    "from regard.cli import run_command as run; assert run(['look', 'run', '我爱中国']) == 0",
    "from regard.cli import run_command as run; assert run(['settings', 'training']) == 0",
    "from pathlib import Path; assert '<script' in Path('attention.html').read_text('utf-8')",
)


def build(folder: Path, source: Path = ROOT) -> tuple[Path, Path]:
    """A wheel and an sdist of a source tree, in a folder."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-t", "sdist"]
    subprocess.run([*command, "-d", folder], cwd=source, check=True, capture_output=True)
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, sdist


def names(wheel: Path) -> set[str]:
    """Names of the files in a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def wheel_of(sdist: Path, folder: Path) -> Path:
    """The wheel that is built from an sdist alone."""
    with tarfile.open(sdist) as archive:
        archive.extractall(folder / "source", filter="data")
    (source,) = (folder / "source").iterdir()
    return build(folder / "again", source)[0]


def use(wheel: Path, folder: Path) -> None:
    """Use a wheel from a folder that holds nothing else of ours.

    Its requirements are those of this environment; what is imported of ours is the wheel's.
    """
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "installed")
    (folder / "work").mkdir()
    environment = {**os.environ, "PYTHONPATH": str(folder / "installed")}
    for code in _USES:
        command = [sys.executable, "-c", code.format(folder=str(folder))]
        done = subprocess.run(
            command, cwd=folder / "work", env=environment, check=False, capture_output=True
        )
        if done.returncode:
            raise RuntimeError(f"{code} must work; got:\n{done.stderr.decode()}")


def main() -> None:
    """Build, compare and use the packages."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        wheel, sdist = build(folder / "built")
        own, again = names(wheel), names(wheel_of(sdist, folder))
        if own != again:
            raise RuntimeError(f"the sdist must hold what the wheel does; got {own ^ again}.")
        use(wheel, folder)
        print(f"{wheel.name}: {len(own)} files, {wheel.stat().st_size:,} bytes; used")
        print(f"{sdist.name}: {sdist.stat().st_size:,} bytes; the same wheel comes of it")


if __name__ == "__main__":
    main()
