"""The engine inside models that others wrote."""

from regard.interop.torch_modules import EngineAttention, use

__all__ = ["EngineAttention", "use"]
