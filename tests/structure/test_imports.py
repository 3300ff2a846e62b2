"""Imports go down the list of rooms, and nothing is imported that is not asked for."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_rooms_import_only_what_lies_below_them():
    done = run(sys.executable, "-c", "from importlinter.cli import lint_imports_command as c; c()")
    assert done.returncode == 0, done.stdout + done.stderr
    assert " kept, 0 broken" in done.stdout


def test_an_import_upwards_would_be_found(tmp_path: Path):
    package = tmp_path / "src" / "regard"
    for room in ("attention", "layers"):
        (package / room).mkdir(parents=True)
        (package / room / "__init__.py").write_text("")
    (package / "__init__.py").write_text("")
    (package / "attention" / "__init__.py").write_text("import regard.layers\n")
    (tmp_path / "pyproject.toml").write_text(
        '[tool.importlinter]\nroot_package = "regard"\n[[tool.importlinter.contracts]]\n'
        'name = "order"\ntype = "layers"\ncontainers = ["regard"]\n'
        'layers = ["layers", "attention"]\n'
    )
    done = subprocess.run(
        [sys.executable, "-c", "from importlinter.cli import lint_imports_command as c; c()"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": str(tmp_path / "src"), "PATH": "/usr/bin:/bin"},
    )
    assert done.returncode == 1
    assert "regard.attention -> regard.layers" in done.stdout


# Rooms in the order of their imports, and what is still not loaded after each.
UNWANTED = {
    "regard": ["torch", "numpy", "rich", "sentencepiece"],
    "regard.attention": ["sentencepiece", "sacrebleu", "rich", "cyclopts", "tensorboard"],
    "regard.models": ["sentencepiece", "sacrebleu", "rich", "cyclopts", "tensorboard"],
    "regard.training": ["cyclopts", "tensorboard", "regard.text.phrasebook"],
}


def test_importing_a_room_leaves_out_what_it_does_not_need():
    code = (
        "import sys, importlib\n"
        f"for room, unwanted in {UNWANTED!r}.items():\n"
        "    importlib.import_module(room)\n"
        "    print(room, *(name for name in unwanted if name in sys.modules))\n"
    )
    done = run(sys.executable, "-c", code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == list(UNWANTED)
