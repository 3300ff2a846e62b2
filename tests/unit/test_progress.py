"""Long work shows its progress on a display, and nowhere else."""

from contextlib import contextmanager

from regard.progress import displaying, is_displayed, progress, track
from regard.text import read_lines


class Display:
    def __init__(self):
        self.events = []

    @contextmanager
    def __call__(self, name, total):
        self.events.append((name, total))
        yield self.events.append
        self.events.append(f"{name} is over")


def test_nothing_is_shown_without_a_display():
    assert not is_displayed()
    with progress("nothing") as advance:
        advance(0.5)
    assert list(track("nothing", range(3), 3)) == [0, 1, 2]


def test_work_shows_its_name_its_total_and_each_advance():
    display = Display()
    with displaying(display):
        assert sum(track("counting", range(257), 257)) == 256 * 257 / 2
        with displaying(None), progress("hidden") as advance:
            advance(1.0)
    assert not is_displayed()
    assert display.events == [("counting", 257), 128, 128, 1, "counting is over"]


def test_reading_shows_how_far_a_file_was_read(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("line\n" * 10_000, encoding="utf-8")
    display = Display()
    with displaying(display):
        assert sum(1 for _ in read_lines(path)) == 10_000
    first, *fractions, last = display.events
    assert (first, last) == (("reading a.txt", 1.0), "reading a.txt is over")
    assert 0 < sum(fractions) <= 1
