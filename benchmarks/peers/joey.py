"""Joey NMT 2.3.0, driven from outside: its settings, its process, and what its log says.

It runs in an environment of its own (``setup_joey``), as a user would start it: ``python -m joeynmt
train FILE -t``. Its log gives, after every update, the target tokens per second since the update
before: tokens without padding, the end of each sentence included, over the time of the whole loop,
in which it also tokenises the next batch.
"""

import json
import re
import statistics
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import measuring
from benchmarks.peers import batches

_UPDATE = re.compile(
    r"Step:\s+(?P<step>\d+), Batch Loss:\s+(?P<loss>[\d.]+),.*Tokens per Sec:\s+(?P<rate>\d+)"
)
_EPOCH = re.compile(r"num\. of tokens: (?P<tokens>\d+)")


@dataclass(frozen=True, kw_only=True, slots=True)
class Update:
    """One line of Joey NMT's training log."""

    step: int
    loss: float
    tokens_per_second: float


def settings(
    folder: Path, *, train: str, model_dir: Path, updates: int, test: str = "test_2016_flickr"
) -> dict[str, Any]:
    """Transformer-tiny on a folder of ``prepare_multi30k``, reading ``train`` in its own order.

    Sizes, dropout, smoothing and schedule are those of the published Multi30k setting. Validation
    is put off to the last update, and every update is logged.
    """
    side = {
        "level": "bpe",
        "lowercase": False,
        "max_length": 128,
        "voc_file": str(folder / "vocab.txt"),
        "tokenizer_type": "sentencepiece",
        "tokenizer_cfg": {"model_file": str(folder / "spm.model")},
    }
    layers = {
        "type": "transformer",
        "num_layers": 4,
        "num_heads": 4,
        "embeddings": {"embedding_dim": 128, "scale": True, "dropout": 0.0},
        "hidden_size": 128,
        "ff_size": 256,
        "dropout": 0.3,
        "layer_norm": "post",
    }
    return {
        "name": "multi30k_tiny",
        "joeynmt_version": "2.3.0",
        "model_dir": str(model_dir),
        "use_cuda": False,
        "fp16": False,
        "random_seed": 42,
        "data": {
            "train": str(folder / train),
            "dev": str(folder / "val"),
            "test": str(folder / test),
            "dataset_type": "plain",
            "src": {"lang": "en", **side},
            "trg": {"lang": "de", **side},
            "special_symbols": {
                **{"unk_token": "<unk>", "unk_id": batches.UNK},
                **{"pad_token": "<pad>", "pad_id": batches.PAD},
                **{"bos_token": "<s>", "bos_id": batches.BOS},
                **{"eos_token": "</s>", "eos_id": batches.EOS},
            },
        },
        "testing": {
            "n_best": 1,
            "beam_size": 1,
            "batch_size": batches.BUDGET,
            "batch_type": "token",
            "max_output_length": 60,
            "eval_metrics": ["bleu"],
            "sacrebleu_cfg": {},
        },
        "training": {
            "optimizer": "adam",
            "normalization": "tokens",
            "adam_betas": [0.9, 0.98],
            "scheduling": "warmupinversesquareroot",
            "learning_rate_warmup": 2000,
            "learning_rate": 0.005,
            "learning_rate_min": 0.0,
            "label_smoothing": 0.1,
            "weight_decay": 0.0,
            "batch_size": batches.BUDGET,
            "batch_type": "token",
            "batch_multiplier": 1,
            "early_stopping_metric": "loss",
            "epochs": 1,
            "updates": updates,
            "validation_freq": 10 * updates,
            "logging_freq": 1,
            "overwrite": True,
            "shuffle": False,
            "print_valid_sents": [0],
            "keep_best_ckpts": 1,
        },
        "model": {
            "initializer": "xavier_uniform",
            "bias_initializer": "zeros",
            "init_gain": 1.0,
            "embed_initializer": "xavier_uniform",
            "embed_init_gain": 1.0,
            "tied_embeddings": True,
            "tied_softmax": True,
            "encoder": layers,
            "decoder": layers,
        },
    }


def train(
    python: Path, batches_file: Path, *, model_dir: Path, threads: int
) -> tuple[list[Update], list[batches.IdBatch]]:
    """Train on every batch of a batches file, in a process of its own."""
    given = batches.read(batches_file)
    config = settings(
        batches_file.parent, train=batches_file.stem, model_dir=model_dir, updates=len(given)
    )
    # One more than there are batches: the epoch then ends by itself, and its tokens are logged.
    config["training"]["updates"] = len(given) + 1
    log = _run(python, "train", config, "--skip-test", threads=threads)
    updates, epoch = read_updates(log), _EPOCH.search(log)
    tokens = sum(batch.target_tokens for batch in given)
    if len(updates) != len(given) or epoch is None or int(epoch["tokens"]) != tokens:
        seen = epoch["tokens"] if epoch else "no"
        raise RuntimeError(
            f"Joey NMT made {len(updates)} updates on {seen} tokens; "
            f"the file has {len(given)} batches with {tokens}"
        )
    return updates, given


def read_updates(log: str) -> list[Update]:
    """The updates of a training log."""
    return [
        Update(
            step=int(found["step"]),
            loss=float(found["loss"]),
            tokens_per_second=float(found["rate"]),
        )
        for found in _UPDATE.finditer(log)
    ]


def speed(
    updates: Sequence[Update], given: Sequence[batches.IdBatch], *, warmup: int
) -> Mapping[str, Any]:
    """The common line of a speed measurement, from a training log and the batches it read."""
    timed = [update for update in updates if update.step > warmup]
    tokens = [given[update.step - 1].target_tokens for update in timed]
    pairs = zip(tokens, timed, strict=True)
    seconds = sum(count / update.tokens_per_second for count, update in pairs)
    return {
        "updates": len(timed),
        "tokens": sum(tokens),
        "seconds": round(seconds, 4),
        "loss": round(statistics.fmean(update.loss for update in timed), 4),
    }


def _run(python: Path, mode: str, config: Mapping[str, Any], *options: str, threads: int) -> str:
    # A JSON file is a YAML file, as long as no number needs an exponent.
    model_dir = Path(config["model_dir"])
    file = model_dir.with_name(f"{model_dir.name}.{mode}.yaml")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(config, indent=1), "utf-8")
    done = subprocess.run(
        [str(python), "-m", "joeynmt", mode, str(file), *options],
        env=measuring.thread_environment(threads),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"joeynmt {mode} failed:\n{done.stdout[-3000:]}")
    return done.stdout
