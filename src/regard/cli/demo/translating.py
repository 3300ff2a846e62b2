"""``regard demo``: sentences by the translator that comes with the package."""

from pathlib import Path

from regard.cli.demo import PAGE, SENTENCE, SENTENCES, TRANSLATOR, TYPING_PAGE
from regard.cli.output import note, say


def translate(folder: Path) -> None:
    """Translate some sentences, and write the page of their attention and one to type into."""
    note("loading the translator that comes with regard")  # before torch, which takes a while
    from regard.cli.demo.pages import write_page, write_typing_page
    from regard.inference import Predictor
    from regard.kernels import uncompiled
    from regard.runs.card import SHIPPED
    from regard.viewer import draw_attention

    with uncompiled():
        predictor = Predictor.load(TRANSLATOR)
        (first,) = predictor.use.look(SENTENCE).document.examples
        # To explain all of them would take seconds.
        later = predictor.use.look(SENTENCES, explain=False).document.examples
        say(f"{first.source} → {first.output}\n\n{draw_attention(first)}\n")
        for example in later:
            say(f"  {example.source} → {example.output}")
        say()
        write_page(predictor, [first, *later], folder / PAGE)
        write_typing_page(predictor, [SENTENCE, *SENTENCES[-2:]], folder / TYPING_PAGE)
    say(f"Try your own: regard look {TRANSLATOR} 我们明天去北京")
    say(f"What it learned from, and how good it is: {SHIPPED / TRANSLATOR}.md")
    say("See one learn, in a minute or two: regard demo --train")
