"""Programs of torch.export, which torch runs by itself."""

import io
from pathlib import Path

import torch

from regard.export.folder import write_folder
from regard.export.form import ExportForm
from regard.export.graphs import head_graph, refuse_head
from regard.inference import Predictor
from regard.runs import Run


class TorchProgram(ExportForm):
    """A folder with a program of torch.export: ids in, logits out, whatever the sizes."""

    purpose = "a folder with a program of torch.export (.pt2), which needs torch alone"
    usage = (
        "    import torch\n"
        '    model = torch.export.load("model.pt2").module()\n'
        "    outputs = model(*inputs)\n\n"
        "Inputs and outputs stand below, in their order; the folder `tokenizer` says which ids "
        "and labels there are."
    )

    def refuse(self, predictor: Predictor) -> str | None:
        """What does not answer in one pass over rows of ids, or reads them one by one."""
        return refuse_head(predictor)

    def write(self, run: Run, predictor: Predictor, out: Path, *, readme: str) -> None:
        """Write the folder."""
        graph = head_graph(predictor)
        content = io.BytesIO()
        torch.export.save(graph.traced(), content)
        files = {f"{graph.name}.pt2": content.getvalue()}
        write_folder(predictor, out, files, graphs=[graph], readme=readme)
