"""ONNX graphs, which onnxruntime and many others run."""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import torch

from regard.errors import SettingError
from regard.export.folder import write_folder
from regard.export.form import ExportForm
from regard.export.graphs import Graph, head_graph, refuse_head, refuse_steps, step_graphs
from regard.inference import Predictor
from regard.runs import Run

# A file of protocol buffers cannot be larger; something has to be left for the graph.
_MOST_BYTES = 2**31 - 2**26
_NEEDED = ("onnx", "onnxscript")


class OnnxGraphs(ExportForm):
    """A folder with an ONNX graph, or with two of a translator: the source, and a step."""

    purpose = "a folder with ONNX graphs, for onnxruntime and others"
    usage = (
        "    import onnxruntime\n"
        '    session = onnxruntime.InferenceSession("NAME.onnx")\n'
        "    outputs = session.run(None, inputs)  # a dict of arrays, by the names below\n\n"
        "What is written token by token begins with a past of no tokens: arrays of zeros whose "
        "axis `past` is 0. After each step, every `present…` is the next step's `past…`. "
        "The folder `tokenizer` says which ids and labels there are."
    )

    def refuse(self, predictor: Predictor) -> str | None:
        """What reads or writes by a recurrence, and weights beyond what a file holds."""
        size = sum(each.numel() * each.element_size() for each in predictor.model.parameters())
        if size > _MOST_BYTES:
            return f"its weights of {size:,} bytes are more than one .onnx file can be"
        return refuse_steps(predictor) if _is_written(predictor) else refuse_head(predictor)

    def write(self, run: Run, predictor: Predictor, out: Path, *, readme: str) -> None:
        """Write the folder."""
        graphs = step_graphs(predictor) if _is_written(predictor) else [head_graph(predictor)]
        files = {f"{graph.name}.onnx": serialised(graph) for graph in graphs}
        write_folder(predictor, out, files, graphs=graphs, readme=readme)


def _is_written(predictor: Predictor) -> bool:
    """Whether answers are written token by token, those of a language model among them."""
    return predictor.writes or predictor.recipe.task == "language_modelling"


@contextmanager
def _quiet() -> Iterator[None]:
    """What the exporter has to say is about itself."""
    log = logging.getLogger("torch.onnx")
    before = log.level
    log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        log.setLevel(before)


def serialised(graph: Graph) -> bytes:
    """The file of a graph.

    Raises:
        SettingError: A package is missing.
    """
    for package in _NEEDED:
        if find_spec(package) is None:
            raise SettingError(
                f"form must be one whose packages are there; got 'onnx' without {package}. "
                "Install it: pip install 'regard[export]'."
            )
    program = graph.traced()
    names = tuple(axes.open for axes in graph.inputs.values())
    with _quiet():
        exported = torch.onnx.export(
            program,
            dynamo=True,
            input_names=list(graph.inputs),
            output_names=list(graph.outputs),
            dynamic_shapes=(names,),
            verbose=False,
        )
    assert exported is not None
    content: bytes = exported.model_proto.SerializeToString()
    return content
