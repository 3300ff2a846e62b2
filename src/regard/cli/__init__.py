"""The command line: parse, call, print. Torch is loaded by the commands, not by ``--help``."""

from regard.cli.app import main, run_command

__all__ = ["main", "run_command"]
