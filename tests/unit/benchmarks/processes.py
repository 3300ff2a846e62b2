"""Processes of their own that need not import torch: each is a fork of one that has done so.

This module imports nothing of ours, and so does a fork: what a module reads from its environment
while it is imported is its own process's.
"""

import multiprocessing
import os
import runpy
import sys
from subprocess import CompletedProcess

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["torch", "torch._dynamo"])  # an optimizer imports the second


def run_module(module, arguments, *, cwd, env, log):
    """Run ``python -m MODULE ARGUMENTS`` in a fork; what it prints is kept in a file."""
    process = _FORKS.Process(target=_start, args=(module, arguments, cwd, env, log))
    process.start()
    process.join()
    return CompletedProcess([module, *arguments], process.exitcode, "", log.read_text("utf-8"))


def _start(module, arguments, cwd, env, log):
    with log.open("wb") as file:
        for stream in (1, 2):
            os.dup2(file.fileno(), stream)
    os.chdir(cwd)
    os.environ.update(env)
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
