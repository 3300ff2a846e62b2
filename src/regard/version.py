"""Which version of the package this is."""

__version__ = "0.1.0"
