from itertools import combinations, product

import pytest


def two_by_two(factors):
    """Few combinations in which any two choices of different factors meet."""
    names, choices = list(factors), list(factors.values())
    missing = {
        ((one, a), (other, b))
        for one, other in combinations(range(len(names)), 2)
        for a, b in product(range(len(choices[one])), range(len(choices[other])))
    }
    rows = []
    while missing:
        # Start from a pair that is missing, then let each other factor meet as many as it can.
        row = dict(min(missing))
        for name in range(len(names)):
            if name not in row:
                gains = [
                    sum(tuple(sorted([(name, choice), each])) in missing for each in row.items())
                    for choice in range(len(choices[name]))
                ]
                row[name] = gains.index(max(gains))
        whole = [row[name] for name in range(len(names))]
        missing -= set(combinations(enumerate(whole), 2))
        rows.append({name: choices[at][whole[at]] for at, name in enumerate(names)})
    return rows


def pairwise(**factors):
    """Parametrise a test by few combinations of its arguments, in place of all."""
    rows = two_by_two({name: list(choices) for name, choices in factors.items()})
    return pytest.mark.parametrize(list(factors), [tuple(row.values()) for row in rows], ids=_name)


def slow_but(quick, choices):
    """The choices of a parameter, all slow but the quick ones."""
    return [
        each if each in quick else pytest.param(each, marks=pytest.mark.slow) for each in choices
    ]


def _name(choice):
    """Of a tuple, the names in it: an address is another in each process."""
    if isinstance(choice, tuple):
        return "-".join(getattr(each, "__name__", str(each)) for each in choice)
    return None
