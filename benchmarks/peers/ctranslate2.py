"""CTranslate2: what its vocabulary is called, and how it may use threads."""


def settings_of(threads: int) -> list[str]:
    """How it may use so many threads: workers x threads of each."""
    return ["1x1"] if threads == 1 else [f"1x{threads}", f"{threads}x1", "1x1"]


def names_of(vocabulary: int) -> list[str]:
    """A name for every id."""
    from regard.text.tokenizers.pieces import RESERVED

    return [*RESERVED, *(f"p{each}" for each in range(len(RESERVED), vocabulary))]
