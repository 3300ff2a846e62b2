"""Operators that a call runs, and the memory that it takes.

Read from torch's profiler, which sees what kernels and custom operators do inside as well.
"""

from collections import Counter
from itertools import accumulate
from typing import NamedTuple

from torch.profiler import ProfilerActivity, profile


class Profile(NamedTuple):
    operators: Counter[str]
    peak: int
    largest: int


def profiled(call):
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        result = call()
    del result
    events = profiler.profiler.kineto_results.events()
    memory = sorted((e.start_ns(), e.nbytes()) for e in events if e.name() == "[memory]")
    changes = [change for _, change in memory]
    return Profile(
        Counter(event.name() for event in events),
        max(accumulate(changes), default=0),
        max(changes, default=0),
    )
