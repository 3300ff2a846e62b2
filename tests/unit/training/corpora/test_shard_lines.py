import pytest

from regard.errors import DataError
from regard.training.corpora.scanning import chunks


def write(path, count, name="line"):
    path.write_text("".join(f"{name} {n}\n" for n in range(1, count + 1)), encoding="utf-8")
    return path, None


def numbers(found):
    return [(chunk.shard[0].name, list(chunk.numbers)) for chunk in found]


def test_chunks_do_not_go_beyond_their_shard(tmp_path):
    shards = [write(tmp_path / "a", 9), write(tmp_path / "b", 3)]
    found = list(chunks(shards, [9, 3]))
    assert numbers(found) == [("a", [*range(1, 8)]), ("a", [8, 9]), ("b", [1, 2, 3])]
    assert found[1].lines == [b"line 8\n", b"line 9\n"]
    assert found[1].header == b"line 1\n"


@pytest.mark.parametrize("skip", range(5))
def test_chunks_can_be_taken_up_at_any(tmp_path, skip):
    shards = [write(tmp_path / "a", 9), write(tmp_path / "b", 8)]
    assert list(chunks(shards, [9, 8], skip=skip)) == list(chunks(shards, [9, 8]))[skip:]


def test_what_is_held_out_at_the_end_is_left_out(tmp_path):
    shards = [write(tmp_path / "a", 9), write(tmp_path / "b", 8)]
    assert numbers(chunks(shards, [9, 8], until=10))[-1] == ("b", [1])
    assert numbers(chunks(shards, [9, 8], until=8))[-1] == ("a", [8])


def test_sources_and_targets_go_together(tmp_path):
    (source, _), (target, _) = write(tmp_path / "a", 9, "s"), write(tmp_path / "b", 9, "t")
    last = list(chunks([(source, target)], [9]))[-1]
    assert (last.lines, last.targets) == ([b"s 8\n", b"s 9\n"], [b"t 8\n", b"t 9\n"])
    assert [line.where for line in last.decoded_targets()] == [f"{target}:8", f"{target}:9"]


@pytest.mark.parametrize(("left", "right", "shorter"), [(3, 2, "b"), (2, 3, "a")])
def test_different_numbers_of_lines_are_an_error(tmp_path, left, right, shorter):
    (source, _), (target, _) = write(tmp_path / "a", left), write(tmp_path / "b", right)
    with pytest.raises(DataError, match=rf"as many lines as each other; \S+/{shorter} ends before"):
        list(chunks([(source, target)], [3]))


def test_a_shard_that_lost_lines_is_an_error(tmp_path):
    with pytest.raises(DataError, match="must stay as it is while it is read; it has fewer lines"):
        list(chunks([write(tmp_path / "a", 9)], [10]))


def test_rows_of_csv_stay_whole_and_are_as_tsv_has_them(tmp_path):
    rows = "".join(f'"s {n}\n, again",t {n}\n' for n in range(8))
    path = tmp_path / "a.csv"
    path.write_text(f"source,target\n{rows}", encoding="utf-8")
    first, second = chunks([(path, None)], [9])
    assert (first.ending, first.header, first.lines[1]) == (
        ".tsv",
        b"source\ttarget\n",
        b"s 0 , again\tt 0\n",
    )
    assert (list(second.numbers), second.lines[-1]) == ([8, 9], b"s 7 , again\tt 7\n")
