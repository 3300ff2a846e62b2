"""Figures whose labels are Chinese."""

import matplotlib
import pytest
from matplotlib import font_manager
from matplotlib.font_manager import FontEntry

from regard.inference.evaluation import report_plot
from regard.inference.evaluation.report_plot import CHINESE_FONTS, new_figure
from regard.tasks.tables import confusion_table


def family(figure):
    return figure.text(0, 0, "体育").get_fontfamily()


def save(path):
    with new_figure() as figure:
        family(figure)
        figure.savefig(path)


def test_labels_are_written_in_the_first_chinese_font_that_is_installed(monkeypatch):
    fonts = [FontEntry(fname=name, name=name) for name in ("SimHei", "PingFang SC", "DejaVu Sans")]
    monkeypatch.setattr(font_manager.fontManager, "ttflist", fonts)
    with new_figure() as figure:
        assert family(figure) == ["sans-serif", "PingFang SC"]
    assert matplotlib.rcParams["font.family"] == ["sans-serif"]


def test_a_font_that_was_installed_after_matplotlib_looked_is_used(monkeypatch):
    fonts = font_manager.fontManager.ttflist
    late = next(entry for entry in fonts if entry.name == "cmr10")
    monkeypatch.setattr(font_manager.fontManager, "ttflist", [e for e in fonts if e is not late])
    monkeypatch.setattr(font_manager, "findSystemFonts", lambda: [late.fname, "none.ttf"])
    monkeypatch.setattr(report_plot, "CHINESE_FONTS", ("cmr10",))
    with new_figure() as figure:
        assert family(figure) == ["sans-serif", "cmr10"]


def test_a_font_without_the_characters_warns_once(monkeypatch, tmp_path):
    monkeypatch.setattr(report_plot, "CHINESE_FONTS", ())
    with pytest.warns(UserWarning, match="drawn as boxes") as caught:
        save(tmp_path / "a.png")
    assert len(caught) == 1


@pytest.mark.skipif(
    not {entry.name for entry in font_manager.fontManager.ttflist} & {*CHINESE_FONTS},
    reason="no Chinese font is installed",
)
def test_installed_fonts_have_the_characters(tmp_path):
    save(tmp_path / "a.png")  # a warning is an error


@pytest.mark.parametrize(
    ("language", "names"),
    [
        ("en", ["Confusion matrix", "Predicted label", "True label", "Fraction of the row"]),
        ("zh", ["混淆矩阵", "预测标签", "真实标签", "占本行的比例"]),
    ],
)
def test_a_confusion_matrix_has_the_names_of_the_field(language, names):
    with new_figure() as figure:
        table = confusion_table(["good", "bad", "bad"], ["good", "good", "bad"])
        report_plot._draw(figure, [table], [])
        if language == "zh":
            report_plot._translate(figure)
        matrix, _, bar = figure.axes
        drawn = [matrix.get_title(), matrix.get_xlabel(), matrix.get_ylabel(), bar.get_ylabel()]
    assert drawn == names
