"""The tree of errors as it is drawn is the tree of errors as it is."""

from __future__ import annotations

import inspect
import re
from itertools import pairwise

from swarmbus import errors

LINE = re.compile(r"^((?:│   )*(?:[├└]── )?)(\w+)(?: +(.*))?$", re.MULTILINE)
CLASSES = [item for item in vars(errors).values() if inspect.isclass(item) and item.__module__ == errors.__name__]


def drawn() -> list[tuple[int, str, str]]:
    """Return how deep each class is drawn, its name and what is said of it."""
    assert errors.__doc__ is not None
    _, tree = errors.__doc__.split("\n\n")
    lines = tree.strip().splitlines()
    found = [LINE.fullmatch(line) for line in lines]
    return [(len(match[1]) // 4, match[2], match[3] or "") for match in found if match is not None]


def depth(cls: type) -> int:
    return sum(base in CLASSES for base in cls.__mro__) - 1


def test_the_tree_names_every_error_below_its_parent_in_the_order_of_the_module() -> None:
    assert [(deep, name) for deep, name, _ in drawn()] == [(depth(cls), cls.__name__) for cls in CLASSES]
    for before, cls in pairwise(CLASSES):
        assert cls.__bases__[0] in before.__mro__


def test_the_tree_says_what_else_an_error_is_and_which_facts_it_holds() -> None:
    for (_, name, said), cls in zip(drawn(), CLASSES, strict=True):
        other = cls.__bases__[1:]
        assert [base.__name__ for base in other] == re.findall(r"also a (\w+)", said), name
        documented = re.findall(r"^    (\w+): ", inspect.getdoc(cls) or "", re.MULTILINE)
        assert set(re.findall(r"\.(\w+)", said)) == set(documented), name
