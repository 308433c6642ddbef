"""Entries of sparse tables while they are gathered: a record, a key and a value each."""

from __future__ import annotations

from array import array
from typing import NamedTuple

TableBytes = tuple[bytes, bytes, bytes]


class _Table(NamedTuple):
    record: array[int]
    key: array[int]
    value: array[float]


class Tables:
    """Sparse tables as they grow; every entry is a record, a key and a value."""

    def __init__(self) -> None:
        self.tables: dict[str, _Table] = {}

    def add(self, table: str, record: int, key: int, value: float) -> None:
        """Add one entry."""
        found = self.tables.get(table)
        if found is None:
            found = self.tables[table] = _Table(array("i"), array("i"), array("d"))
        found.record.append(record)
        found.key.append(key)
        found.value.append(value)

    def take(self) -> dict[str, TableBytes]:
        """Hand over the entries gathered so far, and begin anew."""
        packed = {
            name: (table.record.tobytes(), table.key.tobytes(), table.value.tobytes())
            for name, table in self.tables.items()
        }
        self.tables = {}
        return packed
