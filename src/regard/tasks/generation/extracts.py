"""Answers and summaries that take no model: sentences of the documents."""

from collections.abc import Callable, Sequence
from statistics import fmean

from regard.metrics.rouge import first_words, sentence_rouge_n, words
from regard.tasks.baselines.sentence_graph import text_rank
from regard.tasks.generation.documents import DocumentExample, chosen, sentences


def extracts(
    documents: Sequence[DocumentExample], known: Sequence[str] = ()
) -> dict[str, list[str]]:
    """Sentences of the documents, by how they are chosen."""
    cut = [sentences(document.text) for document in documents]
    if any(document.question for document in documents):
        return {
            "the first sentence": [parts[0] for parts in cut],
            "the sentence that shares most words with the question": [
                _most_shared(parts, document.question)
                for parts, document in zip(cut, documents, strict=True)
            ],
        }
    count = max(1, round(fmean(len(sentences(one)) for one in known))) if known else 1
    many = "sentence" if count == 1 else f"{count} sentences"
    found = {f"the first {many}": [chosen(parts, range(min(count, len(parts)))) for parts in cut]}
    if known:
        counts = [len(words(one)) for one in known]
        length, texts = max(1, round(fmean(counts))), [document.text for document in documents]
        # Without spaces between words, each character counts as one.
        is_spaced = sum(counts) < 2 * sum(len(one.split()) for one in known)
        unit = "words" if is_spaced else "characters"
        found[f"the first {length} {unit}"] = [first_words(text, length) for text in texts]
    found[f"the {many} nearest to all"] = [_best(parts, count, _nearness) for parts in cut]
    found[f"TextRank's first {many}"] = [_best(parts, count, text_rank) for parts in cut]
    return found


def _best(
    parts: Sequence[str], count: int, ranked: Callable[[Sequence[str]], Sequence[float]]
) -> str:
    """So many sentences with the highest ranks, the earlier of equal ones, in their order."""
    ranks = ranked(parts)
    first = sorted(range(len(parts)), key=lambda place: -round(ranks[place], 9))[:count]
    return chosen(parts, sorted(first))


def _nearness(parts: Sequence[str]) -> list[float]:
    """How near each sentence is to the text of all, in words."""
    return sentence_rouge_n(parts, [" ".join(parts)] * len(parts), n=1)


def _most_shared(parts: Sequence[str], question: str) -> str:
    asked = set(words(question))
    return max(parts, key=lambda part: len(asked & set(words(part))))
