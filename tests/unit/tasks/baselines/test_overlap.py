"""Baselines of word overlap say the same in every process, whatever order its sets are in."""

import os
import subprocess
import sys

SHARES = """
from regard.tasks.baselines.sentences import SlidingWindow
from regard.tasks.baselines.labels import WordOverlap

words = [f"w{place}" for place in range(60)]
texts = [" ".join(words[first:]) for first in range(40)]
overlap = WordOverlap([(text, other, text[:2]) for text in texts for other in texts])
context = " ".join(" ".join(words[: place + 1]) for place in range(60))
print([overlap._share(text, texts[20]) for text in texts])
print([SlidingWindow(()).shared(text, texts[20], context) for text in texts])
"""


def shares(seed):
    environment = {**os.environ, "PYTHONHASHSEED": str(seed)}
    command = [sys.executable, "-c", SHARES]
    return subprocess.run(command, env=environment, capture_output=True, check=True).stdout


def test_shares_do_not_depend_on_the_order_of_sets():
    assert shares(1) == shares(2) == shares(3)
