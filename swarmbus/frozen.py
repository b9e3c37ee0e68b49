"""The mapping that an immutable model may hold: `FrozenDict`.

It owns how such a mapping is kept, changed into a new one, compared, and read and written by pydantic.
"""

from __future__ import annotations

from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from typing import Any, TypeVar, cast, get_args, overload

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema
from rpds import HashTrieMap

K = TypeVar("K")
V = TypeVar("V")


class FrozenDict(Mapping[K, V]):
    """An immutable, hashable mapping in insertion order; `set` and `remove` make new ones cheaply.

    Built from a dict it is a copy of that dict. The first change of a map builds a persistent trie beside it
    (O(n), once), and each later change costs O(log n) and shares all that did not change. A map that came from a
    change sorts its entries once, when it is first iterated. Keys and values must be hashable for the map to be.
    """

    __slots__ = ("_entries", "_hash", "_next", "_trie")

    _entries: dict[K, V] | None
    _trie: HashTrieMap[K, tuple[int, V]] | None
    _next: int
    _hash: int | None

    @overload
    def __init__(self, entries: Mapping[K, V] | Iterable[tuple[K, V]] = ..., /) -> None: ...

    @overload
    def __init__(self: FrozenDict[str, V], /, **named: V) -> None: ...

    def __init__(self, entries: Any = (), /, **named: Any) -> None:
        self._entries = dict(entries, **named)
        self._trie = None
        self._next = len(self._entries)
        self._hash = None

    def __getitem__(self, key: K) -> V:
        if self._entries is not None:
            return self._entries[key]
        assert self._trie is not None
        return self._trie[key][1]

    def __contains__(self, key: object) -> bool:
        return key in cast("Mapping[object, object]", self._trie if self._entries is None else self._entries)

    def __iter__(self) -> Iterator[K]:
        return iter(self._ordered())

    def __len__(self) -> int:
        entries = self._entries
        if entries is None:
            assert self._trie is not None
            return len(self._trie)
        return len(entries)

    def keys(self) -> KeysView[K]:
        """Return the keys, in order."""
        return self._ordered().keys()

    def values(self) -> ValuesView[V]:
        """Return the values, in order."""
        return self._ordered().values()

    def items(self) -> ItemsView[K, V]:
        """Return the keys with their values, in order."""
        return self._ordered().items()

    def __eq__(self, other: object) -> bool:
        if isinstance(other, FrozenDict):
            return self.items() == other.items()
        return self._ordered() == other if isinstance(other, Mapping) else NotImplemented

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(frozenset(self._ordered().items()))
        return self._hash

    def __repr__(self) -> str:
        return f"FrozenDict({self._ordered()!r})"

    def __reduce__(self) -> tuple[type[FrozenDict[K, V]], tuple[dict[K, V]]]:
        return FrozenDict, (dict(self._ordered()),)

    def set(self, key: K, value: V) -> FrozenDict[K, V]:
        """Return a map in which `key` has `value`; a new key comes last, a known one keeps its place."""
        trie = self._changeable()
        known = trie.get(key)
        place = self._next if known is None else known[0]
        return _made(None, trie.insert(key, (place, value)), self._next + (known is None))

    def remove(self, key: K) -> FrozenDict[K, V]:
        """Return a map without `key`; raise `KeyError` if there is none."""
        return _made(None, self._changeable().remove(key), self._next)

    def _ordered(self) -> dict[K, V]:
        if self._entries is None:
            assert self._trie is not None
            placed = sorted(self._trie.items(), key=lambda entry: entry[1][0])
            self._entries = {key: value for key, (_, value) in placed}
        return self._entries

    def _changeable(self) -> HashTrieMap[K, tuple[int, V]]:
        if self._trie is None:
            placed = {key: (place, value) for place, (key, value) in enumerate(self._ordered().items())}
            self._trie = HashTrieMap.convert(placed)
        return self._trie

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        key, value = get_args(source) or (Any, Any)
        entries = core_schema.dict_schema(handler.generate_schema(key), handler.generate_schema(value))
        return core_schema.no_info_after_validator_function(
            adopt,
            core_schema.no_info_before_validator_function(_plain, entries),
            serialization=core_schema.plain_serializer_function_ser_schema(_unfrozen, return_schema=entries),
        )


def adopt(entries: dict[K, V]) -> FrozenDict[K, V]:
    """Make a map of a dict that nobody else holds, without copying it."""
    return _made(entries, None, len(entries))


def to_plain(value: Any) -> Any:
    """Give pydantic the dict behind a map that stands where no type announced it (a serialisation fallback)."""
    if isinstance(value, FrozenDict):
        return _unfrozen(value)
    raise TypeError(f"JSON can't carry a {type(value).__name__}")


def _unfrozen(value: FrozenDict[Any, Any]) -> dict[Any, Any]:
    """Return the entries as a dict; a key with a lone surrogate, which pydantic would replace, is an error."""
    entries = value._ordered()  # noqa: SLF001  # the module's own class; who is given the dict only reads it
    for key in entries:
        if type(key) is str and not key.isascii():
            key.encode()
    return entries


def _made(entries: dict[K, V] | None, trie: HashTrieMap[K, tuple[int, V]] | None, next_place: int) -> FrozenDict[K, V]:
    made: FrozenDict[K, V] = FrozenDict.__new__(FrozenDict)
    made._entries, made._trie, made._next, made._hash = entries, trie, next_place, None  # noqa: SLF001 - a constructor
    return made


def _plain(value: Any) -> Any:
    return dict(value.items()) if isinstance(value, FrozenDict) else value
