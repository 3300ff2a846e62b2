"""Settings of the architectures, without torch, so that recipes are checked in no time."""

from dataclasses import dataclass

from regard.fields import check_fields


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelConfig:
    """Settings whose types, choices and ranges are checked when they are made."""

    def __post_init__(self) -> None:
        check_fields(self)
