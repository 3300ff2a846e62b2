"""A thread that works alone, and the number of threads that others have."""

from threading import Thread

import pytest
import torch

from regard.kernels import libraries


@pytest.fixture(autouse=True)
def three_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


def in_a_new_thread(ask):
    found = []
    thread = Thread(target=lambda: found.append(ask()))
    thread.start()
    thread.join()
    return found[0]


def asked_alone():
    with libraries.alone():
        inside = torch.get_num_threads()
    return inside, torch.get_num_threads()


def test_a_thread_has_its_number_again_when_it_was_alone():
    assert asked_alone() == (1, 3)
    assert in_a_new_thread(asked_alone) == (1, 3)


def test_threads_that_begin_meanwhile_are_not_alone():
    with libraries.alone():
        assert in_a_new_thread(torch.get_num_threads) == 3


def test_what_fails_alone_leaves_the_number_as_it_was():
    with pytest.raises(ValueError, match="no"), libraries.alone():
        raise ValueError("no")
    assert torch.get_num_threads() == 3
