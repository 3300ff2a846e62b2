"""The engine inside a whole model that others wrote."""

from typing import TypeVar

from torch import nn

from regard.errors import SettingError
from regard.interop.hugging_face import is_hugging_face, switch
from regard.interop.places import settle
from regard.interop.torch_modules import serve_modules

ModuleT = TypeVar("ModuleT", bound=nn.Module)


def use(model: ModuleT) -> ModuleT:
    """Switch a model's attention to ``attend``: to run, to train, to watch.

    Every ``nn.MultiheadAttention`` in it, also those inside ``nn.TransformerEncoder`` and its kin,
    whose fused shortcut is then left out; and every Hugging Face model in it, whose
    ``attn_implementation`` becomes "regard". Weights, hooks and ``state_dict`` stay what they are.

    What changes: a query with nothing to see gets zeros, where torch gives NaN and transformers the
    mean of all values; NaN in padding is not seen; ``observe`` sees every call. Under
    ``torch.compile``, plain attention that nobody watches is torch's own.

    Args:
        model: Changed in place. ``set_attn_implementation`` undoes it for Hugging Face's.

    Returns:
        ``model`` itself.

    Raises:
        SettingError: There is neither in it, or its attention cannot be reached.

    Example:
        >>> layer = use(nn.TransformerEncoderLayer(8, 2, batch_first=True))
        >>> type(layer.self_attn).__name__
        'EngineAttention'
    """
    is_theirs = is_hugging_face(model)
    if not serve_modules(model) and not is_theirs:
        raise SettingError(
            "model must hold an nn.MultiheadAttention or a Hugging Face model; "
            f"got {type(model).__name__} without any."
        )
    settle(model)
    if is_theirs:
        switch(model)
    return model
