import gzip

import pytest
import zstandard

from regard.errors import DataError
from regard.text import BadLines, decode_lines, read_lines
from regard.text.lines import readable

TEXT = "\ufeff我爱中国。\r\nno end of\u2028a line\x85here\x0b\x0c\x1c\n\nlast"
LINES = ["我爱中国。", "no end of\u2028a line\x85here\x0b\x0c\x1c", "", "last"]


def zstd(data: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(data)


@pytest.mark.parametrize(
    ("name", "pack"), [("a.txt", bytes), ("a.txt.gz", gzip.compress), ("a.txt.zst", zstd)]
)
def test_lines_end_with_line_feeds_only(name, pack, tmp_path):
    path = tmp_path / name
    path.write_bytes(pack(TEXT.encode()))
    lines = list(read_lines(path))
    assert [line.text for line in lines] == LINES
    assert lines[3].where == f"{path}:4"


@pytest.mark.parametrize(("name", "pack"), [("a.gz", gzip.compress), ("a.zst", zstd)])
def test_compressed_files_may_be_concatenated(name, pack, tmp_path):
    (tmp_path / name).write_bytes(pack(b"one\ntw") + pack(b"o\n") + pack(b""))
    assert [line.text for line in read_lines(tmp_path / name)] == ["one", "two"]


def test_a_zstd_file_larger_than_a_block_is_read_whole(tmp_path):
    lines = [f"line {number} " + "x" * 100 for number in range(50_000)]
    (tmp_path / "a.zst").write_bytes(zstd("\n".join(lines).encode()))
    assert [line.text for line in read_lines(tmp_path / "a.zst")] == lines


@pytest.mark.parametrize(("name", "pack"), [("a.gz", gzip.compress), ("a.zst", zstd)])
@pytest.mark.parametrize("damage", ["cut", "changed", "other"])
def test_a_damaged_compressed_file_is_named(name, pack, damage, tmp_path):
    data = pack(b"".join(b"%d\n" % number for number in range(10_000)))
    broken = {"cut": data[: len(data) // 2], "changed": data[:20] + b"zzzz" + data[24:]}
    (tmp_path / name).write_bytes(broken.get(damage, b"plain text\n"))
    with pytest.raises(DataError, match=r"a\.\w+ must be a whole compressed file; got: .*damaged"):
        list(read_lines(tmp_path / name))


def test_a_missing_file_offers_the_nearest(tmp_path):
    (tmp_path / "train.tsv.gz").touch()
    with pytest.raises(
        DataError, match=r"train\.tsv must exist; it does not\. Did you mean .*\.gz"
    ):
        list(read_lines(tmp_path / "train.tsv"))
    with pytest.raises(DataError, match=r"There is no folder .*nowhere\."):
        list(read_lines(tmp_path / "nowhere" / "train.tsv"))


def test_a_folder_is_not_a_file(tmp_path):
    with pytest.raises(DataError, match="must be a readable file; got: Is a directory"):
        list(read_lines(tmp_path))


def test_what_is_not_utf8_is_named_by_byte_and_place(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"fine\nca\xe9f\n")
    fine, bad = read_lines(tmp_path / "a.txt")
    assert fine.problem is None
    assert bad.problem == "byte 0xE9 at place 3"
    assert bad.guess == ("WINDOWS-1252", "caéf")
    assert bad.where.endswith("a.txt:2")


def test_bad_lines_keep_three_messages_of_each_reason():
    bad = BadLines()
    for number in range(5):
        bad.add("columns", f"line {number}")
    bad.add("empty source", "line 9")
    assert bad.total == 6
    assert bad.counts == {"columns": 5, "empty source": 1}
    assert bad.examples["columns"] == ["line 0", "line 1", "line 2"]


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("a.txt", "iconv -f GB18030 -t UTF-8 {path} > utf8-a.txt"),
        ("a.txt.gz", "gzip -dc {path} | iconv -f GB18030 -t UTF-8 > utf8-a.txt"),
    ],
)
def test_a_file_in_gbk_is_refused_with_the_command_that_converts_it(tmp_path, name, command):
    path = tmp_path / name
    path.write_bytes("我爱中国。\n".encode("gbk"))
    if name.endswith(".gz"):
        path.write_bytes(gzip.compress(path.read_bytes()))
    (line,) = read_lines(path)
    with pytest.raises(DataError) as refused:
        readable(line)
    cure = f"Convert the file, which reads '我爱中国。' in GB18030: {command.format(path=path)}"
    assert str(refused.value).endswith(cure)


def test_what_is_piped_in_is_converted_in_the_pipe():
    (line,) = decode_lines(["我爱中国".encode("gbk")], "stdin")
    with pytest.raises(DataError, match=r"iconv -f GB18030 -t UTF-8 \| regard"):
        readable(line)
