"""regard's own side of the comparison by quality: train on given batches, translate given lines.

``… regard_quality train BATCHES RUN --threads 2`` trains Transformer-tiny on every batch of a
batches file, in order, with the schedule of ``joey.settings`` (Adam 0.9/0.98, peak 0.005 after
2,000 updates of linear warm-up, then the inverse square root, label smoothing 0.1), keeps the
result in the folder RUN, and prints one JSON line as ``regard_speed`` does, without a warm-up.

``… regard_quality translate RUN FOLDER --threads 2`` translates ``val`` and ``test_2016_flickr``
of the prepared FOLDER greedily, at most 60 tokens a sentence, and prints one JSON line::

    {"val": {"seconds": 9.1, "lines": ["…"]}, "test_2016_flickr": {"seconds": 8.9, "lines": ["…"]}}

``seconds`` starts with the lines in memory and the model loaded, and ends with text. Exit status
3 says that this side cannot be measured here.
"""

import argparse
import sys
from pathlib import Path

from benchmarks.peers.regard_speed import UNAVAILABLE


def main() -> None:
    """Read the arguments and do one of the two."""
    parser = argparse.ArgumentParser(description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    train = verbs.add_parser("train")
    train.add_argument("batches", type=Path)
    train.add_argument("run", type=Path)
    translate = verbs.add_parser("translate")
    translate.add_argument("run", type=Path)
    translate.add_argument("folder", type=Path)
    for verb in (train, translate):
        verb.add_argument("--threads", type=int, default=2)
    parser.parse_args()
    print("regard has no training loop yet", file=sys.stderr)
    sys.exit(UNAVAILABLE)


if __name__ == "__main__":
    main()
