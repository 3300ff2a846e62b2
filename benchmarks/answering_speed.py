"""Texts a second of a fine-tuned encoder in use, beside transformers and ONNX Runtime.

    python -m benchmarks.answering_speed --work W [--rounds 5] [--threads 1 2] [--dry]

A classifier that begins with ``minilm-en``, fine-tuned on sst2 for an epoch, labels texts of its
development file, many at once and one by one; every side tokenises them. The peers have the same
weights, as ``regard export --to huggingface`` writes them: transformers, in int8 by torch's dynamic
quantisation; and ONNX Runtime with the graph of torch's exporter, in which its own optimiser has
joined attention, norms and GELU, in int8 by its dynamic quantisation, one scale a channel. They
read texts of like length together, as many as is fastest. Each side is measured in a process of its
own, in turn; loading and the first texts are not timed.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
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

NAME = "answering_speed"
OURS, TRANSFORMERS, ONNX = "regard", "transformers", "ONNX Runtime"
PRECISIONS = ("float32", "int8")
# Texts that are timed at once and one by one; those that a peer may read together.
WORKS = {"at once": sized(400, 6), "one by one": sized(60, 2)}
TOGETHER = sized((8, 16, 32), (2,))
_RUN, _FOLDER = "run", "huggingface"
# Of the encoder's first token with its pooler, which a folder of transformers can have.
_SETTINGS = ("head.pooling=first", "head.pooler=true", "training.epochs=1")

Label = Callable[[Sequence[str]], list[int]]  # labels texts, each by its number


def ours(work: Path, precision: str, _: int) -> Label:
    import regard as rg

    predictor: Any = rg.load(work / _RUN, precision=precision)  # type: ignore[arg-type]
    return lambda texts: [int(each.label) for each in predictor.predict(list(texts))]


def _together(read: Callable[[Any], Any], work: Path, most: int) -> Label:
    """Labels of texts that are tokenised, sorted by length and read some at a time."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(str(work / _FOLDER))

    def label(texts: Sequence[str]) -> list[int]:
        ids = tokenizer(list(texts), truncation=True, max_length=256)["input_ids"]
        order = sorted(range(len(ids)), key=lambda index: len(ids[index]))
        found = [0] * len(ids)
        for start in range(0, len(order), most):
            rows = order[start : start + most]
            batch = tokenizer.pad({"input_ids": [ids[row] for row in rows]}, return_tensors="np")
            for row, number in zip(rows, read(batch).argmax(1).tolist(), strict=True):
                found[row] = number
        return found

    return label


def transformers(work: Path, precision: str, most: int) -> Label:
    import torch

    model: Any = _model_of_transformers(work, "sdpa")
    if precision == "int8":
        quantize: Any = torch.ao.quantization.quantize_dynamic
        model = quantize(model, {torch.nn.Linear}, dtype=torch.qint8)

    def read(batch: Any) -> Any:
        with torch.inference_mode():
            tensors = {name: torch.from_numpy(each) for name, each in batch.items()}
            return model(**tensors).logits.numpy()

    return _together(read, work, most)


def onnx_runtime(work: Path, precision: str, most: int) -> Label:
    import onnxruntime
    import torch

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    session = onnxruntime.InferenceSession(
        str(work / f"{precision}.onnx"), options, providers=["CPUExecutionProvider"]
    )

    def read(batch: Any) -> Any:
        types = {"token_type_ids": batch["input_ids"] * 0}
        return session.run(None, {**types, **batch})[0]

    return _together(read, work, most)


SIDES = {OURS: ours, TRANSFORMERS: transformers, ONNX: onnx_runtime}


def _model_of_transformers(work: Path, attention: str) -> Any:
    from transformers import AutoModelForSequenceClassification, logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    return AutoModelForSequenceClassification.from_pretrained(
        str(work / _FOLDER), attn_implementation=attention
    ).eval()


def prepare(work: Path) -> None:
    """The run, its folder for transformers, and graphs of ONNX Runtime, unless they are there."""
    from benchmarks import fine_tuning
    from benchmarks.training import train
    from regard.export import export_run

    if (work / "int8.onnx").exists():
        return
    work.mkdir(parents=True, exist_ok=True)
    fine_tuning.keep_apart(work)
    job = replace(fine_tuning.JOBS["sst2"], settings=_SETTINGS)
    train(fine_tuning.recipe_of(job, work, None), work / _RUN)
    if not (work / _FOLDER).exists():
        export_run(work / _RUN, "huggingface", work / _FOLDER)
    _write_graphs(work)


def _write_graphs(work: Path) -> None:
    import torch
    from onnxruntime.quantization import QuantType, quantize_dynamic
    from onnxruntime.transformers import optimizer

    model = _model_of_transformers(work, "eager")
    names = ["input_ids", "attention_mask", "token_type_ids"]

    class Logits(torch.nn.Module):
        def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
            logits: torch.Tensor = model(**dict(zip(names, inputs, strict=True))).logits
            return logits

    ids = torch.ones(2, 5, dtype=torch.long)
    plain, joined, rounded = (str(work / f"{name}.onnx") for name in ("plain", *PRECISIONS))
    traced = Logits()
    traced.model = model
    torch.onnx.export(  # the exporter whose graphs ONNX Runtime's optimiser knows
        traced.eval(),
        (ids, ids, 0 * ids),
        plain,
        input_names=names,
        output_names=["logits"],
        dynamic_axes={name: {0: "texts", 1: "tokens"} for name in names},
        opset_version=17,
        dynamo=False,
    )
    config = model.config
    sizes = {"num_heads": config.num_attention_heads, "hidden_size": config.hidden_size}
    optimizer.optimize_model(plain, model_type="bert", **sizes).save_model_to_file(joined)
    # 1 is ONNX's float32: the optimiser's own operators have no types for its quantisation.
    extra = {"DefaultTensorType": 1, "MatMulConstBOnly": True}
    quantize_dynamic(
        joined, rounded, weight_type=QuantType.QInt8, per_channel=True, extra_options=extra
    )


def measure_here(side: str, precision: str, work: str, most: str, folder: str) -> dict[str, Any]:
    """Texts a second of one side in this process, and its labels."""
    rows = (corpora() / "sst2" / "dev.tsv").read_text("utf-8").splitlines()
    texts = [row.split("\t")[0] for row in rows[: WORKS[work]]]
    label = SIDES[side](Path(folder), precision, int(most))
    groups = [[text] for text in texts] if work == "one by one" else [texts]
    for group in groups[: TOGETHER[0]]:
        label(group)
    start = time.perf_counter()
    labels = [number for group in groups for number in label(group)]
    return {"speed": len(texts) / (time.perf_counter() - start), "labels": labels}


def measure(work: str, threads: int, rounds: int, folder: Path) -> Iterator[Measured]:
    """All sides with so many threads, each in both precisions."""
    prepare(folder)

    def of(side: str, precision: str, most: int) -> Any:
        said = ("--side", side, precision, work, most, folder)
        return apart(f"benchmarks.{NAME}", *said, threads=threads)

    def fastest(side: str, precision: str) -> int:
        if side == OURS or work == "one by one" or len(TOGETHER) == 1:
            return TOGETHER[0]
        return max(TOGETHER, key=lambda most: of(side, precision, most)["speed"])

    sides = {
        f"{side} {each}": (side, each, fastest(side, each)) for each in PRECISIONS for side in SIDES
    }
    samples = alternate({name: partial(of, *said) for name, said in sides.items()}, rounds)
    labels = {name: taken[0]["labels"] for name, taken in samples.items()}
    right = labels[f"{TRANSFORMERS} {PRECISIONS[0]}"]
    same = {
        name: sum(a == b for a, b in zip(each, right, strict=True)) / len(right)
        for name, each in labels.items()
    }
    assert all(same[f"{side} {PRECISIONS[0]}"] == 1 for side in SIDES), "all have the same weights"
    speeds = {name: [one["speed"] for one in taken] for name, taken in samples.items()}
    found: dict[str, dict[str, Any]] = {precision: {} for precision in PRECISIONS}
    for name, (side, precision, most) in sides.items():
        ratio = paired_ratio(speeds[f"{OURS} {precision}"], speeds[name])
        found[precision][side] = {
            "texts_a_second": Spread.of(speeds[name]).table(),
            "texts_together": most,
            "labels_as_in_float32": same[name],
            "ours_to_it": ratio.table(),
        }
    lines = [figure(work, threads, precision, each) for precision, each in found.items()]
    yield f"{work}, threads: {threads}", found, lines


def figure(work: str, threads: int, precision: str, found: Mapping[str, Any]) -> Figure:
    """The line of one precision."""
    speeds = {side: each["texts_a_second"]["median"] for side, each in found.items()}
    peers = [side for side in found if side != OURS]
    best = max(peers, key=speeds.__getitem__)
    ratio = found[best]["ours_to_it"]
    same = ""
    if precision == "int8":
        shares = (
            f"{side} {100 * each['labels_as_in_float32']:.1f} %" for side, each in found.items()
        )
        same = f"; labels as in float32: {', '.join(shares)}"
    return Figure(
        what=f"sst2 by minilm-en fine-tuned, labels of {WORKS[work]} texts {work}, {precision}, "
        f"threads: {threads}",
        ours=f"{speeds[OURS]:.0f} texts/s",
        beside="; ".join(f"{side}: {speeds[side]:.0f} texts/s" for side in peers),
        note=f"{ratio['median']:.2f} × {best}, ±{ratio['relative']:.0%}{same}",
    )


if __name__ == "__main__":
    measure_speed(
        NAME,
        title="Labels by a fine-tuned encoder, beside transformers and ONNX Runtime",
        about=__doc__,
        rounds=5,
        side=measure_here,
        measure=measure,
        works=list(WORKS),
        packages=("torch", "transformers", "onnxruntime"),
        needs_folder=True,
    )
