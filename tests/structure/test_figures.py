"""Every figure the README shows stands in a record, and every record came from a script."""

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def run_tables(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "benchmarks.tables", *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def test_readme_shows_the_figures_of_the_records():
    done = run_tables("--check")
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_changed_figure_fails_the_check_and_writing_cures_it(tmp_path: Path):
    records = tmp_path / "records"
    records.mkdir()
    (records / "made_up.json").write_text(
        '{"name": "made_up", "date": "2026-01-31", "machine": {"cpu": "a CPU", "cores": 2},'
        ' "figures": [{"what": "Speed", "ours": "3 ×", "beside": "peer", "note": ""}]}',
        "utf-8",
    )
    readme = tmp_path / "README.md"
    readme.write_text("# x\n<!-- figures:begin -->\n<!-- figures:end -->\n", "utf-8")
    where = ("--readme", readme, "--records", records)

    before = run_tables("--check", *where)
    assert before.returncode == 1
    assert "+| Speed | 3 × |" in before.stdout
    assert "Run: python -m benchmarks.tables" in before.stderr

    assert run_tables(*where).returncode == 0
    assert run_tables("--check", *where).returncode == 0
    readme.write_text(readme.read_text("utf-8").replace("3 ×", "4 ×"), "utf-8")
    assert run_tables("--check", *where).returncode == 1

    shutil.rmtree(records)
    assert run_tables("--check", *where).returncode == 1


def test_every_record_names_a_script_that_exists():
    for record in (ROOT / "benchmarks" / "records").glob("*.json"):
        assert (ROOT / "benchmarks" / f"{record.stem}.py").exists(), record.name
