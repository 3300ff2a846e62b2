"""Questions: 吗, A-not-A, a choice, and question words that stay where the answer would stand."""

from regard.text.phrasebook.acts import Act, deed, habit, scene
from regard.text.phrasebook.chance import Chance
from regard.text.phrasebook.grammar import Unit, build
from regard.text.phrasebook.lexicon.nouns import KINDS
from regard.text.phrasebook.lexicon.places import CITIES, COUNTRIES
from regard.text.phrasebook.lexicon.verbs import ACTIONS, DEALINGS, STATES
from regard.text.phrasebook.morphology import be, do, have, inflect
from regard.text.phrasebook.noun_phrases import asked, other, somebody, spot, this


def yes_no(chance: Chance) -> Unit:
    """你喜欢苹果吗？ / Do you like apples?"""
    who = asked(chance)
    verb = chance.pick(STATES[:3])
    act = Act(verb, chance.pick(verb.objects).many)
    if chance.odds(0.4):
        act = Act(verb, spot(chance.pick((*COUNTRIES, *CITIES))))
    return build("{who} {act} 吗~ask ？#end", f"{do(who.person)}~ask~act {{who}} {{act}} ?#end",
                 who=who.subject, act=act.form("base"), name="yes_no")


def what(chance: Chance) -> Unit:
    """你正在看什么？ / What are you reading?"""
    who = asked(chance)
    verb = chance.pick(ACTIONS)
    return build(f"{{who}} 正在~is~verb {{verb}} 什么#what ？#end",
                 f"what#what {be(who.person)}~is~verb {{who}} {{verb}} ?#end",
                 who=who.subject, verb=verb.forms["ing"], name="what")


def where(chance: Chance) -> Unit:
    """你在哪儿工作？ / Where do you work?"""
    who = asked(chance)
    act = habit(chance)
    return build("{who} 在~where 哪儿#where {act} ？#end",
                 f"where#where {do(who.person)}~act {{who}} {{act}} ?#end",
                 who=who.subject, act=act.form("base"), name="where")
