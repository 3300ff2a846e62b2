"""Processes of their own that need not import torch: each is a fork of one that has done so.

What is forked has imported nothing of ours, so that what a module reads from its environment while
it is imported is its own process's.
"""

import multiprocessing
import os
import runpy
import sys
from pathlib import Path
from subprocess import CompletedProcess

_FORKS = multiprocessing.get_context("forkserver")
# An optimizer imports the second when it is made.
_FORKS.set_forkserver_preload(["torch", "torch._dynamo"])


def run_module(
    module: str, arguments: list[str], *, cwd: Path, env: dict[str, str], said: Path
) -> CompletedProcess[str]:
    """``python -m MODULE ARGUMENTS`` in a fork; what it prints is kept in a file.

    Args:
        module: What is run.
        arguments: What it is told.
        cwd: The folder it works in.
        env: Its variables, besides those of this process.
        said: The file that gets what it writes to stdout and stderr.

    Returns:
        Its status, and as ``stderr`` what it wrote to either stream.
    """
    process = _FORKS.Process(target=_run, args=(module, arguments, cwd, env, said))
    process.start()
    process.join()
    return CompletedProcess([module, *arguments], process.exitcode, "", said.read_text("utf-8"))


def _run(module: str, arguments: list[str], cwd: Path, env: dict[str, str], said: Path) -> None:
    with said.open("wb") as file:
        for stream in (1, 2):
            os.dup2(file.fileno(), stream)
    os.chdir(cwd)
    os.environ.update(env)
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
