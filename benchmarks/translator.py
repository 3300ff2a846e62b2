"""The translator that comes with regard, from its data to its file: Chinese to English.

    python -m benchmarks.translator --work FOLDER [--back-minutes 11] [--minutes 50] [--ship]

1. Real pairs: Tatoeba's (cmn-eng, its training part), those that the authors wrote for it
   (``spoken.tsv``), and the phrasebook's everyday sentences.
2. An English-to-Chinese translator learns from the first two.
3. It translates the English sentences of Tatoeba that have a German translation (deu-eng):
   synthetic pairs (Sennrich et al., 2016, https://arxiv.org/abs/1511.06709). The surest are kept;
   their sources begin with a tag, so that the model knows them for what they are (Caswell et al.,
   2019, https://arxiv.org/abs/1906.06442).
4. The translator learns from all of them; Tatoeba's real pairs and the authors' come twice, the
   second time without a full stop at the end of the Chinese, as people type.
5. Its figures: BLEU and chrF of Tatoeba's test part beside the translation of the nearest training
   sentence; and of ``everyday.tsv``, sentences written before any output was read, the share whose
   output is among those that a reader judged adequate: the columns behind the meaning.

No pair is learned from whose English or Chinese, but for case, spaces and punctuation, is in the
validation or test part or in ``everyday.tsv``. The validation part chooses the weights, the test
part is read once. Each step leaves a file or a run in the folder, and is not done again; a training
that was stopped goes on. ``--ship`` writes the file, in bfloat16, with its card.
"""

import argparse
import json
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch

from benchmarks import measuring
from benchmarks.measuring import Figure
from benchmarks.training import settings_of, train
from benchmarks.translation import TATOEBA, measure, nearest
from regard.cli.jobs import parse_arguments
from regard.cli.recipes import packaged_recipe
from regard.inference import Predictor
from regard.runs import Run, is_run, packing
from regard.runs.card import SHIPPED
from regard.tasks import Recipe, read_recipe
from regard.text import PairLayout, read_pairs
from regard.text.phrasebook import phrases

NAME, SHIPS = "translator", "tatoeba-zh-en"
EVERYDAY = Path(__file__).with_name("everyday.tsv")
SPOKEN = Path(__file__).with_name("spoken.tsv")
CARD = Path(__file__).with_name("translator_card.md")
BLEU, ADEQUATE = 37, 75  # asked for; of everyday sentences in percent
TAG = "※"
SUREST = 0.7  # of the synthetic pairs, by the likelihood of a token to the model that wrote it
MOST_WORDS = 20  # of an English sentence that is translated back
_SPELLING = re.compile(r"[\W_]+")
_NAME = re.compile(r"#\d+ \(([^()]+)\)")  # of a contributor, behind the number of a sentence
_SIZES = {
    **{"tokenizer.vocab_size": 4000, "tokenizer.shared": False, "data.max_length": 64},
    **{"model.model_dim": 192, "model.ffn_dim": 512, "model.num_heads": 4},
    **{"model.num_encoder_layers": 4, "model.num_decoder_layers": 2},
    **{"training.epochs": None, "training.batch_tokens": 3072, "training.validation_pairs": 0},
}
_BACK = {**_SIZES, "model.dropout": 0.25, "data.source_language": "en", "data.columns": [2, 1]}
_FORTH = {
    **_SIZES,
    "tokenizer.vocab_size": 3200,  # of Chinese little more than its characters, which are looked at
    **{"model.dropout": 0.1, "model.attention_dropout": 0.0, "model.head_dropout": 0.2},
    **{"data.source_language": "zh", "data.source_end": False, "data.columns": [1, 2]},
}


def plain(text: str) -> str:
    """A sentence without what does not make another: case, spaces, punctuation."""
    return _SPELLING.sub("", text.lower())


def tatoeba(part: str, corpus: str = TATOEBA.name) -> list[tuple[str, str]]:
    """English sentences with their translations."""
    path = measuring.corpora() / corpus / part
    pairs = read_pairs(path, layout=PairLayout(columns=(1, 2)))
    return [(pair.source, pair.target) for pair in pairs]


def rows(path: Path) -> list[list[str]]:
    """Lines of a file of the authors, cut at tabs."""
    return [line.split("\t") for line in path.read_text("utf-8").splitlines()]


def everyday() -> list[list[str]]:
    """Sentences to be judged by: source, meaning, adequate outputs."""
    return rows(EVERYDAY)


def spoken() -> list[tuple[str, str]]:
    """Sentences that the authors wrote to be learned from, with their translations."""
    return [(chinese, english) for chinese, english in rows(SPOKEN)]


@cache
def held_out() -> frozenset[str]:
    """Both sides of all that is measured on."""
    pairs = [pair for part in (*TATOEBA.valid, *TATOEBA.tests["test"]) for pair in tatoeba(part)]
    pairs += [(source, meaning) for source, meaning, *_ in everyday()]
    return frozenset(plain(text) for pair in pairs for text in pair)


def usable(pairs: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Pairs without those of which a side is measured on."""
    return (pair for pair in pairs if not held_out() & {plain(text) for text in pair})


def english() -> list[str]:
    """English sentences without a Chinese translation, each once."""
    (train,) = TATOEBA.train
    known = held_out() | {plain(source) for source, _ in tatoeba(train)}
    sentences = dict.fromkeys(source for source, _ in tatoeba("train.tsv.gz", "deu-eng"))
    return [
        each for each in sentences if plain(each) not in known and len(each.split()) <= MOST_WORDS
    ]


def write_pairs(path: Path, pairs: Iterable[tuple[str, str]]) -> Path:
    """Chinese and English in two columns."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{chinese}\t{text}\n" for chinese, text in pairs), "utf-8")
    return path


def translated_back(work: Path) -> list[tuple[str, str]]:
    """Synthetic pairs: Chinese by the model, English by people."""
    path = work / "synthetic.tsv"
    if not path.exists():
        started, texts = time.perf_counter(), english()
        predictor = Predictor.load(work / "back", precision="int8")
        outputs = [each.best for each in predictor.translate(texts, beam_size=1)]
        found = zip(outputs, texts, strict=True)
        ranked = sorted(found, key=lambda pair: pair[0].log_prob / (1 + len(pair[0].tokens)))
        surest = ranked[round((1 - SUREST) * len(ranked)) :]
        write_pairs(path, ((best.text, text) for best, text in surest if best.text.strip()))
        print(f"{len(texts):,} sentences in {time.perf_counter() - started:.0f} s", flush=True)
    return list(usable((zh, en) for zh, en in rows(path)))


def trained(
    pairs: Path, valid: Path, run: Path, *, settings: dict[str, Any], minutes: float, seed: int
) -> tuple[Recipe, float]:
    """Train a translator, or go on with it; its recipe, and the minutes that it took."""
    recipe = parse_arguments(["transformer-muon", str(pairs)]).resolve(
        {
            **settings,
            "data.valid": [str(valid)],
            "data.target_language": "en" if settings["data.source_language"] == "zh" else "zh",
            "training.minutes": minutes,
            "training.seed": seed,
        }
    )
    summary = run.with_suffix(".json")
    if not summary.exists():
        summary.write_text(json.dumps(train(recipe, run).summary), "utf-8")
    return recipe, float(json.loads(summary.read_text("utf-8"))["seconds"]) / 60


@dataclass(frozen=True, kw_only=True, slots=True)
class Made:
    """The runs of one making, with their recipes and minutes."""

    recipes: Mapping[str, Recipe]
    minutes: Mapping[str, float]
    pairs: Mapping[str, int]


def make(work: Path, *, back_minutes: float, minutes: float, seed: int) -> Made:
    """Make the translator in the run ``work/translator``, and before it what it learns from."""
    (of_training,), (of_validation,) = TATOEBA.train, TATOEBA.valid
    real = list(usable((zh, en) for en, zh in tatoeba(of_training)))
    said = list(usable(spoken()[: measuring.sized(None, 20)]))
    real_pairs = write_pairs(work / "real.tsv", [*real, *said])
    valid = write_pairs(work / "valid.tsv", ((zh, en) for en, zh in tatoeba(of_validation)))
    back, took = trained(
        real_pairs, valid, work / "back", settings=_BACK, minutes=back_minutes, seed=seed
    )
    tagged = [(f"{TAG}{zh}", en) for zh, en in translated_back(work)]
    book = phrases("everyday")[: measuring.sized(None, 20)]
    written = list(usable((each.source, each.target) for each in book))
    unended = [(zh.removesuffix("。"), en) for zh, en in (*real, *said)]
    pairs = write_pairs(work / "train.tsv", [*real, *said, *unended, *written, *tagged])
    counts = {"real": len(real), "spoken": len(said), "phrasebook": len(written)}
    counts["synthetic"] = len(tagged)
    print(counts, flush=True)
    recipe, longer = trained(pairs, valid, work / NAME, settings=_FORTH, minutes=minutes, seed=seed)
    return Made(
        recipes={"back": back, NAME: recipe}, minutes={"back": took, NAME: longer}, pairs=counts
    )


def adequate(predictor: Predictor) -> list[dict[str, Any]]:
    """Outputs for the everyday sentences, and whether a reader judged them adequate."""
    judged_by = everyday()
    outputs = predictor.translate([source for source, *_ in judged_by])
    return [
        {
            "source": source,
            "meaning": meaning,
            "output": output.best.text,
            "adequate": output.best.text in (meaning, *judged),
        }
        for (source, meaning, *judged), output in zip(judged_by, outputs, strict=True)
    ]


def minute_demo(work: Path) -> Predictor:
    """The translator of ``regard demo --train``, which learns the phrasebook alone."""
    run = work / "demo"
    if not is_run(run):
        train(read_recipe(packaged_recipe("demo")), run)
    return Predictor.load(run)


def figures(found: Mapping[str, Any]) -> list[Figure]:
    """The lines of the page."""
    test, minutes = found["test"], found["minutes"]
    right, beside = (
        f"{sum(each['adequate'] for each in found[name])} of {len(found[name])}"
        for name in ("everyday", "everyday by the demo")
    )
    return [
        Figure(
            what="The translator that comes with regard, BLEU / chrF, Tatoeba zh→en, test",
            ours=f"{test['bleu']['value']:.2f} / {test['chrf']['value']:.2f}",
            beside="the nearest training sentence's translation: "
            f"{found['nearest_bleu']:.2f} BLEU; at least {BLEU} asked for",
            note=f"seeds: 1, {minutes[NAME]:.0f} min on a core, and {minutes['back']:.0f} min of "
            f"the model that translates back; {found['bytes'] / 1e6:.1f} MB",
        ),
        Figure(
            what="The translator that comes with regard, everyday sentences, adequate outputs",
            ours=right,
            beside=f"`regard demo --train`: {beside}; at least {ADEQUATE} % asked for",
            note="the authors' sentences and their judgement",
        ),
    ]


def card(found: Mapping[str, Any], predictor: Predictor, arguments: argparse.Namespace) -> str:
    """The card of the translator, in Markdown: its data, its quality, its licences."""
    model, test = predictor.recipe.table()["model"], found["test"]
    return CARD.read_text("utf-8").format(
        name=SHIPS,
        parameters=sum(each.numel() for each in predictor.model.parameters()),
        layers=f"{model['num_encoder_layers']} + {model['num_decoder_layers']}",
        width=model["model_dim"],
        size=found["bytes"] / 1e6,
        bleu=test["bleu"]["value"],
        chrf=test["chrf"]["value"],
        nearest=found["nearest_bleu"],
        count=len(found["everyday"]),
        right=sum(each["adequate"] for each in found["everyday"]),
        **found["pairs"],
        back_minutes=arguments.back_minutes,
        minutes=arguments.minutes,
        took=sum(found["minutes"].values()),
        contributors=", ".join(contributors()),
    )


def contributors() -> list[str]:
    """Names of those who wrote the training pairs, as the corpus gives them."""
    path = measuring.corpora() / TATOEBA.name / TATOEBA.train[0]
    pairs = read_pairs(path, layout=PairLayout(columns=(1, 3)))
    return sorted({name for pair in pairs for name in _NAME.findall(pair.target)}, key=str.lower)


def main() -> None:
    parser = measuring.command(__doc__, work="folder of runs and text")
    parser.add_argument("--back-minutes", type=float, default=11)
    parser.add_argument("--minutes", type=float, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ship", action="store_true", help="write the file of the package")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    before, work = measuring.machine(), arguments.work
    made = make(
        work, back_minutes=arguments.back_minutes, minutes=arguments.minutes, seed=arguments.seed
    )
    bundle = pack(work / NAME, work / f"{SHIPS}.regard", readme="")
    predictor = Predictor.load(bundle)
    found = {
        "pairs": made.pairs,
        "minutes": made.minutes,
        "bytes": bundle.stat().st_size,
        "test": measure(predictor, TATOEBA)["test"],
        "nearest_bleu": nearest(TATOEBA),
        "everyday": adequate(predictor),
        "everyday by the demo": adequate(minute_demo(work)),
        "recipes": {name: settings_of(recipe) for name, recipe in made.recipes.items()},
        "summary": Run.open(work / NAME).summary,
    }
    print(*figures(found), sep="\n", flush=True)
    if arguments.ship:
        text = card(found, predictor, arguments)
        pack(work / NAME, SHIPPED / bundle.name, readme=text)
        (SHIPPED / f"{SHIPS}.md").write_text(text, "utf-8")
    if not arguments.dry:
        measuring.write_record(
            NAME,
            title="The translator that comes with regard",
            figures=figures(found),
            details=found,
            started_on=before,
        )


def pack(run: Path, bundle: Path, *, readme: str) -> Path:
    """Write a run as a bundle in bfloat16, in place of what is there."""
    bundle.unlink(missing_ok=True)
    packing.pack(Run.open(run), bundle, readme=readme, dtype=torch.bfloat16)
    return bundle


if __name__ == "__main__":
    main()
