"""Text to numbers and back: readers, tokenizers, corpora, batches."""

from regard.text.normalization import normalize
from regard.text.pair_tokenizer import PairTokenizer, load_pair_tokenizer, train_pair_tokenizer
from regard.text.pieces import BOS_ID, EOS_ID, PAD_ID, UNK_ID, Piece
from regard.text.tokenizer import Tokenizer, TokenizerConfig, load_tokenizer, train_tokenizer

__all__ = [
    "BOS_ID",
    "EOS_ID",
    "PAD_ID",
    "UNK_ID",
    "PairTokenizer",
    "Piece",
    "Tokenizer",
    "TokenizerConfig",
    "load_pair_tokenizer",
    "load_tokenizer",
    "normalize",
    "train_pair_tokenizer",
    "train_tokenizer",
]
