"""The engine inside models that others wrote."""

from regard.interop.models import use
from regard.interop.torch_modules import EngineAttention

__all__ = ["EngineAttention", "use"]
