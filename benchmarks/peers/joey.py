"""Joey NMT 2.3.0 as its users run it: ``python -m joeynmt train FILE -t``, by its own batches.

It stays in an environment of its own, whose python ``JOEYNMT_PYTHON`` names. There it also needs
``importlib_metadata``; and the line of its tokenizer that calls ``SetVocabulary``, which
sentencepiece no longer has, must do nothing. Sizes, dropout and schedule are those of its published
Multi30k setting; it drops inside feed-forward layers too, shuffles sentences and does not sort them
by length. Its log has target tokens a second, padding left out, after every update.
"""

import json
import os
import re
import statistics
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import sentencepiece as spm

from benchmarks.measuring import thread_environment
from benchmarks.peers import batches

PYTHON = os.environ.get("JOEYNMT_PYTHON")
_UPDATE = re.compile(r"Batch Loss:\s+([\d.]+),.*Tokens per Sec:\s+(\d+)")


def settings(folder: Path, updates: int) -> dict[str, Any]:
    """The settings of a training that logs every update and validates never."""
    text = {"level": "bpe", "lowercase": False, "max_length": 128}
    text |= {"voc_file": str(folder / "vocab.txt"), "tokenizer_type": "sentencepiece"}
    text |= {"tokenizer_cfg": {"model_file": str(folder / "spm.model")}}
    special = {"unk_token": "<unk>", "pad_token": "<pad>", "bos_token": "<s>", "eos_token": "</s>"}
    special |= {"unk_id": batches.UNK, "pad_id": batches.PAD}
    special |= {"bos_id": batches.BOS, "eos_id": batches.EOS}
    width, layers = batches.MODEL_DIM, {"type": "transformer", "num_layers": batches.NUM_LAYERS}
    layers |= {"num_heads": batches.NUM_HEADS, "hidden_size": width, "ff_size": batches.FFN_DIM}
    layers |= {"embeddings": {"embedding_dim": width, "scale": True, "dropout": 0.0}}
    layers |= {"dropout": batches.DROPOUT, "layer_norm": "post"}
    training = {"optimizer": "adam", "adam_betas": [0.9, 0.98], "learning_rate": batches.RATE}
    training |= {"scheduling": "warmupinversesquareroot", "learning_rate_warmup": batches.WARMUP}
    training |= {"normalization": "tokens", "label_smoothing": 0.1, "epochs": 1, "updates": updates}
    training |= {"batch_size": batches.BUDGET, "batch_type": "token", "logging_freq": 1}
    training |= {"validation_freq": 10 * updates, "overwrite": True, "shuffle": True}
    training |= {"early_stopping_metric": "loss", "print_valid_sents": [0], "keep_best_ckpts": 1}
    train = str(folder / "train")
    return {
        "name": "multi30k",
        "joeynmt_version": "2.3.0",
        "model_dir": str(folder / "joey"),
        "use_cuda": False,
        "fp16": False,
        "random_seed": 42,
        "data": {
            **{"train": train, "dev": train, "dataset_type": "plain"},
            **{"src": {"lang": "en", **text}, "trg": {"lang": "de", **text}},
            "special_symbols": special,
        },
        "testing": {"batch_size": batches.BUDGET, "batch_type": "token", "eval_metrics": ["bleu"]},
        "training": training,
        "model": {
            **{"initializer": "xavier_uniform", "embed_initializer": "xavier_uniform"},
            **{"tied_embeddings": True, "tied_softmax": True, "encoder": layers, "decoder": layers},
        },
    }


def speed(folder: Path, *, updates: int, warmup: int, threads: int) -> Mapping[str, Any]:
    """Target tokens a second after the warm-up, as a token count and seconds."""
    pieces = spm.SentencePieceProcessor(model_file=str(folder / "spm.model"))
    names = [pieces.id_to_piece(number) for number in range(len(pieces))]
    (folder / "vocab.txt").write_text("".join(f"{name}\n" for name in names), "utf-8")
    file = folder / "joey.yaml"  # JSON is YAML
    file.write_text(json.dumps(settings(folder, updates)), "utf-8")
    done = subprocess.run(
        [str(PYTHON), "-m", "joeynmt", "train", str(file), "--skip-test"],
        env=thread_environment(threads),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    found = [(float(loss), int(rate)) for loss, rate in _UPDATE.findall(done.stdout)][warmup:]
    if done.returncode or not found:
        raise RuntimeError(f"joeynmt failed:\n{done.stdout[-3000:]}")
    # Its batches are of about as many tokens each, so the mean rate is the harmonic one.
    rate = statistics.harmonic_mean([rate for _, rate in found])
    loss = statistics.fmean(loss for loss, _ in found)
    return {"updates": len(found), "tokens": rate, "seconds": 1.0, "loss": round(loss, 4)}
