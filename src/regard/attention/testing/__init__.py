"""Checks of attention: scores and masks of one's own, and whatever code attends."""

from typing import TYPE_CHECKING

from regard.lazy import names as _names

if TYPE_CHECKING:
    from regard.attention.testing.auditor import audit as audit
    from regard.attention.testing.extensions import check as check
    from regard.attention.testing.report import Audit as Audit
    from regard.attention.testing.report import CheckError as CheckError
    from regard.attention.testing.report import Fault as Fault

__getattr__ = _names(__name__, __file__)
