"""Text to numbers and back: readers, tokenizers, corpora, batches."""

from typing import TYPE_CHECKING

from regard.lazy import names as _names

if TYPE_CHECKING:
    from regard.text.batches import (
        Batch,
        Batches,
        BatchPlan,
        batched,
        collate,
        pad_pairs,
        permutation,
    )
    from regard.text.checking import DataReport, check_pairs
    from regard.text.corpus import Corpus, Sequences, encode_corpus, resample
    from regard.text.findings import Finding
    from regard.text.masking import Masked, mask_words, words_of_spans
    from regard.text.normalization import normalize
    from regard.text.reading.forms import open_text
    from regard.text.reading.lines import BadLines, Line, decode_lines, read_lines
    from regard.text.reading.pairs import Pair, PairLayout, read_pairs
    from regard.text.tokenizers.pieces import BOS_ID, EOS_ID, PAD_ID, UNK_ID, Piece, Tokenizer
    from regard.text.tokenizers.tokenizer import (
        PairTokenizer,
        TokenizerConfig,
        load_pair_tokenizer,
        load_tokenizer,
        train_pair_tokenizer,
        train_tokenizer,
    )
    from regard.text.vectors import WordVectors, read_vectors, write_vectors

__all__ = [
    "BOS_ID",
    "EOS_ID",
    "PAD_ID",
    "UNK_ID",
    "BadLines",
    "Batch",
    "BatchPlan",
    "Batches",
    "Corpus",
    "DataReport",
    "Finding",
    "Line",
    "Masked",
    "Pair",
    "PairLayout",
    "PairTokenizer",
    "Piece",
    "Sequences",
    "Tokenizer",
    "TokenizerConfig",
    "WordVectors",
    "batched",
    "check_pairs",
    "collate",
    "decode_lines",
    "encode_corpus",
    "load_pair_tokenizer",
    "load_tokenizer",
    "mask_words",
    "normalize",
    "open_text",
    "pad_pairs",
    "permutation",
    "read_lines",
    "read_pairs",
    "read_vectors",
    "resample",
    "train_pair_tokenizer",
    "train_tokenizer",
    "words_of_spans",
    "write_vectors",
]

__getattr__ = _names(__name__, __file__)
