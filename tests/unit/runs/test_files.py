import os

import pytest

from regard.errors import RunError
from regard.files import fill_file, sync_file
from regard.runs import DamageError
from regard.runs.files import (
    append,
    checksum,
    cut,
    make_folder,
    new_folder,
    read_checked,
    read_file,
    remove_folder,
    tidy,
)


@pytest.mark.usefixtures("small_files")
def test_without_room_no_part_of_an_addition_is_left(tmp_path):
    append(tmp_path / "a", b"x" * 800 + b"\n")
    with pytest.raises(RunError, match="must fit on its disk"):
        append(tmp_path / "a", b"y" * 800 + b"\n")
    assert (tmp_path / "a").read_bytes() == b"x" * 800 + b"\n"


@pytest.mark.usefixtures("small_files")
def test_without_room_the_old_folder_stays_and_nothing_else(tmp_path):
    with new_folder(tmp_path / "a") as folder:
        fill_file(folder / "f", b"old")
    with pytest.raises(RunError, match="/a must fit on its disk"), new_folder(tmp_path / "a") as f:
        fill_file(f / "f", b"x" * 1500)
    assert (tmp_path / "a" / "f").read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_an_exception_in_the_block_leaves_no_folder(tmp_path):
    def fill_and_fail():
        with new_folder(tmp_path / "a") as folder:
            fill_file(folder / "f", b"")
            raise KeyError

    with pytest.raises(KeyError):
        fill_and_fail()
    assert list(tmp_path.iterdir()) == []


def test_tidy_takes_away_the_unfinished_and_brings_back_the_replaced(tmp_path):
    for name in (".tmp-a", ".old-b", ".old-c", "c"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "f").write_text(name)
    (tmp_path / ".tmp-file").write_text("")
    tidy(tmp_path)
    assert {p.name: (p / "f").read_text() for p in tmp_path.iterdir()} == {"b": ".old-b", "c": "c"}


def test_a_folder_half_removed_is_not_seen(tmp_path, monkeypatch):
    make_folder(tmp_path / "a")
    monkeypatch.setattr(os, "rmdir", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        remove_folder(tmp_path / "a")
    assert not (tmp_path / "a").exists()


def test_cut_shortens_and_never_lengthens(tmp_path):
    path = tmp_path / "a"
    cut(path, 0)
    assert not path.exists()
    append(path, b"12345")
    assert sync_file(path) == 5
    cut(path, 9)
    assert path.read_bytes() == b"12345"
    cut(path, 2)
    assert path.read_bytes() == b"12"


def test_a_checksum_that_does_not_fit_is_damage(tmp_path):
    append(tmp_path / "a", b"1")
    assert read_checked(tmp_path / "a", checksum(b"1")) == b"1"
    with pytest.raises(
        DamageError, match=r"/a must have the recorded sha256 d4735e3a265e…; it has another"
    ):
        read_checked(tmp_path / "a", checksum(b"2"))


def test_a_missing_file_is_damage_and_a_folder_in_its_place_is_not(tmp_path):
    with pytest.raises(DamageError, match="got 'No such file or directory'"):
        read_file(tmp_path / "a")
    with pytest.raises(RunError, match="got 'Is a directory'") as caught:
        read_file(tmp_path)
    assert not isinstance(caught.value, DamageError)
