"""The former name of :mod:`regard.runtime`; has the names of that package."""

from importlib import import_module


def __getattr__(name: str) -> object:
    return getattr(import_module("regard.runtime"), name)
