"""Training text beyond memory: read in parts, encoded into files, and kept for the next training.

::

    cache/TEXT/scan.json        how many lines the text has, by the sums of its files
    cache/TEXT/sample.jsonl     lines to learn a tokenizer from
    cache/TEXT/held.jsonl       lines held out to validate on, where no file is named
    cache/TEXT/tokenizers/…     tokenizers that were learned
    cache/TEXT/encoded/…        the ids of all samples, and where each ends: flat files

``TEXT`` is a checksum of the files' content, so that it does not matter where they lie. Nothing in
it is ever needed: files that are missing or of other text or settings are made again.
"""
