"""Lines of stdin, answered together or as they are written."""

import sys

import pytest

from regard.cli import run_command
from regard.inference.text import Text
from regard.runs import Run
from regard.text.tokenizers.words import ListTokenizer

LINES = "a bad\na cab\n\nfed\n" * 9


@pytest.fixture
def counts(monkeypatch):
    """Calls of some functions by their names."""
    calls = dict.fromkeys(("open", "stream", "answer"), 0)

    def counted(kind, name):
        function = getattr(kind, name)

        def call(*args, **kwargs):
            calls[name] += 1
            return function(*args, **kwargs)

        return call

    for kind, name in ((Run, "open"), (Text, "stream"), (Text, "answer")):
        monkeypatch.setattr(kind, name, counted(kind, name))
    return calls


def test_a_pipe_is_answered_as_a_file_is(letters_run, typed, tmp_path, capsys, counts):
    (tmp_path / "lines.txt").write_text(LINES, encoding="utf-8")
    assert run_command(["predict", str(letters_run), str(tmp_path / "lines.txt")]) == 0
    answers = capsys.readouterr().out
    of_file = dict(counts)
    typed(LINES)
    assert run_command(["predict", str(letters_run)]) == 0
    assert capsys.readouterr().out == answers
    assert counts == {name: 2 * count for name, count in of_file.items()}
    assert of_file["stream"] == 0
    assert of_file["answer"] < LINES.count("\n") / 9
    assert of_file["open"] == 1


@pytest.mark.parametrize("run", ["translator", "letters"])
def test_ten_lines_are_tokenised_ten_times(run, request, typed, capsys, monkeypatch):
    encode_all, encoded = ListTokenizer.encode_all, []

    def counted(self, texts, **options):
        encoded.extend(text for text in texts if text)
        return encode_all(self, texts, **options)

    monkeypatch.setattr(ListTokenizer, "encode_all", counted)
    lines = [f"a bad x{number}" for number in range(10)]  # of which the digit is unknown
    typed("\n".join(lines))
    assert run_command(["predict", str(request.getfixturevalue(f"{run}_run"))]) == 0
    assert encoded == lines


def test_a_terminal_shows_an_answer_as_it_is_written(
    letters_run, typed, capsys, counts, monkeypatch
):
    typed("a bad\na cab\n")
    assert run_command(["predict", str(letters_run)]) == 0
    answers = capsys.readouterr().out
    typed("a bad\na cab\n")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert run_command(["predict", str(letters_run)]) == 0
    assert capsys.readouterr().out == answers
    assert counts["stream"] == 2
