"""ONNX graphs, which onnxruntime and many others run."""

import logging
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.errors import SettingError
from regard.export.form import PROGRAM, ExportForm, reading, run_program, search_differences, sides
from regard.export.graphs import Graph, head_graph, refuse_head, write_folder
from regard.export.step_graphs import refuse_steps, step_graphs
from regard.inference import Predictor
from regard.layers import RecurrentEncoder
from regard.layers.inputs import real_positions
from regard.models import Seq2Seq
from regard.progress import progress
from regard.runs import Run
from regard.tasks import SequenceTask
from regard.tasks.running_text.language_modelling import LanguageModelling
from regard.text import EOS_ID, PAD_ID

_NEEDS = "numpy onnxruntime sentencepiece"
_SEARCH = '''
import numpy as np
from onnxruntime import InferenceSession


def penalty(length):
    return ((5 + length) / 6) ** PENALTY


def search(step, state, tokens, limit, least):
    """Tokens of the best answer, without their end; a beam of 1 is greedy."""
    totals, begun, answers = np.zeros(1), [[]], []
    for length in range(1, limit + 1):
        log_probs, state = step(tokens, state)
        # Padding, unknown and begin are never written, nor an end too early.
        hidden = [token for token in (0, 1, 2) if token != END] + [END] * (length <= least)
        log_probs[:, hidden] = -np.inf
        size = log_probs.shape[1]
        every = (totals[:, None] + log_probs).ravel()
        order = np.argsort(-every, kind="stable")[: 2 * BEAM]
        order = order[every[order] > -np.inf]
        ended = [index for index in order[:BEAM] if index % size == END]
        answers += [(every[index] / penalty(length), begun[index // size]) for index in ended]
        going = order[order % size != END][:BEAM]
        if not len(going):
            break
        rows, last = going // size, going % size
        totals, tokens = every[going], last[:, None]
        begun = [begun[row] + [token] for row, token in zip(rows, last.tolist())]
        state = {name: value[rows] for name, value in state.items()}
        best = max((score for score, _ in answers), default=-np.inf)
        if len(answers) >= BEAM or best >= totals.max() / penalty(limit):
            break
    return max(answers, key=lambda one: one[0])[1] if answers else begun[0]


decoder = InferenceSession("decoder_step.onnx")
names = [one.name for one in decoder.get_inputs()]
pasts = [name for name in names if name.startswith("past")]


def run(inputs, state):
    """Log-probabilities of the next token, and the state after it."""
    given = state | inputs
    log_probs, *past = decoder.run(None, {name: given[name] for name in names})
    return log_probs, state | dict(zip(pasts, past))


def without_past():  # its axis is 0 long
    shapes = {one.name: [1, *one.shape[1:]] for one in decoder.get_inputs()}
    return {
        name: np.zeros([0 if isinstance(axis, str) else axis for axis in shapes[name]], "f")
        for name in pasts
    }

'''
_WRITE = """
(encode, _), (_, decode) = reader(SOURCE), reader(TARGET)
encoder = InferenceSession("encoder.onnx")
outputs = [one.name for one in encoder.get_outputs()]


def step(tokens, state):
    return run({"token": tokens[:, -1]}, state)


for line in sys.stdin:
    ids = encode(line)
    if not ids:  # nothing to read, nothing to write
        print()
        continue
    ids = [*ids, *AFTER]
    read = {"source": np.array([ids]), "source_lengths": np.array([len(ids)])}
    state = without_past() | read | dict(zip(outputs, encoder.run(None, read)))
    limit = min(max(int(len(ids) * RATIO) + 10, LEAST + 1), LONGEST)
    written = search(step, state, np.array([[2]]), limit, LEAST)
    print(decode([token for token in written if token > 3]))
"""
_GO_ON = """
encode, decode = reader("text")


def step(tokens, state):
    return run({"ids": tokens}, state)


for line in sys.stdin:
    lines, left = [encode(line)], MOST
    read = [3, *lines[0]]
    while left:
        if len(read) >= CONTEXT:  # a full window goes on from its second half
            read = read[-(CONTEXT // 2) :]
        room = min(left, CONTEXT - len(read))
        least = min(LEAST, room) if END == 3 else room
        state = without_past() | {"padding": np.array([0])}
        written = search(step, state, np.array([read]), max(room, least + 1), least)[:room]
        for number in written:
            lines.append([]) if number == 3 else lines[-1].append(number)
        read, left = read + written, left - room if len(written) == room else 0
    print("\\n".join(map(decode, lines)))
"""
_CALL = """
import numpy as np
from onnxruntime import InferenceSession

session = InferenceSession("model.onnx")
inputs = {{  # of your own numbers: README.md says what they are
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
        if not predictor.writes:
            return run_program(needs=_NEEDS, reads=False)
        return run_program(needs=_NEEDS, differences=search_differences(predictor))

    def refuse(self, predictor: Predictor) -> str | None:
        size = sum(p.numel() * p.element_size() for p in predictor.model.parameters())
        if size > _MOST_BYTES:
            return f"its weights of {size:,} bytes are more than one .onnx file can be"
        if predictor.writes:
            return refuse_steps(predictor)
        return refuse_head(predictor, may_recur=True)

    def write(self, run: Run, predictor: Predictor, out: Path, *, readme: str) -> None:
        graphs = step_graphs(predictor) if predictor.writes else [head_graph(predictor)]
        files = {f"{graph.name}.onnx": serialised(graph) for graph in graphs}
        files[PROGRAM] = _program(predictor).encode()
        write_folder(predictor, out, files, graphs=graphs, readme=readme)


def _program(predictor: Predictor) -> str:
    """The program that runs the graphs of a run, and searches as it does."""
    task = predictor.task
    if not predictor.writes:
        return _CALL.format(inputs=_arrays(head_graph(predictor)))
    decoding, model = predictor.decoding, predictor.model
    constants: dict[str, object] = {
        "BEAM": decoding.beam_size if decoding.method == "beam" else 1,
        "PENALTY": decoding.length_penalty,
        "LEAST": decoding.min_length,
        "END": EOS_ID,
    }
    if isinstance(task, LanguageModelling):
        end = EOS_ID if decoding.one_line else PAD_ID
        constants |= {"END": end, "MOST": decoding.max_tokens, "CONTEXT": task.data.context}
        return reading(task.tokenizer) + _assigned(constants) + _SEARCH + _GO_ON
    assert isinstance(task, SequenceTask)
    assert isinstance(model, Seq2Seq)
    source, target = sides(task.tokenizer)
    after = [EOS_ID] if getattr(task.data, "source_end", True) else []
    longest = sys.maxsize if model.max_length is None else model.max_length - 1
    constants |= {"RATIO": decoding.max_ratio, "LONGEST": longest}
    constants |= {"SOURCE": source, "TARGET": target, "AFTER": after}
    return reading(task.tokenizer.source) + _assigned(constants) + _SEARCH + _WRITE


def _assigned(constants: Mapping[str, object]) -> str:
    return "\n\n" + "\n".join(f"{name} = {value!r}" for name, value in constants.items()) + "\n"


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
# Operators of ONNX for recurrences of torch, and the order of their gates.
_OPERATORS = {"RNN_TANH": ("RNN", (0,)), "GRU": ("GRU", (1, 0, 2)), "LSTM": ("LSTM", (0, 3, 1, 2))}


def with_operators(model: nn.Module) -> nn.Module:
    """A copy of a model whose recurrent encoders are operators of ONNX, which torch cannot run."""
    copied = deepcopy(model)
    for name, module in list(copied.named_modules()):
        if isinstance(module, RecurrentEncoder):
            copied.set_submodule(name, _OnnxRecurrence(module))
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
            return torch.stack([torch.cat([chunks[gate] for gate in order]) for chunks in gates])

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
        real = real_positions(lengths, S)
        out = out.masked_fill(~real[..., None], 0)
        ahead = out[torch.arange(B, device=inputs.device), lengths - 1, : self.hidden_dim]
        return out, torch.cat([ahead, out[:, 0, self.hidden_dim :]], dim=-1)
