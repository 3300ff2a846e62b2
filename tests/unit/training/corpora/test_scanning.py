"""Lines of a text in chunks, a sample of them, and those held out."""

import pytest

from regard.errors import DataError
from regard.training.corpora import scanning
from regard.training.corpora.scanning import chunks, read_chunks, scan, write_lines


@pytest.fixture
def shards(tmp_path):
    def write(*texts):
        for number, lines in enumerate(texts):
            (tmp_path / f"{number}.txt").write_bytes(b"".join(line + b"\n" for line in lines))
        return [(tmp_path / f"{number}.txt", None) for number in range(len(texts))]

    return write


LINES = [f"line {n}".encode() for n in range(200)]


def raw_texts(lines):
    return {line.raw[0] for line in lines}


def test_lines_of_each_shard_are_counted(shards):
    scanned = scan(shards(LINES[:3], [], LINES[:5]), None)
    assert (scanned.lines, scanned.until, scanned.held) == ([3, 0, 5], 8, [])
    assert scanned.headers == [b"line 0\n", b"", b"line 0\n"]


def test_what_is_held_out_by_hash_does_not_depend_on_the_order(shards):
    forward = scan(shards(LINES[:120], LINES[120:]), "hash", share=0.05)
    backward = scan(shards(LINES[::-1]), "hash", share=0.05)
    assert len(forward.held) == 10
    assert raw_texts(forward.held) == raw_texts(backward.held)
    assert not raw_texts(forward.held) & raw_texts(forward.sample)


def test_a_line_that_repeats_is_one_of_the_sample(shards):
    scanned = scan(shards([b"same"] * 50 + LINES), None)
    assert len(scanned.sample) == 201


def test_of_a_large_text_the_sample_is_bounded(shards, monkeypatch):
    monkeypatch.setattr(scanning, "SAMPLE", 20)
    monkeypatch.setattr(scanning, "HELD", 5)
    scanned = scan(shards(LINES), "hash", share=0.5)
    assert (len(scanned.sample), len(scanned.held)) == (20, 5)
    assert raw_texts(scanned.sample) <= {line + b"\n" for line in LINES}


def test_the_end_is_held_out_and_not_learned_from(shards):
    scanned = scan(shards(LINES[:150], LINES[150:]), "end", share=0.3)
    assert [line.raw[0] for line in scanned.held] == [line + b"\n" for line in LINES[140:]]
    assert scanned.until == 140
    assert not raw_texts(scanned.held) & raw_texts(scanned.sample)


def test_lines_are_read_as_they_were_written(tmp_path, shards):
    files = shards([b"a", b"caf\xe9", b"c"], [b"d"])
    scanned = scan(files, None)
    write_lines(tmp_path / "lines.jsonl", scanned.sample)
    headers = ["a\n", "d\n"]
    chunks = list(read_chunks(tmp_path / "lines.jsonl", files, headers))
    assert [chunk.lines for chunk in chunks] == [[b"a\n", b"caf\xe9\n", b"c\n"], [b"d\n"]]
    problem = "byte 0xE9 at position 4; WINDOWS-1252 would read 'café'"
    assert chunks[0].decoded()[1].problem == problem
    assert chunks[0].decoded()[2].where == f"{files[0][0]}:3"


def write(path, count, name="line"):
    path.write_text("".join(f"{name} {n}\n" for n in range(1, count + 1)), encoding="utf-8")
    return path, None


def numbers(chunks):
    return [(chunk.shard[0].name, list(chunk.numbers)) for chunk in chunks]


def test_chunks_do_not_go_beyond_their_shard(tmp_path):
    shards = [write(tmp_path / "a", 9), write(tmp_path / "b", 3)]
    read = list(chunks(shards, [9, 3]))
    assert numbers(read) == [("a", [*range(1, 8)]), ("a", [8, 9]), ("b", [1, 2, 3])]
    assert read[1].lines == [b"line 8\n", b"line 9\n"]
    assert read[1].header == b"line 1\n"


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
