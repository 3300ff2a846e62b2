"""One text by several runs of a recipe: the attention of each for the same output."""

from collections import Counter
from collections.abc import Sequence

from regard.errors import DataError, SettingError
from regard.inference.look import Look, attention_to_source
from regard.inference.predictor import Predictor
from regard.text import normalize
from regard.text.tokenizers.pieces import END
from regard.viewer.spread import WeightSpread


def weights_of_runs(
    predictors: Sequence[Predictor],
    source: str,
    target: str | None = None,
    *,
    beam_size: int | None = None,
) -> WeightSpread:
    """Weights of the same output by several runs that translate, over heads and layers averaged.

    Args:
        predictors: The runs, of one tokenizer.
        source: The text that they read.
        target: The output whose weights are taken; None takes that of most runs.
        beam_size: Hypotheses kept at each step of their search; None is as their recipes say.

    Raises:
        SettingError: A run does not translate, or the runs cut a text into different tokens.
        DataError: The source holds no text.
    """
    answers = list[str]()
    for predictor in predictors:
        if not predictor.is_seq2seq:
            raise SettingError(
                f"runs must write a text for a text to be averaged; got {predictor.recipe.task}. "
                "Look at one or two of them."
            )
        if not normalize(source):
            raise DataError("source must hold text to look at; got an empty line.")
        answers.append(predictor.translate([source], beam_size=beam_size)[0].best.text)
    output = Counter(answers).most_common(1)[0][0] if target is None else normalize(target)
    looks = [
        attention_to_source(predictor.seq2seq, predictor.sequence_task, source, output)
        for predictor in predictors
    ]
    tokens = {_tokens(look) for look in looks}
    if len(tokens) > 1:
        raise SettingError(
            "runs must cut a text into the same tokens, as those of one recipe and text do; got "
            + " and ".join(" ".join(names) for _, names in list(tokens)[:2])
            + "."
        )
    ((read, written),) = tokens
    weights = tuple(look.cross()[: len(written)].tolist() for look in looks)
    has_end = len(weights[0][0]) > len(read)
    return WeightSpread(
        looks[0].source, output, (*read, *[END] * has_end), written, weights, tuple(answers)
    )


def _tokens(look: Look) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The tokens of a source and an output."""
    sides = look.source_pieces, look.output_pieces
    read, written = (tuple(piece.text for piece in side) for side in sides)
    return read, written
