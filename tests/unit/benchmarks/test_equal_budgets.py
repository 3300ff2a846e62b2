"""Equal budgets: seconds are those that the process computes."""

import time

from benchmarks.equal_budgets import cpu_clock

import regard.training.trainer as trainer


def test_waiting_costs_no_budget():
    with cpu_clock():
        start = trainer.time.perf_counter()
        time.sleep(0.2)
        spent = trainer.time.perf_counter() - start
    assert spent < 0.1
    assert trainer.time is time
