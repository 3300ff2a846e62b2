"""``regard shortlist``."""

from pathlib import Path

from regard.cli.output import note, say


def shortlist(run: Path, /, *, per_piece: int = 100, frequent: int = 100) -> None:
    """Learn which pieces an answer may be made of, so that fewer are looked through at each step.

    Example: `regard shortlist regard-demo`, then `regard predict regard-demo FILE --shortlist`

    From the run's own training pairs: the likeliest target pieces of each source piece, by IBM
    model 1, and the most frequent ones. It is kept in the run folder, and in bundles made from then
    on; `predict`, `evaluate` and `serve` use it where they are told so. Prints how long lists are,
    and how much of right answers is on them.

    Args:
        run: The run folder of a translator.
        per_piece: Target pieces of each source piece.
        frequent: How many of the most frequent target pieces stand on every list.
    """
    from regard.training.shortlisting import make_shortlist

    report = make_shortlist(run, per_piece=per_piece, frequent=frequent)
    say(str(report))
    note(f"kept in {run}; use it: regard predict {run} FILE --shortlist")
