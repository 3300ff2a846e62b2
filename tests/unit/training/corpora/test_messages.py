"""What is told to a process that encodes is what it hears, whatever bytes a line has."""

from pathlib import Path
from tempfile import TemporaryFile

import numpy as np
import pytest

from regard.tasks.streaming import Chunk
from regard.text import BadLines
from regard.training.corpora.messages import (
    bad_lines_of,
    chunk_of,
    chunk_table,
    counted,
    receive,
    send,
)

ARRAYS = [np.arange(5, dtype=np.int32), np.array([-1, 2**40]), np.zeros(0, np.uint16)]


@pytest.fixture
def told():
    with TemporaryFile() as stream:
        send(stream, {"a": [1, None, "\udcff\n我"]}, ARRAYS)
        send(stream, {"b": 2})
        stream.seek(0)
        yield stream


def broken_off(whole, end):
    with TemporaryFile() as stream:
        stream.write(whole[:end])
        stream.seek(0)
        return receive(stream)


def test_messages_come_as_they_were_sent_one_after_the_other(told):
    table, arrays = receive(told)
    assert table == {"a": [1, None, "\udcff\n我"]}
    for found, array in zip(arrays, ARRAYS, strict=True):
        assert found.dtype == array.dtype
        np.testing.assert_array_equal(found, array)
    assert receive(told) == ({"b": 2}, [])
    assert receive(told) is None


def test_of_a_message_that_breaks_off_nothing_comes(told):
    whole = told.read()
    first = whole.index(b'{"table": {"b"')
    for end in range(first):
        assert broken_off(whole, end) is None
    assert broken_off(whole, first) is not None


@pytest.mark.parametrize("targets", [None, [b"x\n", b"\xfe\n"]])
def test_a_chunk_has_the_bytes_that_it_had(targets):
    shard = (Path("a.tsv"), None if targets is None else Path("b"))
    chunk = Chunk(shard, range(3, 5), [b"\xff\xfe\t\x00\r\n", "我\n".encode()], targets, b"h\x80")
    found = chunk_of(chunk_table(chunk))
    assert list(found.numbers) == [3, 4]
    assert found == Chunk(shard, found.numbers, chunk.lines, targets, b"h\x80")


def test_counts_of_lines_left_out_are_kept():
    lines = BadLines()
    for number in range(5):
        lines.add("empty", f"line {number}")
    found = bad_lines_of(counted(lines))
    assert (found.counts, found.examples) == (lines.counts, lines.examples)
    found.add("empty", "another")
    assert lines.counts["empty"] == 5
