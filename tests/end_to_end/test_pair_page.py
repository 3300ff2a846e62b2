"""The page of a question and its text, in Chinese: what the question looks at, and the answer."""

import pytest
from tests.end_to_end.browsing import Tab

from regard.viewer import Document, Example, HeadMap, Prediction, Text

pytestmark = pytest.mark.slow

QUESTION, CONTEXT = Text.of(list("何时成立")), Text.of(list("成立于1902年"))
WEIGHTS = [[1.0 if row == column - 5 else 0.1 for column in range(8)] for row in range(4)]


def test_the_answer_stands_in_its_text_and_the_question_beside_it(tab: Tab) -> None:
    example = Example(
        source=CONTEXT.text,
        output=QUESTION.text,
        source_tokens=CONTEXT.tokens,
        output_tokens=QUESTION.tokens,
        maps=(HeadMap(kind="cross", layer=0, head=0, rows=WEIGHTS),),
        started=False,
        answer=Prediction(
            labels=(("1902年", 0.9),), tags=(*[""] * 3, *["answer"] * 5), side="source"
        ),
    )
    document = Document(title="何时成立", task="question answering", model="", examples=(example,))
    tab.open(document)
    said = tab.page.inner_text("main.view")
    assert "Beside it" in said
    assert "何时成立" in said
    tagged = tab.page.locator("ruby.tagged > span").all_inner_texts()
    assert "".join(tagged) == "1902年"
    tab.press("2")
    shown = tab.page.inner_text("body")
    assert "One text looks at the other." in shown
    assert "looking" in shown
    assert "looked at" in shown
    assert not tab.complaints
