"""The report of an audit: faults with their numbers, their lines and corrections."""

import textwrap
from dataclasses import asdict, dataclass, field
from typing import Any

from regard.errors import RegardError

# Each fault, and the claim that was tested.
LOOKED_FOR = {
    "rows": "the weights of a query sum to one",
    "future": "no later token changes an earlier output",
    "batch": "no row of the batch changes another one",
    "padding": "padding changes nothing and receives no weight",
    "polarity": "masks hide what they should hide",
    "empty": "a query with nothing to see gets no answer made up",
    "scale": "scores are divided by the root of the width of a head",
    "overflow": "half precision and large inputs stay finite",
    "dropout": "nothing is random in evaluation",
    "positions": "the order of tokens matters where it should, and the row of the batch does not",
    "heads": "every head sees its part of every token, at the token's own position",
    "weights": "the weights that are returned are those that are used",
    "gradients": "a gradient reaches every parameter",
    "state": "nothing is kept between calls, and inputs stay as they are",
    "memory": "no memory of N² is taken without need",
}


class CheckError(RegardError, AssertionError):
    """A score, mask or module that breaks a rule, which the message names."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A thing that is wrong with a module, as an experiment has shown it.

    Attributes:
        name: One of ``rows future batch padding polarity empty scale overflow dropout positions
            heads weights gradients state memory``.
        number: The size of it: how far an output moved that should have stayed, a sum of weights,
            a factor, a count. ``text`` says which.
        text: One sentence.
        lines: The lines of code that show it, as ``file:line: code``; none where none is known.
        cure: A line of code that is right.
    """

    name: str
    number: float
    text: str
    lines: tuple[str, ...] = ()
    cure: str = ""


@dataclass(frozen=True, slots=True)
class Audit:
    """The report of an audit: print it, or ``check`` it in a test.

    Attributes:
        subject: The module and the shapes of its inputs.
        faults: The faults, in the order of the experiments.
        notes: Further observations, and experiments that could not be done.
        passed: Names of faults that were looked for and are not there.

    Example:
        >>> print(Audit("attend(2×5×8)", (Fault("rows", 0.4, "A row of weights sums to 0.4."),)))
        attend(2×5×8): 1 fault
        <BLANKLINE>
        rows       A row of weights sums to 0.4.
    """

    subject: str
    faults: tuple[Fault, ...] = ()
    notes: tuple[str, ...] = ()
    passed: tuple[str, ...] = field(default=())

    def check(self) -> None:
        """Raise CheckError if there are faults; the message has all of them."""
        if self.faults:
            named = " ".join(f"{fault.name}: {fault.text}" for fault in self.faults)
            raise CheckError(f"{self.subject} must have no faults; got {len(self.faults)}. {named}")

    def as_data(self) -> dict[str, Any]:
        """The report as JSON takes it."""
        return asdict(self)

    def __str__(self) -> str:
        return self.draw()

    def draw(self, width: int = 88) -> str:
        """The report in lines of at most so many columns; lines of code are not broken."""
        count = len(self.faults)
        blocks = [
            f"{self.subject}: {f'{count} fault' + 's' * (count > 1) if count else 'no fault'}"
        ]
        blocks += [_draw_fault(fault, width) for fault in self.faults]
        if self.passed:
            blocks.append(_wrapped("passed", ", ".join(self.passed), width))
        if self.notes:
            blocks.append("\n".join(_wrapped("note", note, width) for note in self.notes))
        return "\n\n".join(blocks)


_LABEL = 11


def _wrapped(label: str, text: str, width: int) -> str:
    return textwrap.fill(
        text,
        max(width, _LABEL + 20),
        initial_indent=label.ljust(_LABEL),
        subsequent_indent=" " * _LABEL,
        break_on_hyphens=False,
        break_long_words=False,
    )


def _draw_fault(fault: Fault, width: int) -> str:
    lines = [_wrapped(fault.name, fault.text, width)]
    lines += [f"{'':{_LABEL}}{line}" for line in fault.lines]
    lines += [f"{'  right:':{_LABEL}}{fault.cure}"] if fault.cure else []
    return "\n".join(lines)
