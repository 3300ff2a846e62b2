"""Programs of torch.export, which torch runs by itself."""

import io
from pathlib import Path

import torch

from regard.export.form import ExportForm
from regard.export.graphs import head_graph, refuse_head, write_folder
from regard.export.programs import program
from regard.inference import Predictor
from regard.progress import progress
from regard.runs import Run

_CALL = """
import torch

model = torch.export.load("model.pt2").module()
# Of your own numbers, in the order that stands below.
print(model({given}))
"""


class TorchProgram(ExportForm):
    """A folder with a program of torch.export: ids in, logits out, whatever the sizes."""

    purpose = "a folder with a program of torch.export (.pt2), which needs torch alone"

    def usage(self, predictor: Predictor, name: str) -> str:
        given = ", ".join(
            f"torch.ones({tuple(axes.example().shape)}, dtype={axes.dtype})"
            for axes in head_graph(predictor).inputs.values()
        )
        return program(_CALL.format(given=given), needs="torch")

    def refuse(self, predictor: Predictor) -> str | None:
        return refuse_head(predictor)

    def write(self, run: Run, predictor: Predictor, out: Path, *, readme: str) -> None:
        graph = head_graph(predictor)
        content = io.BytesIO()
        with progress(f"writing {graph.name}.pt2"):
            torch.export.save(graph.traced(), content)
        files = {f"{graph.name}.pt2": content.getvalue()}
        write_folder(predictor, out, files, graphs=[graph], readme=readme)
