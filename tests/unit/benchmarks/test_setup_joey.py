"""The installed tokenizer is mended once, and only where it is the one we know."""

from pathlib import Path

import pytest
from benchmarks.peers.setup_joey import mend_tokenizer

LINE = "        self.spm.SetVocabulary(vocab._itos)\n"


def test_mending_twice_changes_nothing_more(tmp_path: Path):
    file = tmp_path / "tokenizers.py"
    file.write_text(LINE)
    assert mend_tokenizer(file)
    mended = file.read_text()
    assert mended.startswith("        pass")
    assert not mend_tokenizer(file)
    assert file.read_text() == mended


def test_another_version_is_left_alone(tmp_path: Path):
    file = tmp_path / "tokenizers.py"
    file.write_text("something else\n")
    with pytest.raises(SystemExit, match=r"expected one line with self.spm.SetVocabulary"):
        mend_tokenizer(file)
