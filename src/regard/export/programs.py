"""Programs in the READMEs of exports: they run in the folder that was written, without regard."""

from regard.text import PairTokenizer, Tokenizer
from regard.text.normalization import UNSPACED
from regard.text.tokenizers.sentencepieces import SentencePieceTokenizer
from regard.text.tokenizers.words import ListTokenizer

_IMPORTS = "import json\nimport re\nimport sys\nimport unicodedata\nfrom pathlib import Path\n"
_SUBWORDS = '''
from sentencepiece import SentencePieceProcessor


def reader(side):
    """Two functions: from text to ids, and back."""
    pieces = SentencePieceProcessor(model_file=f"tokenizer/{side}/tokenizer.model")
    return lambda text: pieces.encode(prepared(text)), lambda ids: pieces.decode(ids).strip()
'''
_LISTED = '''

def reader(side):
    """Two functions: from text to ids, and back; 0 to 3 are reserved, 1 is unknown."""
    pieces = json.loads(Path(f"tokenizer/{side}/tokenizer.json").read_text("utf-8"))["pieces"]
    ids = {piece: place for place, piece in enumerate(pieces, 4)}

    def encode(text):
        return [ids.get(piece, 1) for piece in cut(prepared(text), ids)]

    return encode, lambda written: "".join(pieces[each - 4] for each in written if each > 3).strip()
'''
_CHARACTERS = """

def prepared(text):
    return " ".join(text.split())


def cut(text, known):
    return list(text)
"""
_MARKED = '''
# Scripts that are written without spaces between words.
UNSPACED = {unspaced}


def prepared(text):
    """A first word has a space before it, as others have."""
    text = " ".join(text.split())
    opens = text[:1].isalnum() and not re.search(UNSPACED, text)
    return f" {{text}}" if opens else text
'''
_WORDS = '''

WORD = re.compile(r"s?(?:a[am]*(?:qa[am]*)*|d[dm]*|[oq]m*)|cm*|m+|s")


def kind(char):
    """One letter: unspaced character, letter, digit, mark, space, apostrophe or other."""
    group = unicodedata.category(char)[0]
    if group in "LN":
        return "c" if re.match(UNSPACED, char) else "a" if group == "L" else "d"
    return "m" if group == "M" else {" ": "s", "'": "q", "’": "q"}.get(char, "o")


def cut(text, known):
    """Words with the space before them; one that is not known is cut into characters."""
    for found in WORD.finditer("".join(map(kind, text))):
        word = text[found.start() : found.end()]
        if word not in known and word[:1] == " " and word[1:] in known:
            yield from (" ", word[1:])
        else:
            yield from [word] if word in known else word
'''
_BY_REGARD = '''
from regard.text import load_tokenizer


def reader(side):
    """Two functions: from text to ids, and back."""
    tokenizer = load_tokenizer(Path("tokenizer") / side)
    return tokenizer.encode, tokenizer.decode
'''


def reading(tokenizer: Tokenizer) -> str:
    """Code of ``reader(side)`` for the folders in ``tokenizer``; regard reads checkpoints' own."""
    marked = _MARKED.format(unspaced=ascii(UNSPACED))
    if isinstance(tokenizer, SentencePieceTokenizer):
        return _IMPORTS + _SUBWORDS + (marked if tokenizer.marks_words else _CHARACTERS)
    if isinstance(tokenizer, ListTokenizer):
        cut = _CHARACTERS if tokenizer.kind == "characters" else f"{marked}{_WORDS}"
        return f"{_IMPORTS}{cut}{_LISTED}"
    return _IMPORTS + _BY_REGARD


def sides(tokenizer: PairTokenizer) -> tuple[str, str]:
    """The folders of a pair's tokenizers below ``tokenizer``."""
    return ("shared", "shared") if tokenizer.is_shared else ("source", "target")


def program(code: str, *, needs: str) -> str:
    """A program in Markdown, with what it needs and how it is run."""
    return (
        f"    pip install {needs}\n\n"
        "This program is run in this folder; where it reads, it reads lines from stdin:\n\n"
        f"```python\n{code.strip()}\n```"
    )
