"""Comparisons: 比, and more to come."""

from regard.text.phrasebook.chance import Chance
from regard.text.phrasebook.grammar import Unit, build
from regard.text.phrasebook.lexicon.adjectives import MOODS, TRAITS
from regard.text.phrasebook.morphology import be
from regard.text.phrasebook.noun_phrases import other, somebody


def bi(chance: Chance) -> Unit:
    """他比我高 / He is taller than me."""
    who = somebody(chance)
    adjective = chance.pick((*TRAITS, *MOODS))
    return build("{who} 比#than {other} {more}",
                 f"{{who}} {be(who.person)}~more {{more}} than#than {{other}}",
                 who=who.subject, other=other(chance, who).object, more=adjective.more, name="bi")
