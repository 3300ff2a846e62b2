"""regard's own side of the speed measurement, with the interface all sides share.

``python -m benchmarks.peers.regard_speed BATCHES --updates 12 --warmup 2 --threads 2`` trains
Transformer-tiny on the first batches of a batches file (``batches.py`` says what is in it) and
prints one JSON line::

    {"updates": 10, "tokens": 18011, "seconds": 5.2, "loss": 7.71}

``updates``, ``tokens`` (target tokens and sentence ends, no padding) and ``seconds`` are of what
comes after the warm-up: padding the ids, forward, loss, backward and the optimizer. ``loss`` is
their mean training loss, smoothed, per token: it shows that the work was done. Exit status 3 says
that this side cannot be measured here.

The ids of regard's own vocabularies have padding at 0 and unknown at 1, those of the file the
other way round: swap the two.
"""

import argparse
import sys
from pathlib import Path

UNAVAILABLE = 3


def main() -> None:
    """Read the arguments and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("batches", type=Path, help="a batches file")
    parser.add_argument("--updates", type=int, default=12, help="how many batches to train on")
    parser.add_argument("--warmup", type=int, default=2, help="of these, not timed")
    parser.add_argument("--threads", type=int, default=2)
    parser.parse_args()
    print("regard has no training loop yet", file=sys.stderr)
    sys.exit(UNAVAILABLE)


if __name__ == "__main__":
    main()
