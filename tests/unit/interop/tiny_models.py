"""Tiny random models of transformers."""

import torch

import regard as rg

V = 23
SIZES = {
    "vocab_size": V,
    "hidden_size": 12,
    "num_hidden_layers": 3,
    "num_attention_heads": 3,
    "intermediate_size": 7,
}


def tiny(model, config, **options):
    import transformers

    return getattr(transformers, model)(getattr(transformers, config)(**options)).eval()


def gpt2(**options):
    """A decoder of two layers of three heads."""
    sizes = {"vocab_size": V, "n_embd": 12, "n_layer": 2, "n_head": 3}
    return tiny("GPT2LMHeadModel", "GPT2Config", **sizes, **options)


def llama(**options):
    sizes = SIZES | {"hidden_size": 16, "num_attention_heads": 4, "num_key_value_heads": 2}
    return tiny("LlamaForCausalLM", "LlamaConfig", **sizes | options, eos_token_id=None)


@torch.no_grad()
def watched(model, *inputs, **options):
    """The record of ``watch`` of a pass over inputs in their order, or over a table of them."""
    named = inputs[0] if isinstance(inputs[0], dict) else {}
    with rg.watch(model, **options) as seen:
        model(*(() if named else inputs), **named)
    return seen
