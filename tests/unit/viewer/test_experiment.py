"""The page of an experiment: losses, outputs, and weights of whoever looks."""

import re

from regard.viewer import Example, HeadMap, Token
from regard.viewer.experiment import TrainedArm, experiment_page


def arm_of(name, losses, output, rows=None):
    tokens = tuple(Token(text=text, start=0, end=0) for text in ("我", "<走>"))
    words = tuple(Token(text=text, start=0, end=0) for text in output.split())
    maps = () if rows is None else (HeadMap(kind="cross", layer=0, head=0, rows=rows),)
    example = Example(
        source="我<走>", output=output, source_tokens=tokens, output_tokens=words, maps=maps
    )
    return TrainedArm(
        name=name, losses=losses, examples=[example], scores=[37.4], bleu=61.25 + len(losses)
    )


def test_a_page_has_every_curve_output_and_weight():
    without = arm_of(("without", "没有"), [(1, 4.0), (5, 2.0)], "I walk")
    having = arm_of(
        ("with", "有"), [(1, 3.0), (3, 2.0), (5, 1.0)], "I go", [[0.75, 0.25], [0.1, 0.9]]
    )
    made = experiment_page([without, having], ["I <b> go"], tested=7)
    curves = re.findall(r'points="([^"]*)"', made)
    assert [len(curve.split()) for curve in curves] == [2, 3]
    ends = [float(curve.split()[-1].split(",")[1]) for curve in curves]
    starts = [float(curve.split()[0].split(",")[1]) for curve in curves]
    assert starts[0] == 10  # the largest loss is at the top
    assert starts[0] < starts[1] == 10 + (ends[0] - 10) / 2
    assert ends[1] > ends[0]
    assert "<td>I walk <b>37</b></td><td>I go <b>37</b></td>" in made
    assert "63.2" in made
    assert "64.2" in made
    assert "all 7 test sentences" in made
    assert made.count('style="--w:') == 4
    assert '<td style="--w:75%">0.75</td>' in made
    assert made.count("no weights to draw") == 1


def test_texts_are_no_markup():
    made = experiment_page([arm_of(("a", "b"), [(1, 1.0)], "I <i>")], ["I <b>"], tested=1)
    assert not re.search("<走>|I <i>|I <b>", made)
    assert "我&lt;走&gt;" in made
