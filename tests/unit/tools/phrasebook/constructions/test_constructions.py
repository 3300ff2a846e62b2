"""Each construction by itself."""

from collections import Counter

import pytest
from tools.phrasebook.chance import Chance
from tools.phrasebook.constructions import CONSTRUCTIONS, WEIGHTS
from tools.phrasebook.surface import finish

SAMPLES = 12


@pytest.mark.parametrize("name", CONSTRUCTIONS)
def test_a_construction_names_itself_and_links_its_words(name):
    chance = Chance(7)
    for _ in range(SAMPLES):
        unit = CONSTRUCTIONS[name](chance)
        assert name in unit.constructions
        phrase = finish(unit)
        sure = Counter(target for _, target in phrase.sure)
        assert max(sure.values()) == 1, phrase
        linked = {target for _, target in phrase.possible}
        assert len(linked) >= 0.75 * len(phrase.target_words), phrase


@pytest.mark.parametrize("name", CONSTRUCTIONS)
def test_a_construction_shows_a_sample_in_its_docstring(name):
    chinese, _, english = (CONSTRUCTIONS[name].__doc__ or "").partition(" / ")
    assert any("\u4e00" <= character <= "\u9fff" for character in chinese)
    assert english[0].isupper() or english[0].isdigit()


def test_every_construction_is_drawn():
    assert WEIGHTS.keys() == CONSTRUCTIONS.keys()
    assert min(WEIGHTS.values()) >= 1
