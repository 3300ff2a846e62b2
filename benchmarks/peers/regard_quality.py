"""regard's own side of the comparison by quality: train on given batches, translate given lines.

``… regard_quality train BATCHES RUN --threads 2`` trains Transformer-tiny on every batch of a
batches file, in order, with the schedule of ``joey.settings`` (Adam 0.9/0.98, peak 0.005 after
2,000 updates of linear warm-up, then the inverse square root, label smoothing 0.1), keeps the
result in the folder RUN, and prints one JSON line as ``regard_speed`` does, without a warm-up.

``… regard_quality translate RUN FOLDER --threads 2`` translates ``val`` and ``test_2016_flickr``
of the prepared FOLDER greedily, at most 60 tokens a sentence, and prints one JSON line::

    {"val": {"seconds": 9.1, "lines": ["…"]}, "test_2016_flickr": {"seconds": 8.9, "lines": ["…"]}}

``seconds`` starts with the lines in memory and the model loaded, and ends with text.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import sentencepiece
import torch
from torch.nn.utils.rnn import pad_sequence

from benchmarks.peers import batches
from benchmarks.peers.regard_speed import VOCAB_SIZE, fit, settings_of, summary, swapped
from regard.decoding import greedy
from regard.models import Transformer
from regard.runs import Run
from regard.text import BOS_ID, EOS_ID, PAD_ID, UNK_ID, batched, normalize

SPLITS = ("val", "test_2016_flickr")
MAX_TOKENS = 60
BATCH_TOKENS = 4096


def train(given: list[batches.IdBatch], folder: Path) -> dict[str, float]:
    """A run in ``folder``, trained once on every batch; and how long that took."""
    began = time.perf_counter()
    with Run.create(folder, {"task": "translation"}, "translation") as run:
        _, stopwatch = fit(given, run)
    return summary(stopwatch, warmup=0, began=began)


def translate(folder: Path, text: Path) -> dict[str, Any]:
    """Both splits, translated greedily."""
    model = Transformer(
        settings_of(), source_vocab=VOCAB_SIZE, target_vocab=VOCAB_SIZE, shared_vocab=True
    )
    model.load_state_dict(Run.open(folder).load_model())
    model.eval()
    processor = sentencepiece.SentencePieceProcessor(model_file=str(text / "spm.model"))
    results = {}
    for split in SPLITS:
        lines = (text / f"{split}.en").read_text("utf-8").splitlines()
        start = time.perf_counter()
        outputs = translate_lines(model, processor, lines)
        results[split] = {"seconds": round(time.perf_counter() - start, 3), "lines": outputs}
    return results


@torch.no_grad()
def translate_lines(model: Transformer, processor: Any, lines: list[str]) -> list[str]:
    """The greedy translation of each line."""
    sources = [
        torch.tensor([*swapped(processor.encode(normalize(line))), EOS_ID]) for line in lines
    ]
    outputs = [""] * len(lines)
    for places in batched([len(source) for source in sources], BATCH_TOKENS):
        rows = [sources[place] for place in places]
        lengths = torch.tensor([len(row) for row in rows])
        state = model.start(pad_sequence(rows, batch_first=True, padding_value=PAD_ID), lengths)
        answers = greedy(
            model.step,
            state,
            batch_size=len(rows),
            bos_id=BOS_ID,
            eos_id=EOS_ID,
            max_lengths=MAX_TOKENS,
            forbidden=(PAD_ID, UNK_ID, BOS_ID),
        )
        for place, answer in zip(places, answers, strict=True):
            outputs[place] = processor.decode(swapped(answer.tokens))
    return outputs


def main() -> None:
    """Read the arguments and do one of the two."""
    parser = argparse.ArgumentParser(description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    training = verbs.add_parser("train")
    training.add_argument("batches", type=Path)
    training.add_argument("run", type=Path)
    translating = verbs.add_parser("translate")
    translating.add_argument("run", type=Path)
    translating.add_argument("folder", type=Path)
    for verb in (training, translating):
        verb.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    if arguments.verb == "train":
        print(json.dumps(train(batches.read(arguments.batches), arguments.run)))
    else:
        print(json.dumps(translate(arguments.run, arguments.folder), ensure_ascii=False))


if __name__ == "__main__":
    main()
