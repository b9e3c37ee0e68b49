"""The immutable mapping, in lock-step with a dict."""

from __future__ import annotations

import pickle
import subprocess
import sys
import timeit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, TypeAdapter, ValidationError

from swarmbus.frozen import FrozenDict

CHANGES = st.lists(st.tuples(st.sampled_from("abcdef"), st.none() | st.integers()), max_size=20)


@given(st.dictionaries(st.sampled_from("abcdef"), st.integers()), CHANGES)
def test_changes_make_new_maps_that_agree_with_a_dict(
    start: dict[str, int], changes: list[tuple[str, int | None]]
) -> None:
    frozen, plain = FrozenDict(start), dict(start)
    for key, value in changes:
        before, was = frozen, list(plain.items())
        if value is not None:
            frozen, plain = frozen.set(key, value), {**plain, key: value}
        elif key in plain:
            frozen = frozen.remove(key)
            del plain[key]
        assert list(before.items()) == was
        assert list(frozen.items()) == list(plain.items())
        assert (len(frozen), dict(frozen), list(frozen)) == (len(plain), plain, list(plain))
        assert all(frozen[key] == value and key in frozen for key, value in plain.items())
    assert frozen == plain
    assert hash(frozen) == hash(FrozenDict(plain))


def test_a_missing_key_is_a_key_error() -> None:
    frozen = FrozenDict(a=1)
    for act in (lambda: frozen["b"], lambda: frozen.remove("b"), lambda: frozen.set("c", 1)["b"]):
        with pytest.raises(KeyError):
            act()


def test_it_does_not_follow_the_dict_it_was_made_of() -> None:
    plain = {"a": 1}
    frozen = FrozenDict(plain)
    plain["b"] = 2
    assert frozen == {"a": 1}


def test_it_can_not_be_changed_in_place() -> None:
    frozen = FrozenDict(a=1)
    with pytest.raises(TypeError):
        frozen["b"] = 2  # type: ignore[index]
    with pytest.raises(TypeError):
        del frozen["a"]  # type: ignore[attr-defined]


def test_it_differs_from_what_is_no_mapping() -> None:
    assert FrozenDict() != ()
    assert FrozenDict(a=1) != FrozenDict(a=2)
    assert repr(FrozenDict(a=1)) == "FrozenDict({'a': 1})"


def test_it_can_be_pickled_after_a_change() -> None:
    frozen = FrozenDict(a=1).set("b", 2)
    assert pickle.loads(pickle.dumps(frozen)) == frozen


def test_the_order_is_the_same_in_every_process() -> None:
    code = (
        "from swarmbus.frozen import FrozenDict\n"
        "m = FrozenDict()\n"
        "for word in 'one two three four five six seven'.split(): m = m.set(word, 1)\n"
        "print(list(m.remove('three').set('one', 2)))"
    )
    orders = {
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env).stdout
        for env in ({"PYTHONHASHSEED": "1"}, {"PYTHONHASHSEED": "2"})
    }
    assert orders == {"['one', 'two', 'four', 'five', 'six', 'seven']\n"}


def test_pydantic_reads_and_writes_it() -> None:
    class Held(BaseModel, frozen=True):
        counts: FrozenDict[str, int]

    held = Held.model_validate({"counts": {"a": "1"}})
    assert held.counts == FrozenDict(a=1)
    assert Held(counts=held.counts.set("b", 2)).model_dump() == {"counts": {"a": 1, "b": 2}}
    assert Held.model_validate_json(held.model_dump_json()) == held
    assert Held.model_json_schema()["properties"]["counts"]["additionalProperties"] == {"type": "integer"}
    with pytest.raises(ValidationError, match="valid integer"):
        Held.model_validate({"counts": {"a": "x"}})


def test_without_parameters_it_holds_anything() -> None:
    assert TypeAdapter(FrozenDict).validate_python({"a": object}) == {"a": object}


def test_a_change_of_a_large_map_does_not_copy_it() -> None:
    small, large = (FrozenDict({number: number for number in range(size)}).set(0, 1) for size in (100, 100_000))

    def cost(frozen: FrozenDict[int, int]) -> float:
        return min(timeit.repeat(lambda: frozen.set(1, 2), number=200, repeat=10))

    assert cost(large) < 20 * cost(small)
