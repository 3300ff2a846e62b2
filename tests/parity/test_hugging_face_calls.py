import re
from inspect import iscode
from pathlib import Path

import pytest
import torch
from tests.parity.hugging_face_models import FAMILIES, B, H, N, V, inputs, make
from torch import nn
from torch.testing import assert_close

import regard as rg
from regard.errors import SettingError, ShapeError
from regard.interop.modules import formulas, hugging_face
from regard.interop.modules.hugging_face import attention

pytestmark = [pytest.mark.parity, pytest.mark.slow]

CLOSE = {"atol": 1e-5, "rtol": 1e-5}
# From its line to the next that begins with neither a space nor its closing bracket.
EAGER = re.compile(r"^def \w*eager_attention_forward\b.*?(?=^[^\s)]|\Z)", re.DOTALL | re.MULTILINE)


def floats(visible):
    return torch.zeros(visible.shape).masked_fill(~visible, torch.finfo(torch.float32).min)


@pytest.mark.parametrize("as_floats", [False, True])
@pytest.mark.parametrize("name", ["bert", "gpt2", "llama", "gemma2"])
def test_a_mask_of_ones_own_for_each_query(name, as_floats):
    model, batch = make(name), inputs(name)
    visible = (torch.rand(B, 1, N, N) > 0.4) | torch.eye(N, dtype=torch.bool)
    with torch.no_grad():
        expected = model(**batch | {"attention_mask": floats(visible)})[0]
        mask = floats(visible) if as_floats else visible
        out = rg.use(model)(**batch | {"attention_mask": mask})[0]
    assert_close(out, expected, **CLOSE)


def test_a_mask_that_its_owner_changed_is_read_anew():
    model, batch = rg.use(make("llama")), inputs("llama")
    visible = torch.ones(B, 1, N, N, dtype=torch.bool).tril()
    with torch.no_grad():
        first = model(**batch | {"attention_mask": visible})[0]
        visible[..., 0] = False
        changed = model(**batch | {"attention_mask": visible})[0]
        again = model(**batch | {"attention_mask": visible.clone()})[0]
    assert not torch.allclose(first, changed)
    assert torch.equal(changed, again)


@pytest.mark.parametrize("name", ["llama", "mistral", "qwen3", "llama4"])
def test_texts_packed_into_one_row_do_not_see_each_other(name):
    model, batch = make(name), {"input_ids": torch.randint(3, V, (1, N)), "use_cache": False}
    batch["position_ids"] = torch.tensor([[*range(5), *range(8)]])
    with torch.no_grad():
        expected = model(**batch)[0]
        with rg.watch(model) as watched:
            out = model(**batch)[0]
    assert_close(out, expected, **CLOSE)
    assert watched[0].summary.pooled[..., 5:, :5].eq(0).all()


@pytest.mark.parametrize("name", FAMILIES)
def test_weights_are_returned_on_request(name):
    model, batch = make(name), inputs(name, "right")
    with torch.no_grad():
        expected = model(**batch, output_attentions=True)
        out = rg.use(model)(**batch, output_attentions=True)
        assert not any(model(**batch).get(key) for key in expected if "attentions" in key)
    kinds = [key for key in expected if "attentions" in key]
    assert kinds
    for key in kinds:
        for ours, theirs in zip(out[key], expected[key], strict=True):
            # Of padding, eager's states depend on rows that see nothing and are even.
            is_text = FAMILIES[name].kind == "text"
            chosen = batch["attention_mask"][:, None, :, None] if is_text else 1
            assert_close(ours * chosen, theirs * chosen, **CLOSE)


@pytest.mark.usefixtures("as_users_have_it")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("name", "backend"), [("llama", "eager"), ("bert", "inductor"), ("mistral", "eager")]
)
def test_a_compiled_model_is_one_graph(name, backend):
    model, batch = make(name), inputs(name, "left")
    chosen = batch["attention_mask"].bool()
    options = {} if name == "bert" else {"use_cache": False}
    torch._dynamo.reset()
    with torch.no_grad():
        expected = model(**batch, **options)[0]
        compiled = torch.compile(rg.use(model), backend=backend, fullgraph=True)
        assert_close(compiled(**batch, **options)[0][chosen], expected[chosen], **CLOSE)


@pytest.mark.usefixtures("as_users_have_it")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("is_causal", [False, True])
def test_a_used_encoder_of_torch_is_exported_and_one_graph(is_causal):
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    encoder = rg.use(nn.TransformerEncoder(layer, 2)).eval()
    states, padding = torch.randn(2, 5, 8), torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
    mask = nn.Transformer.generate_square_subsequent_mask(5).isinf()
    options = {"src_key_padding_mask": padding}
    if is_causal:
        options |= {"mask": mask, "is_causal": True}
    torch._dynamo.reset()
    with torch.no_grad():
        want = encoder(states, **options)
        program = torch.export.export(encoder, (states,), options)
        assert_close(program.module()(states, **options), want, **CLOSE)
        compiled = torch.compile(encoder, backend="eager", fullgraph=True)
        assert_close(compiled(states, **options), want, **CLOSE)


def test_the_saved_model_names_no_attention(tmp_path):
    import transformers

    rg.use(make("llama")).save_pretrained(tmp_path)
    assert "regard" not in (tmp_path / "config.json").read_text()
    options = {"attn_implementation": hugging_face.NAME}
    again = transformers.LlamaForCausalLM.from_pretrained(tmp_path, **options)
    assert again.config._attn_implementation == "regard"


def test_every_eager_attention_of_transformers_is_understood():
    """Or refused: the formulas are read off the functions, of which most files have the same."""
    import transformers

    files = {}
    for path in (Path(transformers.__file__).parent / "models").glob("*/modeling_*.py"):
        functions = EAGER.findall(path.read_text("utf-8"))
        files.setdefault("\n".join(functions), path.parent.name)
    assert len(files) > 20
    unknown = {}
    for functions, name in files.items():
        codes = [each for each in compile(functions, name, "exec").co_consts if iscode(each)]
        home = {code.co_name: type("F", (), {"__code__": code}) for code in codes}
        formula = formulas.formula_in(home)
        if formula.unknown or formula.arguments:
            unknown[name] = formula
    assert not unknown


class Module(nn.Module):
    """Stands for an attention module of a model."""

    def __init__(self, **attributes):
        super().__init__()
        for name, value in attributes.items():
            setattr(self, name, value)


def heads():
    return (torch.randn(B, H, 5, 4), torch.randn(B, H, 7, 4), torch.randn(B, H, 7, 3))


@pytest.mark.parametrize(
    ("causal", "argument", "is_causal"),
    [(None, None, False), (None, True, True), (True, None, True), (True, False, False)],
)
def test_no_mask_means_what_the_call_or_the_module_says(causal, argument, is_causal):
    module = elsewhere() if causal is None else elsewhere(is_causal=causal)
    query, key, value = heads()
    out, rows = attention(module.eval(), query, key, value, None, is_causal=argument)
    mask = rg.causal(first=0) if is_causal else None
    assert_close(out, rg.attend(query, key, value, mask=mask).transpose(1, 2))
    assert out.is_contiguous()
    assert rows is None
    one, _ = attention(module, query[:, :, :1], key, value, None, is_causal=argument)
    assert_close(one, rg.attend(query[:, :, :1], key, value).transpose(1, 2))


def test_a_learned_scale_gets_its_gradient():
    query, key, value = heads()
    scale = torch.rand(H, 1, 1, requires_grad=True)
    out, _ = attention(elsewhere(), query, key, value, None, scaling=scale)
    assert_close(out, rg.attend(query * scale, key, value, score=rg.Dot()).transpose(1, 2))
    out.sum().backward()
    assert scale.grad.ne(0).all()


def elsewhere(**attributes):
    module = Module(**attributes)
    module.__class__ = type("Module", (Module,), {"__module__": "nowhere"})
    return module


def odd_eager_attention_forward(module, query, key, value, attention_mask, slopes=None, **options):
    return query.cosh()


class Odd(Module):
    """Its eager attention is defined in this file."""


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"indices": torch.zeros(1)}, "indices must be left out .*; got Tensor from Module"),
        ({"s_aux": torch.zeros(H, 2)}, r"s_aux must be one number per head, \(6,\); got shape"),
    ],
)
def test_options_that_change_the_answer_are_refused_by_name(options, message):
    with pytest.raises(SettingError, match=message):
        attention(elsewhere(), *heads(), None, **options)


def test_formulas_that_are_not_understood_are_refused_by_name():
    with pytest.raises(SettingError, match="got Odd, whose eager attention uses cosh"):
        attention(Odd(), *heads(), None)


def test_arguments_that_an_eager_function_takes_and_we_do_not_are_refused_by_name():
    formula = formulas.formula_in({"odd_eager_attention_forward": odd_eager_attention_forward})
    assert formula.arguments == ("slopes",)
    with pytest.raises(SettingError, match=r"slopes must be left out .*; got float from Odd"):
        formula._replace(unknown=()).check("Odd", {"slopes": 0.5})


@pytest.mark.parametrize(
    ("mask", "error", "message"),
    [
        (torch.ones(B, 1, 5, 7).long(), ShapeError, "attention_mask must be boolean, or floats"),
        (torch.ones(B, 1, 5, 6).bool(), ShapeError, r"attention_mask must have shape \(B, 1, N"),
        (torch.ones(B, 5, 7).bool(), ShapeError, r"attention_mask must have shape \(B, 1, N"),
        ("causal", SettingError, "attention_mask must be a tensor or None; got str"),
        (hugging_face.lazy_mask(B, 4, 7), ShapeError, r"\(N, M\) = \(4, 7\); got \(5, 7\)"),
    ],
)
def test_masks_that_do_not_fit_are_refused(mask, error, message):
    with pytest.raises(error, match=message):
        attention(elsewhere(), *heads(), mask)
