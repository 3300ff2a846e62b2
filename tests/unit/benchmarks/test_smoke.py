"""Every benchmark runs: each script once, in a process of its own, on sizes that mean nothing."""

import gzip
import json
import os
import shutil
from functools import cache
from itertools import islice

import pytest
from benchmarks import measuring
from tests.unit.benchmarks.processes import run_module

ROOT = measuring.ROOT
BENCHMARKS = ROOT / "benchmarks"
SCRIPTS = sorted(
    path.relative_to(BENCHMARKS).with_suffix("").as_posix().replace("/", ".")
    for path in BENCHMARKS.rglob("*.py")
    if '__name__ == "__main__"' in path.read_text("utf-8")
)
ONE = ("--rounds", "1")
ALONE = ("--threads", "1")

# What each is told; WORK is a folder of its own. Sides that are not installed are left out by the
# script, which says so.
SMOKE: dict[str, tuple[str, ...]] = {
    "additive_attention": (*ONE, *ALONE),
    "answering_speed": ("--work", "WORK", *ONE, *ALONE),
    "attention": (*ONE, *ALONE),
    "attention_mechanisms": ("--work", "WORK"),
    "backend_choice": (),
    "classification": ("--work", "WORK"),
    "decoding_speed": ("--work", "WORK", *ONE, *ALONE),
    "demo": ("--work", "WORK", *ONE),
    "documents": ("--work", "WORK"),
    "fine_tuning": (
        *("--work", "WORK", "--only"),
        *("sst2", "hotel", "entities", "spans-chinese"),
        "step",
    ),
    "generation_speed": (*ONE, *ALONE),
    "gpu_attention": (*ONE,),
    "gpu_training": ("--work", "WORK", *ONE),
    "heads": ALONE,
    "inspection": (*ONE, *ALONE),
    "language_modelling": ("--work", "WORK", *ALONE),
    "peers.plain_torch": ("BATCHES", "--updates", "1", "--warmup", "0", *ALONE),
    "peers.regard_characters": (
        "language-model-characters",
        *("--text", "TEXT", "--run", "WORK", "--updates", "2"),
        *("--set", "model.model_dim=16", *ALONE),
    ),
    "peers.regard_speed": ("BATCHES", "--updates", "1", "--warmup", "0", *ALONE),
    "pretraining": ("hotel", "--work", "WORK"),
    "question_answering": (
        *("--work", "WORK", "--only"),
        *("spans-chinese", "choices", "pairs-esim", "sentences", "simple"),
    ),
    "replay": ("classification", "--work", "WORK", "--jobs", "1"),
    "simple_methods": ("--work", "WORK", "--only", "hotel"),
    "reasons": ("--work", "WORK", *ALONE),
    "start_up": (*ONE,),
    "summarisation": (
        *("--work", "WORK", "--corpus", "csl-titles"),
        *("--model", "Transformer, masked words first", "sentences taken out"),
    ),
    "tables": ("--pages", "PAGES", "--records", "RECORDS"),
    "tagging": ("--work", "WORK", *ALONE),
    "training_speed": ("--work", "WORK", *ONE, *ALONE),
    "translation": ("--work", "WORK", *ALONE),
    "translator": ("--work", "WORK", *ALONE),
}
# Those whose peer is not part of the tests; of nanoGPT, what is read is what its script writes.
ELSEWHERE = {"peers.nanogpt": "reads a checkpoint of nanoGPT"}
# Those that write no record of their own, or none without their peer.
UNRECORDED = {"language_modelling", "replay", "tables"}

_TAGGED = ("msra-ner-zh", "ud-english-ewt", "wnut17")
_ENDINGS = (".gz", ".txt", ".tsv", ".jsonl", ".json", ".conll", ".conllu", ".en", ".de")
_LINES, _TRAINING_LINES, _ARTICLES = 16, 200, 12


def test_every_script_has_a_run():
    assert set(SCRIPTS) == SMOKE.keys() | ELSEWHERE.keys()


@pytest.fixture
def beginnings(corpora, tmp_path_factory):
    """The corpora in small, made once."""
    folder = tmp_path_factory.getbasetemp() / "corpora"
    return folder if folder.exists() else copy_shortened(corpora, folder)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where all of them work, so that one may read what another has trained."""
    folder = tmp_path_factory.mktemp("benchmarks")
    (folder / "text").mkdir()
    for name in ("train.txt", "valid.txt"):
        (folder / "text" / name).write_text("To be, or not to be.\nThat is it.\n" * 40, "utf-8")
    batch = {"source": [[5, 6, 7], [8]], "target": [[9, 5], [6]]}
    (folder / "batches.jsonl").write_text(json.dumps(batch) + "\n", "utf-8")
    for name in ("README.md", "README.zh.md"):
        shutil.copy(ROOT / name, folder)
    return folder


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.parametrize("script", sorted(SMOKE))
def test_a_script_runs(script, beginnings, folder):
    before = _record_times()
    if script == "replay":  # of a record
        path = BENCHMARKS / "records" / "classification.json"
        record = json.loads(path.read_text("utf-8")) | {"fingerprint": {}}
        record["details"] = {"hotel": record["details"]["hotel"]}  # one of its trainings
        measuring.store(record, folder / "tiny" / "records")
    _run(script, beginnings, folder)
    if script not in UNRECORDED and not script.startswith("peers."):
        record = json.loads((folder / "tiny" / "records" / f"{script}.json").read_text("utf-8"))
        assert record["script"] == f"python -m benchmarks.{script}"
    if script == "replay":
        path = folder / "tiny" / "records" / "classification.json"
        record = json.loads(path.read_text("utf-8"))
        (fingerprint,) = record["fingerprint"].values()
        assert fingerprint["losses"].keys() == {"1", "2", "validation"}
        assert record["unsure"].startswith("losses are kept since")
    assert _record_times() == before, "a tiny run must leave records, figures and README alone"


@cache
def _run(script, corpora, folder):
    paths = {
        "BATCHES": str(folder / "batches.jsonl"),
        "PAGES": str(folder),
        "RECORDS": str(BENCHMARKS / "records"),
        "TEXT": str(folder / "text"),
    }
    work = str(folder / script)
    words = [paths.get(word, word.replace("WORK", work)) for word in SMOKE[script]]
    done = run_module(
        f"benchmarks.{script}",
        words,
        cwd=ROOT,
        env={
            "REGARD_DATA": str(corpora),
            "REGARD_TINY": str(folder / "tiny"),
            "OMP_NUM_THREADS": "1",
            "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
        },
        log=folder / f"{script}.log",
    )
    assert done.returncode == 0, done.stderr[-3000:]


def _record_times():
    """When what the repository keeps of measurements was last written."""
    pages = [*ROOT.glob("README*"), ROOT / "docs" / "measured.md"]
    files = [*measuring.RECORDS.glob("*"), *(ROOT / "docs" / "figures").glob("*"), *pages]
    return {str(path): path.stat().st_mtime for path in files}


def copy_shortened(corpora, to):
    """The corpora that scripts name, of each file its first lines, or its first articles."""
    scripts = "".join(path.read_text("utf-8") for path in BENCHMARKS.rglob("*.py"))
    for name in (each.name for each in corpora.iterdir() if each.name in scripts):
        for path in sorted((corpora / name).rglob("*")):
            if not (path.is_file() and path.name.endswith(_ENDINGS)):
                continue
            target = to / path.relative_to(corpora)
            target.parent.mkdir(parents=True, exist_ok=True)
            is_tagged = name in _TAGGED  # so few sentences lack tags: the same in each part
            (read,) = (corpora / name).glob("*train*") if is_tagged else (path,)
            with _opened(read, "rt") as file:
                text = _beginning(file, read.name, is_tagged=is_tagged)
            with _opened(target, "wt") as file:
                file.write(text)
    return to


def _opened(path, mode):
    return (
        gzip.open(path, mode, encoding="utf-8")
        if path.suffix == ".gz"
        else path.open(mode, encoding="utf-8")
    )


def _beginning(file, name, *, is_tagged):
    if ".json" in name and ".jsonl" not in name:
        table = json.loads(file.read())
        articles = table["data"][: _ARTICLES if "tr" in name else _ARTICLES // 4]
        return json.dumps({**table, "data": [*_few(articles)]})
    lines = "".join(islice(file, _TRAINING_LINES if "train" in name or "input" in name else _LINES))
    return lines.rpartition("\n\n")[0] + "\n\n" if is_tagged else lines


def _few(articles):
    """Articles, each with two of its paragraphs and two questions on each."""
    for article in articles:
        paragraphs = article["paragraphs"][:2]
        yield {**article, "paragraphs": [{**each, "qas": each["qas"][:2]} for each in paragraphs]}
