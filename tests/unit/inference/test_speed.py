"""Speed of an evaluation: all examples together, some alone, and the memory."""

import torch

from regard.inference.report import answer_timed


def test_examples_are_answered_together_and_some_alone():
    calls, done = [], []

    def answer(examples, *, progress=None):
        calls.append(len(examples))
        if progress is not None:
            progress(len(examples))
        return [-one for one in examples]

    answers, speed = answer_timed(
        answer, range(50), device=torch.device("cpu"), progress=done.append
    )
    assert list(answers) == [-one for one in range(50)]
    assert done == [50]
    assert calls[:2] == [1, 50]
    assert set(calls[2:]) == {1}
    assert len(calls) <= 2 + 20
    figures = speed.to_dict()
    assert all(figures[name] > 0 for name in ("per_second", "alone_ms", "peak_mib", "threads"))
    assert f"{speed.per_second:,.1f} a second" in str(speed)
