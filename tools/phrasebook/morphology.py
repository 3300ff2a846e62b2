"""English inflection: verb forms, plurals, comparatives, and the articles a and an."""

from typing import Literal

from tools.phrasebook.grammar import Person

Form = Literal["base", "third", "past", "participle", "ing"]

# Past and participle of the irregular verbs of the lexicon.
_IRREGULAR_VERBS = {
    "be": ("was", "been"),
    "become": ("became", "become"),
    "begin": ("began", "begun"),
    "bite": ("bit", "bitten"),
    "borrow": ("borrowed", "borrowed"),
    "break": ("broke", "broken"),
    "bring": ("brought", "brought"),
    "build": ("built", "built"),
    "buy": ("bought", "bought"),
    "catch": ("caught", "caught"),
    "choose": ("chose", "chosen"),
    "come": ("came", "come"),
    "cost": ("cost", "cost"),
    "cut": ("cut", "cut"),
    "do": ("did", "done"),
    "draw": ("drew", "drawn"),
    "drink": ("drank", "drunk"),
    "drive": ("drove", "driven"),
    "eat": ("ate", "eaten"),
    "fall": ("fell", "fallen"),
    "feed": ("fed", "fed"),
    "feel": ("felt", "felt"),
    "find": ("found", "found"),
    "fly": ("flew", "flown"),
    "forget": ("forgot", "forgotten"),
    "forgive": ("forgave", "forgiven"),
    "get": ("got", "gotten"),
    "give": ("gave", "given"),
    "go": ("went", "gone"),
    "grow": ("grew", "grown"),
    "hang": ("hung", "hung"),
    "have": ("had", "had"),
    "hear": ("heard", "heard"),
    "hide": ("hid", "hidden"),
    "know": ("knew", "known"),
    "leave": ("left", "left"),
    "lend": ("lent", "lent"),
    "lose": ("lost", "lost"),
    "make": ("made", "made"),
    "meet": ("met", "met"),
    "pay": ("paid", "paid"),
    "put": ("put", "put"),
    "read": ("read", "read"),
    "ride": ("rode", "ridden"),
    "run": ("ran", "run"),
    "say": ("said", "said"),
    "see": ("saw", "seen"),
    "sell": ("sold", "sold"),
    "send": ("sent", "sent"),
    "sing": ("sang", "sung"),
    "sit": ("sat", "sat"),
    "sleep": ("slept", "slept"),
    "speak": ("spoke", "spoken"),
    "spend": ("spent", "spent"),
    "stand": ("stood", "stood"),
    "steal": ("stole", "stolen"),
    "swim": ("swam", "swum"),
    "take": ("took", "taken"),
    "teach": ("taught", "taught"),
    "tell": ("told", "told"),
    "think": ("thought", "thought"),
    "throw": ("threw", "thrown"),
    "understand": ("understood", "understood"),
    "wake": ("woke", "woken"),
    "wear": ("wore", "worn"),
    "win": ("won", "won"),
    "write": ("wrote", "written"),
}

_IRREGULAR_PLURALS = {
    "series": "series",
    "bookshelf": "bookshelves",
    "child": "children",
    "fish": "fish",
    "knife": "knives",
    "man": "men",
    "mouse": "mice",
    "photo": "photos",
    "piano": "pianos",
    "police officer": "police officers",
    "scarf": "scarves",
    "sheep": "sheep",
    "wife": "wives",
    "wolf": "wolves",
    "woman": "women",
    "person": "people",
    "businessman": "businessmen",
    "mango": "mangoes",
}

_IRREGULAR_COMPARATIVES = {
    "good": ("better", "best"),
    "well": ("better", "best"),
    "bad": ("worse", "worst"),
    "far": ("farther", "farthest"),
    "handsome": ("more handsome", "most handsome"),
    "early": ("earlier", "earliest"),
    "quiet": ("quieter", "quietest"),
    "narrow": ("narrower", "narrowest"),
    "simple": ("simpler", "simplest"),
    "tired": ("more tired", "most tired"),
    "clever": ("cleverer", "cleverest"),
    "polite": ("more polite", "most polite"),
    "shy": ("shyer", "shyest"),
    "sour": ("more sour", "most sour"),
    "bored": ("more bored", "most bored"),
    "scared": ("more scared", "most scared"),
}

# Verbs of two syllables or more, stressed on the last, double like "stop".
_DOUBLING = {"forget", "begin", "get up"}
_VOWELS = "aeiou"
# A vowel letter that sounds like a consonant, and the other way round.
_CONSONANT_SOUNDS = ("uni", "use", "eu", "one")
_VOWEL_SOUNDS = ("hour", "honest", "8", "11", "18")


def inflect(verb: str, form: Form) -> str:
    """A form of an English verb; of a verb of several words the first is inflected.

    Example:
        >>> [inflect("take care of", form) for form in ("third", "past", "ing")]
        ['takes care of', 'took care of', 'taking care of']
    """
    head, space, rest = verb.partition(" ")
    return _inflect_word(head, form) + space + rest


def _inflect_word(verb: str, form: Form) -> str:
    if form == "base":
        return verb
    if form == "third":
        return {"have": "has", "be": "is"}.get(verb) or _add_s(verb)
    if form == "ing":
        return _add_ing(verb)
    if verb in _IRREGULAR_VERBS:
        return _IRREGULAR_VERBS[verb][form == "participle"]
    if verb.endswith("e"):
        return verb + "d"
    if _ends_in_consonant_y(verb):
        return verb[:-1] + "ied"
    return _doubled(verb) + "ed"


def plural(noun: str) -> str:
    """The plural of an English noun; of several words the last changes.

    Example:
        >>> plural("knife"), plural("cherry"), plural("cell phone"), plural("box")
        ('knives', 'cherries', 'cell phones', 'boxes')
    """
    if noun in _IRREGULAR_PLURALS:
        return _IRREGULAR_PLURALS[noun]
    head, space, last = noun.rpartition(" ")
    if last in _IRREGULAR_PLURALS:
        return head + space + _IRREGULAR_PLURALS[last]
    if last.endswith(("ato",)):
        return head + space + last + "es"
    return head + space + _add_s(last)


def comparative(adjective: str) -> str:
    """The comparative of an English adjective or adverb.

    Example:
        >>> [comparative(each) for each in ("big", "busy", "nice", "expensive", "good")]
        ['bigger', 'busier', 'nicer', 'more expensive', 'better']
    """
    return _compare(adjective, 0, "er", "more ")


def superlative(adjective: str) -> str:
    """The superlative of an English adjective or adverb, without its article.

    Example:
        >>> [superlative(each) for each in ("big", "busy", "interesting", "far")]
        ['biggest', 'busiest', 'most interesting', 'farthest']
    """
    return _compare(adjective, 1, "est", "most ")


def _compare(adjective: str, degree: int, ending: str, adverb: str) -> str:
    if adjective in _IRREGULAR_COMPARATIVES:
        return _IRREGULAR_COMPARATIVES[adjective][degree]
    if _syllables(adjective) == 2 and adjective.endswith("y"):
        return adjective[:-1] + "i" + ending
    if _syllables(adjective) > 1:
        return adverb + adjective
    if adjective.endswith("e"):
        return adjective + ending[1:]
    if _ends_in_consonant_y(adjective):
        return adjective[:-1] + "i" + ending
    return _doubled(adjective) + ending


def be(person: Person, *, past: bool = False) -> str:
    """The form of "be" for a subject.

    Example:
        >>> be("first"), be("singular"), be("plural", past=True)
        ('am', 'is', 'were')
    """
    if past:
        return "were" if person == "plural" else "was"
    return {"first": "am", "singular": "is", "plural": "are"}[person]


def do(person: Person) -> str:
    """Do or does."""
    return "does" if person == "singular" else "do"


def have(person: Person) -> str:
    """Have or has."""
    return "has" if person == "singular" else "have"


def present(person: Person) -> Form:
    """The form of a verb in the present tense."""
    return "third" if person == "singular" else "base"


def agreeing(verb: str, person: Person) -> str:
    """A verb in the present tense, as its subject asks.

    Example:
        >>> agreeing("go home", "singular"), agreeing("go home", "plural")
        ('goes home', 'go home')
    """
    return inflect(verb, present(person))


def article(following: str) -> str:
    """The article a or an, by the sound that follows.

    Example:
        >>> [article(each) for each in ("apple", "university", "hour", "old")]
        ['an', 'a', 'an', 'an']
    """
    low = following.lower()
    if low.startswith(_VOWEL_SOUNDS):
        return "an"
    return "an" if low[0] in _VOWELS and not low.startswith(_CONSONANT_SOUNDS) else "a"


def _add_s(text: str) -> str:
    if _ends_in_consonant_y(text):
        return text[:-1] + "ies"
    if text.endswith(("s", "x", "z", "ch", "sh")) or text in {"go", "do"}:
        return text + "es"
    return text + "s"


def _add_ing(verb: str) -> str:
    if verb.endswith("ie"):
        return verb[:-2] + "ying"
    if verb.endswith("e") and not verb.endswith("ee") and verb != "be":
        return verb[:-1] + "ing"
    return _doubled(verb) + "ing"


def _doubled(text: str) -> str:
    """With the last consonant doubled where the ending asks for it: stop, stopp-."""
    if len(text) < 3 or text[-1] in _VOWELS + "wxy" or text[-2] not in _VOWELS:
        return text
    if (text[-3] in _VOWELS and text[-3:-1] != "ui") or text.startswith("qu"):
        return text
    return text + text[-1] if _syllables(text) == 1 or text in _DOUBLING else text


def _ends_in_consonant_y(text: str) -> bool:
    return text.endswith("y") and text[-2] not in _VOWELS


def _syllables(text: str) -> int:
    """Groups of vowels, a silent final e not counted."""
    stem = text[:-1] if text.endswith("e") and not text.endswith("le") else text
    groups = 0
    before = False
    for letter in stem:
        vowel = letter in "aeiouy"
        groups += vowel and not before
        before = vowel
    return max(groups, 1)
