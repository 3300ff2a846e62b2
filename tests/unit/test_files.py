import errno
import os
import stat

import pytest

from regard.errors import RunError
from regard.files import check_writable, new_file, write_file


def test_write_file_replaces_the_whole_file(tmp_path):
    write_file(tmp_path / "a", b"first, long")
    write_file(tmp_path / "a", b"second")
    assert (tmp_path / "a").read_bytes() == b"second"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.mark.usefixtures("small_files")
def test_without_room_the_old_file_stays_and_nothing_else(tmp_path):
    write_file(tmp_path / "a", b"old")
    with pytest.raises(RunError, match=r"/a must fit on its disk; got 'File too large'.*Free some"):
        write_file(tmp_path / "a", b"x" * 1500)
    assert (tmp_path / "a").read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_room_that_ends_only_at_the_sync_is_explained(tmp_path, monkeypatch, code):
    def refuse(descriptor):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(RunError, match="must fit on its disk"):
        write_file(tmp_path / "a", b"new")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(RunError, match=r"x/a must be in a folder that exists; there is no .*/x\. "):
        write_file(tmp_path / "x" / "a", b"")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_no_file_to_write(tmp_path):
    with pytest.raises(RunError, match="must be a file to write; it is a folder"):
        write_file(tmp_path, b"")


@pytest.mark.parametrize("error", [KeyError, KeyboardInterrupt, SystemExit])
def test_an_exception_in_the_block_leaves_the_old_file(tmp_path, error):
    (tmp_path / "a").write_bytes(b"old")

    def fill_and_fail():
        with new_file(tmp_path / "a") as temporary:
            temporary.write_bytes(b"half")
            raise error

    with pytest.raises(error):
        fill_and_fail()
    assert (tmp_path / "a").read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_two_writers_of_a_file_do_not_mix(tmp_path):
    with new_file(tmp_path / "a") as one:
        one.write_bytes(b"one")
        with new_file(tmp_path / "a") as other:
            other.write_bytes(b"other")
    assert (tmp_path / "a").read_bytes() == b"one"


def test_a_link_leads_to_the_new_file(tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "a").symlink_to("deep/b")
    for content in (b"first", b"second"):
        write_file(tmp_path / "a", content)
        assert (tmp_path / "deep" / "b").read_bytes() == content
    assert (tmp_path / "a").is_symlink()


def test_who_may_read_a_file_stays_so(tmp_path):
    (tmp_path / "a").write_bytes(b"mine")
    (tmp_path / "a").chmod(0o600)
    write_file(tmp_path / "a", b"still mine")
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o600


def test_a_name_as_long_as_names_may_be(tmp_path):
    path = tmp_path / ("a" * 251 + ".txt")
    write_file(path, b"content")
    assert path.read_bytes() == b"content"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="a system without pipes that have names")
def test_a_pipe_is_written_as_it_is(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    write_file(tmp_path / "pipe", b"content")
    assert os.read(reader, 100) == b"content"
    os.close(reader)
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


def test_a_file_that_is_protected_is_not_replaced(tmp_path, monkeypatch):
    (tmp_path / "a").write_bytes(b"old")
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # to root all is open
    with pytest.raises(RunError, match="/a must be writable; got 'Permission denied'"):
        check_writable(tmp_path / "a")
