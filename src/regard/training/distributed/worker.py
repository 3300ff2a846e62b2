"""Starts one process of a training: ``python -m regard.training.distributed.worker PROGRAM``.

The process ends with the one that launched it, from its first moment on.
"""

import ctypes
import os
import signal
import sys

from regard.training.distributed.launching import LAUNCHED

_ON_PARENTS_DEATH = 1  # PR_SET_PDEATHSIG of linux/prctl.h


def main() -> None:
    """Become ``sys.executable`` with the arguments; Linux then sends SIGTERM as the parent ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_ON_PARENTS_DEATH, signal.SIGTERM)  # which exec keeps
    if os.getppid() == int(os.environ[LAUNCHED]):  # it may have ended before
        os.execv(sys.executable, [sys.executable, *sys.argv[1:]])


if __name__ == "__main__":
    main()
