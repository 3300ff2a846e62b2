"""Training text beyond memory: read in parts, encoded into files, and kept for the next training.

::

    cache/TEXT/scan.json        how many lines the text has, by the sums of its files
    cache/TEXT/sample.jsonl     lines to learn a tokenizer from
    cache/TEXT/held.jsonl       lines held out to validate on, where no file is named
    cache/TEXT/tokenizers/…     tokenizers that were learned
    cache/TEXT/encoded/…        the ids of all samples, and where each ends: flat files

``TEXT`` is a checksum of what the files hold, so that it does not matter where they lie. Nothing in
it is ever needed: what is missing or of other text or settings is made again.
"""

from typing import TYPE_CHECKING

from regard.lazy import names as _names

if TYPE_CHECKING:
    from regard.training.corpora.cache import (
        CachedText,
        cached_texts,
        default_cache,
        delete_cached,
    )
    from regard.training.corpora.place import LARGE, is_on_disk
    from regard.training.corpora.preparing import encode_ahead
    from regard.training.corpora.stored_text import StoredText, parts_of

__all__ = [
    "LARGE",
    "CachedText",
    "StoredText",
    "cached_texts",
    "default_cache",
    "delete_cached",
    "encode_ahead",
    "is_on_disk",
    "parts_of",
]

__getattr__ = _names(__name__, __file__)
