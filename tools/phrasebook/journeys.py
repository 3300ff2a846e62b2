"""Going somewhere: to a country, a city or a building."""

from tools.phrasebook.chance import Chance
from tools.phrasebook.grammar import Unit, build
from tools.phrasebook.lexicon.places import BUILDINGS, COMMUTES, LANDS
from tools.phrasebook.noun_phrases import spot, to


def land(chance: Chance) -> Unit:
    """A country or city: 中国."""
    return spot(chance.deal(LANDS))


def building(chance: Chance) -> Unit:
    """A building: 图书馆 / the library."""
    return spot(chance.deal(BUILDINGS))


def to_land(chance: Chance) -> Unit:
    """A country or city gone to: 中国 / to China."""
    return to(chance.deal(LANDS))


def to_building(chance: Chance) -> Unit:
    """A building gone to: 图书馆 / to the library."""
    return to(chance.deal(BUILDINGS))


def to_commute(chance: Chance) -> Unit:
    """Where one goes again and again: 公司 / to the company."""
    return to(chance.deal(COMMUTES))


def going(place: Unit, form: str) -> Unit:
    """去北京 / goes to Beijing.

    Args:
        place: The place gone to, with its "to".
        form: The form of "go".
    """
    return build("去#go! {place}", f"{form}#go! {{place}}", place=place)


def went(place: Unit) -> Unit:
    """去了北京 / went to Beijing."""
    return build("去#go! 了~go {place}", "went#go! {place}", place=place)
