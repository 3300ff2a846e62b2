"""Make the environment of Joey NMT: ``python -m benchmarks.peers.setup_joey VENV``.

Joey NMT 2.3.0 needs three things to run beside today's torch: torch installed first, so that no
other build of it is drawn in; ``importlib_metadata``, which it imports and does not ask for; and
one line of its tokenizer taken out, which calls a method that sentencepiece no longer has. What
that line did, limiting the pieces to those of the vocabulary, changes nothing here: the
vocabulary is the model's own list of pieces. Running the script again changes nothing.
"""

import argparse
import subprocess
import sys
import venv
from pathlib import Path

TORCH = "2.13.0"
JOEY = "2.3.0"
_GONE = "self.spm.SetVocabulary(vocab._itos)"
_INSTEAD = "pass  # sentencepiece has no SetVocabulary any more"


def main() -> None:
    """Read the arguments and prepare the environment."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=_Raw)
    parser.add_argument("venv", type=Path, help="folder of the environment, outside the repository")
    parser.add_argument("--index", help="package index for torch, for instance its CPU index")
    arguments = parser.parse_args()
    prepare(arguments.venv, torch_index=arguments.index)


def prepare(folder: Path, *, torch_index: str | None = None) -> None:
    """Create the environment where it is missing, install, mend the tokenizer, and try it."""
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
    index = ["--index-url", torch_index] if torch_index else []
    _run(python, "-m", "pip", "install", "--quiet", *index, f"torch=={TORCH}")
    _run(
        *(python, "-m", "pip", "install", "--quiet"),
        *(f"torch=={TORCH}", f"joeynmt=={JOEY}", "importlib_metadata"),
    )
    mended = mend_tokenizer(_installed_tokenizer(python))
    print("tokenizer:", "mended" if mended else "was mended already")
    _run(python, "-c", "import joeynmt.training, torch; print('torch', torch.__version__)")


def mend_tokenizer(path: Path) -> bool:
    """Take the call of the vanished method out of the installed tokenizer."""
    text = path.read_text("utf-8")
    if _INSTEAD in text:
        return False
    if text.count(_GONE) != 1:
        sys.exit(f"{path}: expected one line with {_GONE}; is this Joey NMT {JOEY}?")
    path.write_text(text.replace(_GONE, _INSTEAD), "utf-8")
    return True


def _installed_tokenizer(python: Path) -> Path:
    # Found without importing joeynmt, whose __init__ may fail before it is complete.
    code = "import importlib.util as u; print(u.find_spec('joeynmt').submodule_search_locations[0])"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    return Path(done.stdout.strip()) / "tokenizers.py"


def _run(*command: str | Path) -> None:
    subprocess.run([str(part) for part in command], check=True)


class _Raw(argparse.RawDescriptionHelpFormatter):
    """Keeps the module docstring's lines as they are."""


if __name__ == "__main__":
    main()
