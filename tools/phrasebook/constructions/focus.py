"""What comes first to mind: topics before their subject, and 是…的."""

from tools.phrasebook.acts import milestone
from tools.phrasebook.chance import Chance
from tools.phrasebook.constructions.settings import TRAVEL_PAST
from tools.phrasebook.constructions.travel import ride, voyage
from tools.phrasebook.grammar import Unit, build
from tools.phrasebook.journeys import land, to_building, to_land
from tools.phrasebook.lexicon.numbers import year
from tools.phrasebook.lexicon.people import NAMES, PRONOUNS
from tools.phrasebook.lexicon.times import LONG_PAST, PAST
from tools.phrasebook.lexicon.verbs import ACTIONS
from tools.phrasebook.morphology import do, have
from tools.phrasebook.noun_phrases import RELATIVES, peer, single, somebody, this

_TOPICS = tuple(
    (verb, noun)
    for verb in ACTIONS
    if verb.zh in {"看", "听", "翻译", "修"}
    for noun in verb.objects
    if noun.is_counted
)


def topic(chance: Chance) -> Unit:
    """这本书我看过 / I have read this book."""
    verb, noun = chance.deal(_TOPICS)
    thing = this(chance, noun)
    who = somebody(chance)
    draw = chance.below(100)
    if draw < 40:
        return build(
            "{thing} {who} {verb} 过~has~verb",
            f"{{who}} {have(who.person)}~has~verb {{verb}} {{thing}}",
            thing=thing,
            who=who.subject,
            verb=verb.forms["participle"],
            name="topic",
        )
    if draw < 70:
        return build(
            "{thing} {who} 已经#already {verb} 了~has~verb",
            f"{{who}} {have(who.person)}~has~verb already#already {{verb}} {{thing}}",
            thing=thing,
            who=who.subject,
            verb=verb.forms["participle"],
            name="topic",
        )
    return build(
        "{thing} {who} 不#not~do 喜欢#like",
        f"{{who}} {do(who.person)}~do~like not#not like#like {{thing}}",
        thing=thing,
        who=who.subject,
        name="topic",
    )


def focus_time(chance: Chance) -> Unit:
    """他是昨天来的 / It was yesterday that he came."""
    who = somebody(chance)
    draw = chance.below(100)
    if draw < 35:
        time = chance.deal(PAST)
        act = build(*chance.pick(_COMING))
    elif draw < 65:
        time = chance.pick(LONG_PAST if chance.odds(0.6) else PAST[2:3])
        act = milestone(chance, who).form("past")
    else:
        time = chance.deal(TRAVEL_PAST)
        act = build("去#go {place}", "went#go {place}", place=to_land(chance))
    return build(
        "{who} 是#was {time} {act} 的~that~was",
        "it~was was#was {time} that~that {who} {act}",
        who=who.subject,
        time=time,
        act=act,
        name="focus_time",
    )


_COMING = (
    ("来#come", "came#come"),
    ("回来#come", "came#come back#come"),
    ("到#come", "arrived#come"),
    ("回家#come", "went#come home#come"),
    ("走#come", "left#come"),
)

_YEARS = (
    1980,
    1985,
    1988,
    1990,
    1992,
    1995,
    1996,
    1998,
    1999,
    2000,
    2001,
    2002,
    2004,
    2005,
    2008,
    2010,
)


def focus_year(chance: Chance) -> Unit:
    """她是一九九五年出生的 / She was born in 1995."""
    who = peer(chance)
    when = year(chance.pick(_YEARS))
    if chance.odds(0.5):
        return build(
            "{who} 是~born {when} 出生#born 的~born",
            "{who} was~born born#born in~when {when}",
            who=who.subject,
            when=when,
            name="focus_year",
        )
    return build(
        "{who} 是~act {when} {act} 的~act",
        "{who} {act} in~when {when}",
        who=who.subject,
        when=when,
        act=milestone(chance, who).form("past"),
        name="focus_year",
    )


def focus_place(chance: Chance) -> Unit:
    """他是在北京出生的 / He was born in Beijing."""
    who = single(chance)
    draw = chance.below(100)
    if draw < 35:
        return build(
            "{who} 是~born 在#in {place} 出生#born 的~born",
            "{who} was~born born#born in#in {place}",
            who=who.subject,
            place=land(chance),
            name="focus_place",
        )
    if draw < 65:
        return build(
            "{who} 是~grew 在#in {place} 长大#grew 的~grew",
            "{who} grew#grew up#grew in#in {place}",
            who=who.subject,
            place=land(chance),
            name="focus_place",
        )
    return build(
        "{who} 是~met 在#in {place} 认识#met {whom} 的~met",
        "{who} met#met {whom} in#in {place}",
        who=who.subject,
        whom=_met(chance, who.zh),
        place=land(chance),
        name="focus_place",
    )


def _met(chance: Chance, first: str) -> Unit:
    """Somebody one can get to know: a name, or 他朋友 / his friend."""
    while True:
        named = chance.deal(_ACQUAINTANCES)
        if named.zh != first:
            return named.object


_ACQUAINTANCES = (
    *NAMES,
    *PRONOUNS[2:4],
    *(named for named in RELATIVES if named.zh.endswith(("朋友", "同学", "同事", "邻居"))),
)


def focus_manner(chance: Chance) -> Unit:
    """他是坐火车来的 / He came by train."""
    who = somebody(chance)
    draw = chance.below(100)
    if draw < 35:
        by, act = ride(chance), build(*chance.pick(_COMING[:4]))
    elif draw < 60:
        by = ride(chance)
        act = build("去#go {place}", "went#go {place}", place=to_building(chance))
    else:
        by, place = voyage(chance)
        act = build("去#go {place}", "went#go {place}", place=place)
    return build(
        "{who} 是~act {by} {act} 的~act",
        "{who} {act} {by}",
        who=who.subject,
        by=by,
        act=act,
        name="focus_manner",
    )
