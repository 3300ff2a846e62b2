"""Checks that say what is wrong, where, and how to mend it."""

from math import isfinite

from regard.errors import SettingError


def check_finite(name: str, value: int | float) -> None:
    """Raise if ``value`` is infinite, or no number at all."""
    if not isfinite(value):
        raise SettingError(f"{name} must be a finite number; got {value}.")


def check_positive(name: str, value: int | float, *, cure: str = "") -> None:
    """Raise unless ``value`` is above zero."""
    if not value > 0:
        raise SettingError(_sentence(f"{name} must be above 0; got {value}.", cure))


def check_at_least(name: str, value: int | float, least: int | float, *, cure: str = "") -> None:
    """Raise unless ``value >= least``."""
    if not value >= least:
        raise SettingError(_sentence(f"{name} must be at least {least}; got {value}.", cure))


def check_at_most(name: str, value: int | float, most: int | float) -> None:
    """Raise unless ``value <= most``."""
    if not value <= most:
        raise SettingError(f"{name} must be at most {most}; got {value}.")


def check_fraction(name: str, value: int | float, *, cure: str = "") -> None:
    """Raise unless ``0 <= value < 1``, the range of a dropout or smoothing rate."""
    if not 0 <= value < 1:
        raise SettingError(_sentence(f"{name} must be at least 0 and below 1; got {value}.", cure))


def check_divides(name: str, value: int, whole_name: str, whole: int) -> None:
    """Raise unless ``value`` divides ``whole``."""
    check_positive(name, value)
    check_positive(whole_name, whole)
    if whole % value:
        raise SettingError(
            f"{whole_name} must be divisible by {name}; got {whole_name}={whole}, {name}={value}."
        )


def _sentence(message: str, cure: str) -> str:
    return f"{message} {cure}".rstrip()
