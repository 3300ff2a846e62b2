"""The phrasebook: 40,000 Chinese-English sentence pairs with gold word alignments.

It is written as a grammar of both languages at once, so every pair is translated and aligned by
construction. ``grammar`` is the core, ``lexicon`` the words, ``constructions`` the sentences;
``corpus`` draws the pairs and splits them.
"""

from regard.text.phrasebook.constructions import CONSTRUCTIONS
from regard.text.phrasebook.corpus import Split, phrases
from regard.text.phrasebook.lexicon import lexicon_size
from regard.text.phrasebook.surface import Phrase

__all__ = ["CONSTRUCTIONS", "Phrase", "Split", "lexicon_size", "phrases"]
