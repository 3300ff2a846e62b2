"""Bad times to measure are refused, and a record whose code has changed since is old."""

import subprocess

import pytest
from benchmarks import ages, occasion


@pytest.fixture
def idle(monkeypatch):
    """Sets commit and load, without any waiting."""

    def be(commit="abc1234", load=0.2):
        monkeypatch.setattr(occasion, "TINY", None)
        monkeypatch.setattr(occasion, "_PATIENCE", -1)
        monkeypatch.setattr(occasion, "commit", lambda: commit)
        monkeypatch.setattr(occasion.os, "getloadavg", lambda: (load, load, load))

    return be


def test_an_idle_machine_is_measured_on(idle):
    idle()
    assert occasion.before_timing(5, is_dry=False)["load_at_start"] == 0.2


@pytest.mark.parametrize(
    ("rounds", "state", "problem"),
    [
        (4, {}, "rounds must be at least 5; got 4"),
        (5, {"load": 2.5}, r"the load must be at most 1.0; got 2.50"),
        (5, {"commit": "abc1234+"}, "must be that of a commit; got changes after abc1234"),
        (5, {"commit": None}, "must be that of a commit; got a folder that is no clone"),
    ],
)
def test_what_is_no_time_to_measure_is_refused_unless_nothing_is_written(
    idle, rounds, state, problem
):
    idle(**state)
    with pytest.raises(SystemExit, match=f"{problem}.*without writing a record: --dry"):
        occasion.before_timing(rounds, is_dry=False)
    assert occasion.before_timing(rounds, is_dry=True)["cores"]


@pytest.fixture
def clone(tmp_path):
    """A repository with a script; a function that writes the script anew, and the first commit."""

    def git(*arguments):
        words = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments]
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def write(text):
        (tmp_path / "script.py").write_text(text, "utf-8")
        git("add", "script.py")
        git("commit", "--quiet", "--message", "Change it")
        return git("rev-parse", "HEAD")

    git("init", "--quiet")
    write('"""Measures."""\nx = 1\n')
    return tmp_path, write, git("rev-parse", "HEAD")


@pytest.mark.parametrize(
    ("text", "has_changed"),
    [('"""Measures."""\nx = 2\n', True), ('"""Measures something."""\n\nx = 1  # one\n', False)],
)
def test_code_that_python_reads_otherwise_has_changed(clone, text, has_changed):
    root, write, commit = clone
    assert ages.has_changed(commit, ["script.py"], root=root) is False
    write(text)
    assert ages.has_changed(commit, ["script.py"], root=root) is has_changed
    assert ages.has_changed(commit, ["other.py"], root=root) is False


def test_a_file_that_moves_and_names_of_local_variables_do_not_count(clone):
    root, write, _ = clone

    def text(module, local):
        values = "".join(f"VALUE_{number} = {number}\n" for number in range(20))
        return (
            f"from {module} import b\n{values}\ndef f(x):\n    {local} = b(x)\n    return {local}\n"
        )

    commit = write(text("a", "product"))
    (root / "moved").mkdir()
    (root / "script.py").rename(root / "moved" / "script.py")
    (root / "moved" / "script.py").write_text(text("c", "total"), "utf-8")
    subprocess.run(["git", "add", "."], cwd=root, check=True)
    assert ages.has_changed(commit, ["moved"], root=root) is False


def test_without_the_history_nobody_can_tell(clone):
    root, _, _ = clone
    assert ages.has_changed("0123456789", ["script.py"], root=root) is None


@pytest.mark.parametrize("commit", [None, "abc1234+"])
def test_what_is_in_no_commit_is_old(commit):
    part = {"measured": {"date": "2026-01-31", "commit": commit}}
    assert ages.is_old({"name": "x", "commit": commit, "details": {}})
    assert ages.is_old({"name": "x", "commit": "abc1234", "details": {"rows": {"a": part}}})
