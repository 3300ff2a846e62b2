"""``regard shortlist``, and who uses what it makes."""

import json
import shutil
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("as_users_have_it")]


def test_a_shortlist_is_made_and_used(regard, run: Path, tmp_path: Path) -> None:
    run = shutil.copytree(run, tmp_path / "run")
    assert "it has none" in regard.refused("predict", run, "--shortlist")
    done = regard("shortlist", run, "--per-piece", 20)
    assert done.code == 0, done
    assert "pieces a sentence" in done.out
    seen = regard("evaluate", run, "--shortlist", "--json")
    assert seen.code == 0, seen
    assert json.loads(seen.out)["count"] == 30
    (tmp_path / "text.txt").write_text("我爱中国。\n", "utf-8")
    found = regard("predict", run, tmp_path / "text.txt", "--shortlist", "--attention")
    assert found.code == 0, found


def test_whoever_cannot_use_one_is_told(regard, run: Path, tmp_path: Path) -> None:
    said = regard.refused("predict", run, "--score", "--shortlist")
    assert "--shortlist must be left out with --score" in said
    assert "must be a run folder" in regard.refused("shortlist", tmp_path / "nothing")
