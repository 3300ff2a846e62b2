import pytest

from regard.training.corpora import scanning
from regard.training.corpora.scanning import read_chunks, scan, write_lines


@pytest.fixture
def shards(tmp_path):
    def write(*texts):
        for place, lines in enumerate(texts):
            (tmp_path / f"{place}.txt").write_bytes(b"".join(line + b"\n" for line in lines))
        return [(tmp_path / f"{place}.txt", None) for place in range(len(texts))]

    return write


LINES = [f"line {n}".encode() for n in range(200)]


def kept(lines):
    return {line.raw[0] for line in lines}


def test_lines_of_each_shard_are_counted(shards):
    found = scan(shards(LINES[:3], [], LINES[:5]), None)
    assert (found.lines, found.until, found.held) == ([3, 0, 5], 8, [])
    assert found.headers == [b"line 0\n", b"", b"line 0\n"]


def test_what_is_held_out_by_hash_does_not_depend_on_the_order(shards):
    one = scan(shards(LINES[:120], LINES[120:]), "hash", share=0.05)
    other = scan(shards(LINES[::-1]), "hash", share=0.05)
    assert len(one.held) == 10
    assert kept(one.held) == kept(other.held)
    assert not kept(one.held) & kept(one.sample)


def test_a_line_that_repeats_is_one_of_the_sample(shards):
    found = scan(shards([b"same"] * 50 + LINES), None)
    assert len(found.sample) == 201


def test_of_a_large_text_the_sample_is_bounded(shards, monkeypatch):
    monkeypatch.setattr(scanning, "SAMPLE", 20)
    monkeypatch.setattr(scanning, "HELD", 5)
    found = scan(shards(LINES), "hash", share=0.5)
    assert (len(found.sample), len(found.held)) == (20, 5)
    assert kept(found.sample) <= {line + b"\n" for line in LINES}


def test_the_end_is_held_out_and_not_learned_from(shards):
    found = scan(shards(LINES[:150], LINES[150:]), "end", share=0.3)
    assert [line.raw[0] for line in found.held] == [line + b"\n" for line in LINES[140:]]
    assert found.until == 140
    assert not kept(found.held) & kept(found.sample)


def test_lines_are_read_as_they_were_written(tmp_path, shards):
    files = shards([b"a", b"caf\xe9", b"c"], [b"d"])
    found = scan(files, None)
    write_lines(tmp_path / "lines.jsonl", found.sample)
    headers = ["a\n", "d\n"]
    chunks = list(read_chunks(tmp_path / "lines.jsonl", files, headers))
    assert [chunk.lines for chunk in chunks] == [[b"a\n", b"caf\xe9\n", b"c\n"], [b"d\n"]]
    assert chunks[0].decoded()[1].problem == "byte 0xE9 at place 4"
    assert chunks[0].decoded()[2].where == f"{files[0][0]}:3"
