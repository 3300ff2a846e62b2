"""Documents of attention, without explanations of answers."""

from regard.viewer.options import LookOptions


def look_into(predictor, texts, *, explain=False, **options):
    """The document of texts."""
    return predictor.use.look(texts, LookOptions(**options), explain=explain).document


def look_at(predictor, text, target=None, *, phrase=None, **options):
    """The example of one text."""
    chosen = LookOptions(target=target, **options)
    looked = predictor.use.look(text, chosen, explain=False, gold=phrase)
    return looked.document.examples[0]
