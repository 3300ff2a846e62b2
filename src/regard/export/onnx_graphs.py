"""ONNX graphs, which onnxruntime and many others run."""

import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.errors import SettingError
from regard.export.form import ExportForm, program, reading, sides
from regard.export.graphs import Graph, head_graph, refuse_head, write_folder
from regard.export.step_graphs import refuse_steps, step_graphs
from regard.inference import Predictor
from regard.layers import RecurrentEncoder
from regard.progress import progress
from regard.runs import Run
from regard.tasks import SequenceTask
from regard.tasks.running_text.language_modelling import LanguageModelling
from regard.text import EOS_ID, PAD_ID

_NEEDS = "numpy onnxruntime sentencepiece"
_BEGIN = """
import numpy as np
from onnxruntime import InferenceSession


def without_past(inputs):  # its axis is 0 long
    sizes = {{one.name: one.shape for one in inputs if one.name.startswith("past")}}
    sizes = {{name: [1, *size[1:]] for name, size in sizes.items()}}
    return {{
        name: np.zeros([0 if isinstance(axis, str) else axis for axis in size], "f")
        for name, size in sizes.items()
    }}

"""
_WRITE = f"""
{_BEGIN}
(encode, _), (_, decode) = reader("{{source}}"), reader("{{target}}")
encoder, decoder = (InferenceSession(f"{{{{name}}}}.onnx") for name in ("encoder", "decoder_step"))
outputs, inputs = [one.name for one in encoder.get_outputs()], decoder.get_inputs()
names = [one.name for one in inputs]
for line in sys.stdin:
    ids = [*encode(line){{end}}]
    read = {{{{"source": np.array([ids]), "source_lengths": np.array([len(ids)])}}}}
    given = without_past(inputs) | read | dict(zip(outputs, encoder.run(None, read)))
    tokens = [2]  # begins, and 3 ends
    while tokens[-1] != 3 and len(tokens) <= {{ratio}} * len(ids) + 10:
        given["token"] = np.array(tokens[-1:])
        log_probs, *past = decoder.run(None, {{{{name: given[name] for name in names}}}})
        log_probs[:, :3] = -np.inf  # padding, unknown and begin are never written
        tokens.append(int(log_probs.argmax()))
        given |= dict(zip([name for name in names if name.startswith("past")], past))
    print(decode([token for token in tokens if token > 3]))
"""
_GO_ON = f"""
{_BEGIN}
encode, decode = reader("text")
decoder = InferenceSession("decoder_step.onnx")
inputs = decoder.get_inputs()
for line in sys.stdin:
    lines, past = [encode(line)], without_past(inputs)
    ids, number = [3, *lines[0]], None
    for _ in range({{most}}):
        given = {{{{"ids": np.array([ids]), "padding": np.array([0])}}}} | past
        log_probs, *present = decoder.run(None, given)
        log_probs[:, :3] = -np.inf
        past, number = dict(zip(past, present)), int(log_probs.argmax())
        if number == {{end}}:
            break
        lines.append([]) if number == 3 else lines[-1].append(number)
        ids = [number]
    print("\\n".join(map(decode, lines)))
"""
_CALL = """
import numpy as np
from onnxruntime import InferenceSession

session = InferenceSession("model.onnx")
inputs = {{  # of your own numbers: what they are stands below
{inputs}
}}
for output, values in zip(session.get_outputs(), session.run(None, inputs)):
    print(output.name, values.shape, values)
"""
# A file of protocol buffers cannot be larger; something has to be left for the graph.
_MOST_BYTES = 2**31 - 2**26
_PACKAGES = ("onnx", "onnxscript")


class OnnxGraphs(ExportForm):
    """A folder with an ONNX graph, or with two of a translator: the source, and a step."""

    purpose = "a folder with ONNX graphs, for onnxruntime and others"

    def usage(self, predictor: Predictor, name: str) -> str:
        task, decoding = predictor.task, predictor.decoding if predictor.writes else None
        if decoding is None:
            return program(_CALL.format(inputs=_arrays(head_graph(predictor))), needs=_NEEDS)
        if isinstance(task, LanguageModelling):
            code = reading(task.tokenizer) + _GO_ON.format(
                most=min(decoding.max_tokens, task.data.context // 2),
                end=EOS_ID if decoding.one_line else PAD_ID,
            )
            return program(code, needs=_NEEDS)
        assert isinstance(task, SequenceTask)
        source, target = sides(task.tokenizer)
        end = ", 3" * getattr(task.data, "source_end", True)
        code = reading(task.tokenizer.source) + _WRITE.format(
            source=source, target=target, end=end, ratio=decoding.max_ratio
        )
        return program(code, needs=_NEEDS)

    def refuse(self, predictor: Predictor) -> str | None:
        size = sum(each.numel() * each.element_size() for each in predictor.model.parameters())
        if size > _MOST_BYTES:
            return f"its weights of {size:,} bytes are more than one .onnx file can be"
        if predictor.writes:
            return refuse_steps(predictor)
        return refuse_head(predictor, may_recur=True)

    def write(self, run: Run, predictor: Predictor, out: Path, *, readme: str) -> None:
        graphs = step_graphs(predictor) if predictor.writes else [head_graph(predictor)]
        files = {f"{graph.name}.onnx": serialised(graph) for graph in graphs}
        write_folder(predictor, out, files, graphs=graphs, readme=readme)


def _arrays(graph: Graph) -> str:
    """Inputs of a graph, of ones, as a program writes them."""
    kinds = {torch.int64: "int64", torch.float32: "float32"}
    return "\n".join(
        f'    "{name}": np.ones({tuple(axes.example().shape)}, "{kinds[axes.dtype]}"),'
        for name, axes in graph.inputs.items()
    )


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence the exporter's messages about itself."""
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
    """The ONNX file of a graph; a missing package is a SettingError."""
    for package in _PACKAGES:
        if find_spec(package) is None:
            raise SettingError(
                f"form must be one whose packages are there; got 'onnx' without {package}. "
                "Install it: pip install 'regard[export]'."
            )
    names = tuple(axes.open for axes in graph.inputs.values())
    with _quiet(), progress(f"writing {graph.name}.onnx"):
        program = replace(graph, model=with_operators(graph.model)).traced()
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


_Attribute = (
    int | float | str | bool | Sequence[int] | Sequence[float] | Sequence[str] | Sequence[bool]
)
# What ONNX calls a recurrence of torch, and the order it has the gates in.
_OPERATORS = {
    "RNN_TANH": ("RNN", (0,)),
    "GRU": ("GRU", (1, 0, 2)),
    "LSTM": ("LSTM", (0, 3, 1, 2)),
}


def with_operators(model: nn.Module) -> nn.Module:
    """A copy of a model whose recurrent encoders are operators of ONNX, which torch cannot run."""
    copied = deepcopy(model)
    for name, each in list(copied.named_modules()):
        if isinstance(each, RecurrentEncoder):
            copied.set_submodule(name, _OnnxRecurrence(each))
    return copied


class _OnnxRecurrence(nn.Module):
    """A ``RecurrentEncoder`` in ``RNN``, ``GRU`` or ``LSTM``: https://onnx.ai/onnx/operators."""

    def __init__(self, encoder: RecurrentEncoder) -> None:
        super().__init__()
        self.hidden_dim, self.num_layers = encoder.hidden_dim, encoder.recurrence.num_layers
        self.operator, order = _OPERATORS[encoder.recurrence.mode]

        def both(kind: str, layer: int) -> Tensor:
            weights = [
                encoder.recurrence.get_parameter(f"{kind}_l{layer}{end}").detach()
                for end in ("", "_reverse")
            ]
            gates = [weight.chunk(len(order)) for weight in weights]
            return torch.stack([torch.cat([each[gate] for gate in order]) for each in gates])

        for layer in range(self.num_layers):
            biases = [both(kind, layer) for kind in ("bias_ih", "bias_hh")]
            self.register_buffer(f"inputs{layer}", both("weight_ih", layer))
            self.register_buffer(f"states{layer}", both("weight_hh", layer))
            self.register_buffer(f"biases{layer}", torch.cat(biases, dim=1))

    def forward(
        self, inputs: Float[Tensor, "B S X"], lengths: Int[Tensor, " B"]
    ) -> tuple[Float[Tensor, "B S Y"], Float[Tensor, "B Y"]]:
        """All outputs (zero on padding), and the two directions' last states side by side."""
        B, S, _ = inputs.shape
        attributes: dict[str, _Attribute] = {
            "hidden_size": self.hidden_dim,
            "direction": "bidirectional",
        }
        if self.operator == "GRU":
            attributes["linear_before_reset"] = 1
        out = inputs
        for layer in range(self.num_layers):
            weights = [self.get_buffer(f"{name}{layer}") for name in ("inputs", "states", "biases")]
            read = torch.onnx.ops.symbolic(
                self.operator,
                [out.transpose(0, 1), *weights, lengths.int()],
                attributes,
                dtype=inputs.dtype,
                shape=(S, 2, B, self.hidden_dim),
            )
            out = read.permute(2, 0, 1, 3).flatten(2)
        real = torch.arange(S, device=inputs.device) < lengths[:, None]
        out = out.masked_fill(~real[..., None], 0)
        ahead = out[torch.arange(B, device=inputs.device), lengths - 1, : self.hidden_dim]
        return out, torch.cat([ahead, out[:, 0, self.hidden_dim :]], dim=-1)
