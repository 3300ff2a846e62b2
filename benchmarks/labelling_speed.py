"""Words a second of labels and tags beside transformers' pipelines, with encoders of one shape.

    python -m benchmarks.labelling_speed [--rounds 5] [--threads 1 2] [--dry]

Texts of sst2, Chinese hotel reviews and English EWT, from lines to labels: reading, cutting into
words, batches, the pass, and what is printed. Ours are small Transformers by the shipped recipes,
with random weights, since these do not change the speed; the peer is BERT of the same sizes over
the same words. Both sides are measured in turn in one process, a process for each number of
threads.
"""

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.measuring import (
    Figure,
    Measured,
    Spread,
    alternate,
    apart,
    corpora,
    measure_speed,
    paired_ratio,
    sized,
)

NAME = "labelling_speed"
LINES = sized(2000, 40)
# What a pipeline takes at once, and the longest text that is read, in words.
AT_ONCE, LONGEST = 32, 256
SHAPE = {"model_dim": 128, "num_heads": 4, "num_layers": 2, "ffn_dim": 256}
OURS, PEER = "regard", "transformers"


@dataclass(frozen=True, kw_only=True, slots=True)
class Work:
    """A corpus, and what is said of its texts.

    Attributes:
        title: What it is, in words.
        task: Ours.
        pipeline: Theirs.
        file: What is learned from, and answered.
        data: How it is read.
        tokenizer: What cuts its texts; None takes the words that it has.
    """

    title: str
    task: str
    pipeline: str
    file: str
    data: Mapping[str, Any]
    tokenizer: str | None = None


_LABELS = {"task": "classification", "pipeline": "text-classification"}
WORKS = {
    "sst2": Work(
        **_LABELS,
        title="labels of sst2",
        file="sst2/train.tsv",
        data={"text": 1, "label": 2},
        tokenizer="words",
    ),
    "hotel": Work(
        **_LABELS,
        title="labels of Chinese hotel reviews",
        file="chnsenticorp-htl/train.tsv.gz",
        data={"text": 2, "label": 1},
        tokenizer="characters",
    ),
    "ewt": Work(
        task="tagging",
        pipeline="token-classification",
        title="tags of English EWT",
        file="ud-english-ewt/en_ewt-ud-train.conllu.gz",
        data={},
    ),
}


def ours(work: Work) -> tuple[Any, list[str]]:
    """Our model, and lines that it may be asked."""
    import torch

    from regard.inference import Predictor
    from regard.tasks import TASKS, recipe_from_table

    table: dict[str, Any] = {
        "task": work.task,
        "data": {"train": str(corpora() / work.file), "max_length": LONGEST, **work.data},
        "model": {"type": "transformer", "max_length": LONGEST + 2, **SHAPE},
    }
    if work.tokenizer is not None:
        # As the peer, all words are known: those that are not would be spelled.
        table["tokenizer"] = {"type": work.tokenizer, "min_count": 1}
    recipe = recipe_from_table(table)
    kind = TASKS[recipe.task].task
    examples = kind.read(recipe, "train")
    task = kind.learn(recipe, examples)
    torch.manual_seed(0)
    lines = [
        " ".join(each.words) if work.task == "tagging" else each.text for each in examples[:LINES]
    ]
    return Predictor(task.build_model().eval(), task), lines


def _answered(predictor: Any, file: Path) -> int:
    """What ``regard predict`` does but for printing; how many lines were answered."""
    from regard.inference.filtering import answers
    from regard.inference.line_groups import groups_of

    groups, name, ending = groups_of(file)
    found = answers(predictor, groups, name=name, ending=ending)
    return sum(len([line.text() for line in group]) for group in found)


def theirs(work: Work, lines: Sequence[str], labels: int) -> Callable[[], int]:
    """A pipeline with a BERT of the same sizes, over the words of these lines."""
    from collections import Counter

    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers
    from transformers import (
        BertConfig,
        BertForSequenceClassification,
        BertForTokenClassification,
        PreTrainedTokenizerFast,
        logging,
        pipeline,
    )

    logging.set_verbosity_error()
    tokenizer = Tokenizer(models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    normal, cut = tokenizer.normalizer.normalize_str, tokenizer.pre_tokenizer.pre_tokenize_str
    counts = Counter(word for line in lines for word, _ in cut(normal(line)))
    words = ["[PAD]", "[UNK]", *(word for word, _ in counts.most_common())]
    tokenizer.model = models.WordLevel(
        {word: place for place, word in enumerate(words)}, unk_token="[UNK]"
    )
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        model_max_length=LONGEST,
        model_input_names=["input_ids", "attention_mask"],
    )
    config = BertConfig(
        vocab_size=len(words),
        hidden_size=SHAPE["model_dim"],
        num_hidden_layers=SHAPE["num_layers"],
        num_attention_heads=SHAPE["num_heads"],
        intermediate_size=SHAPE["ffn_dim"],
        max_position_embeddings=LONGEST + 2,
        num_labels=labels,
    )
    kind = BertForTokenClassification if work.task == "tagging" else BertForSequenceClassification
    answer = pipeline(work.pipeline, model=kind(config).eval(), tokenizer=fast, device="cpu")
    more = {} if work.task == "tagging" else {"truncation": True}
    return lambda: len(answer(list(lines), batch_size=AT_ONCE, **more))


def measure_here(rounds: str, threads: str) -> dict[str, dict[str, list[float]]]:
    """Words a second of each side, for each corpus, the sides in turn in this process."""
    import torch

    torch.set_num_threads(int(threads))
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, work in WORKS.items():
            predictor, lines = ours(work)
            file = Path(folder) / f"{name}.txt"
            file.write_text("".join(f"{line}\n" for line in lines), "utf-8")
            words = sum(
                len(line) if work.tokenizer == "characters" else len(line.split()) for line in lines
            )
            sides: dict[str, Callable[[], int]] = {OURS: partial(_answered, predictor, file)}
            if find_spec("transformers") is not None:
                labels = len(getattr(predictor.task, "labels", None) or predictor.task.tags)
                sides[PEER] = theirs(work, lines, labels)
            for answer in sides.values():
                assert answer() == len(lines)
            speeds = {side: partial(_speed, answer, words) for side, answer in sides.items()}
            found[name] = alternate(speeds, int(rounds), report=lambda line: None)
    return found


def _speed(answer: Callable[[], int], words: int) -> float:
    start = time.perf_counter()
    answer()
    return words / (time.perf_counter() - start)


def measured(speeds: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    """What the samples of both sides say."""
    found: dict[str, Any] = {
        "words_a_second": {side: Spread.of(each).table() for side, each in speeds.items()}
    }
    if PEER in speeds:
        found["times_as_fast"] = paired_ratio(speeds[OURS], speeds[PEER]).table()
    return found


def figure(work: Work, found: Mapping[str, Any], threads: int) -> Figure:
    """One line of docs/measured.md."""
    speeds = {side: each["median"] for side, each in found["words_a_second"].items()}
    ratio = found.get("times_as_fast")
    return Figure(
        what=f"{work.title}, an encoder of 2 layers of 128, threads: {threads}",
        ours=f"{speeds[OURS]:,.0f} words/s",
        beside=f"{PEER}' pipeline: {speeds[PEER]:,.0f} words/s" if PEER in speeds else "",
        note=f"{ratio['median']:.2f} × ± {ratio['relative']:.0%}" if ratio else "",
    )


def measure(_: str, threads: int, rounds: int) -> Iterator[Measured]:
    """All corpora with so many threads."""
    samples = apart(f"benchmarks.{NAME}", "--side", rounds, threads, threads=threads)
    found = {name: measured(each) for name, each in samples.items()}
    lines = [figure(WORKS[name], each, threads) for name, each in found.items()]
    yield f"threads: {threads}", found, lines


def main() -> None:
    """Measure all corpora, and write the record."""
    measure_speed(
        NAME,
        title="Labels and tags beside transformers' pipelines",
        about=__doc__,
        rounds=5,
        side=measure_here,
        measure=measure,
        peer=PEER,
        packages=("torch", PEER),
        details={"lines": LINES, "shape": SHAPE},
    )


if __name__ == "__main__":
    main()
