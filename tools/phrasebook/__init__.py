"""The grammar that writes the phrasebook: 40,000 Chinese-English pairs with gold word alignments.

It is a grammar of both languages at once, so every pair is translated and aligned by construction.
``grammar`` is the core, ``lexicon`` the words, ``constructions`` the sentences; ``corpus`` draws
the pairs and splits them; ``writing`` has the file that ships with the package.
"""
