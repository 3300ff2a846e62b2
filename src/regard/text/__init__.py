"""Text to numbers and back: readers, tokenizers, corpora, batches."""

from typing import TYPE_CHECKING

from regard.lazy import names as _names

if TYPE_CHECKING:
    from regard.text.batches import Batch as Batch
    from regard.text.batches import Batches as Batches
    from regard.text.batches import BatchPlan as BatchPlan
    from regard.text.batches import batched as batched
    from regard.text.batches import pad_pairs as pad_pairs
    from regard.text.batches import permutation as permutation
    from regard.text.corpus import Corpus as Corpus
    from regard.text.corpus import Sequences as Sequences
    from regard.text.corpus import encode_corpus as encode_corpus
    from regard.text.corpus import resample as resample
    from regard.text.masking import Masked as Masked
    from regard.text.masking import mask_words as mask_words
    from regard.text.masking import words_of_spans as words_of_spans
    from regard.text.normalization import normalize as normalize
    from regard.text.reading.forms import open_text as open_text
    from regard.text.reading.lines import BadLines as BadLines
    from regard.text.reading.lines import Line as Line
    from regard.text.reading.lines import decode_lines as decode_lines
    from regard.text.reading.lines import read_lines as read_lines
    from regard.text.reading.pairs import Pair as Pair
    from regard.text.reading.pairs import PairLayout as PairLayout
    from regard.text.reading.pairs import read_pairs as read_pairs
    from regard.text.tokenizers.pieces import BOS_ID as BOS_ID
    from regard.text.tokenizers.pieces import EOS_ID as EOS_ID
    from regard.text.tokenizers.pieces import PAD_ID as PAD_ID
    from regard.text.tokenizers.pieces import UNK_ID as UNK_ID
    from regard.text.tokenizers.pieces import Piece as Piece
    from regard.text.tokenizers.pieces import Tokenizer as Tokenizer
    from regard.text.tokenizers.tokenizer import PairTokenizer as PairTokenizer
    from regard.text.tokenizers.tokenizer import TokenizerConfig as TokenizerConfig
    from regard.text.tokenizers.tokenizer import load_pair_tokenizer as load_pair_tokenizer
    from regard.text.tokenizers.tokenizer import load_tokenizer as load_tokenizer
    from regard.text.tokenizers.tokenizer import train_pair_tokenizer as train_pair_tokenizer
    from regard.text.tokenizers.tokenizer import train_tokenizer as train_tokenizer

__getattr__ = _names(__name__, __file__)
