"""Long work is told to whoever watches, and to nobody else."""

from contextlib import contextmanager

from regard.text import read_lines
from regard.watching import counted, is_watched, watching, working


class Watching:
    def __init__(self):
        self.told = []

    @contextmanager
    def __call__(self, name):
        self.told.append(name)
        yield self.told.append
        self.told.append(f"{name} is over")


def test_nobody_is_told_unless_somebody_asks():
    assert not is_watched()
    with working("nothing") as tell:
        tell(0.5)
    assert list(counted("nothing", range(3), 3)) == [0, 1, 2]


def test_work_tells_its_name_and_the_share_that_is_done():
    watcher = Watching()
    with watching(watcher):
        assert sum(counted("counting", range(256), 256)) == 255 * 128
        with watching(None), working("hidden") as tell:
            tell(1.0)
    assert not is_watched()
    assert watcher.told == ["counting", 0.0, 0.5, "counting is over"]


def test_reading_tells_how_far_a_file_was_read(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("line\n" * 10_000, encoding="utf-8")
    watcher = Watching()
    with watching(watcher):
        assert sum(1 for _ in read_lines(path)) == 10_000
    first, *shares, last = watcher.told
    assert (first, last) == ("reading a.txt", "reading a.txt is over")
    assert shares == sorted(shares)
    assert 0 < shares[-1] <= 1
