"""Every construction by name, with how often it is drawn next to the others."""

from collections.abc import Callable

from regard.text.phrasebook.chance import Chance
from regard.text.phrasebook.constructions import (
    comparisons,
    particles,
    questions,
    settings,
    statements,
)
from regard.text.phrasebook.grammar import Unit

Construction = Callable[[Chance], Unit]

CONSTRUCTIONS: dict[str, Construction] = {
    "plain": statements.plain,
    "copula": statements.copula,
    "quality": statements.quality,
    "negated_quality": statements.negated_quality,
    "modal": statements.modal,
    "able": statements.able,
    "wish": statements.wish,
    "unwilling": statements.unwilling,
    "refusal": statements.refusal,
    "undone": statements.undone,
    "perfective": statements.perfective,
    "liking": statements.liking,
    "time_past": settings.time_past,
    "time_future": settings.time_future,
    "time_habit": settings.time_habit,
    "place": settings.place,
    "progressive": settings.progressive,
    "companion": settings.accompanied,
    "clock": settings.at_an_hour,
    "yes_no": questions.yes_no,
    "what": questions.what,
    "where": questions.where,
    "ba_put": particles.ba_put,
    "ba_done": particles.ba_done,
    "bi": comparisons.bi,
}
