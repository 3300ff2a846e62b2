"""The packages that people install, built and used where the repository is not.

python -m tools.packages    wheel and sdist, what they weigh, and the wheel in an environment
"""

import os
import re
import shlex
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
# What somebody does after the README's first commands.
_USES = """
regard train demo --run run --set training.updates=2 --set training.validate_every=2
regard look run 我爱中国
regard settings training
"""


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


def first_commands() -> Iterator[list[str]]:
    """Words of the commands that the README shows first, without the installation."""
    readme = (ROOT / "README.md").read_text("utf-8")
    (block,) = re.findall(
        r"^## Try it\n+```bash\n(.*?)^```", readme, flags=re.DOTALL | re.MULTILINE
    )
    for line in (block + _USES).splitlines():
        words = shlex.split(line, comments=True)
        if words and words[0] != "pip":
            yield words


def use(wheel: Path, folder: Path) -> None:
    """Install a wheel into an environment, and use it where there is nothing else of ours.

    Requirements are those that this environment has. There is no other program on the path, neither
    a compiler nor git, no font, and a home without a file.
    """
    environment, work = folder / "environment", folder / "work"
    venv.create(environment)
    packages = sysconfig.get_path("purelib", vars={"base": str(environment)})
    required = "\n".join(path for path in sys.path if path.endswith("-packages"))
    (Path(packages) / "requirements.pth").write_text(required, "utf-8")
    pip = [sys.executable, "-m", "pip", "--python", str(environment / "bin" / "python"), "install"]
    subprocess.run([*pip, "--quiet", "--no-deps", "--no-index", str(wheel)], check=True)
    work.mkdir()
    variables = {
        "PATH": str(environment / "bin"),
        "HOME": str(folder / "home"),
        "FONTCONFIG_FILE": os.devnull,
        "LANG": "C.UTF-8",
    }

    def output(program: str, *words: str) -> str:
        command = [str(environment / "bin" / program), *words]
        done: subprocess.CompletedProcess[str] = subprocess.run(
            command, cwd=work, env=variables, check=False, capture_output=True, text=True
        )
        if done.returncode:
            raise RuntimeError(f"{shlex.join([program, *words])} must work; got:\n{done.stderr}")
        return done.stdout

    place = output("python", "-c", "import regard; print(regard.__file__)")
    if not place.startswith(packages):
        raise RuntimeError(f"regard must be that of the wheel; got {place}")
    if (version := output("regard", "--version").strip()) != wheel.name.split("-")[1]:
        raise RuntimeError(f"{wheel.name} must hold its version; got {version}.")
    for words in first_commands():
        output(*words)
    if "<script" not in (work / "attention.html").read_text("utf-8"):
        raise RuntimeError("regard look must write a page; it wrote another thing.")


def megabytes(count: int) -> str:
    """A number of bytes, as people read it."""
    return f"{count / 1e6:.1f} MB"


def main() -> None:
    """Build, compare and use the packages."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        wheel, sdist = build(folder / "built")
        own, again = names(wheel), names(wheel_of(sdist, folder))
        if own != again:
            raise RuntimeError(f"the sdist must hold what the wheel does; got {own ^ again}.")
        use(wheel, folder)
        with zipfile.ZipFile(wheel) as archive:
            unpacked = sum(each.file_size for each in archive.infolist())
        print(
            f"{wheel.name}: {megabytes(wheel.stat().st_size)}, {megabytes(unpacked)} installed in "
            f"{len(own)} files, without its requirements; used"
        )
        print(f"{sdist.name}: {megabytes(sdist.stat().st_size)}; the same wheel comes of it")


if __name__ == "__main__":
    main()
