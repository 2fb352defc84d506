"""Schemas compiled once per digest, and the verdict on a value.

Never compiles on the path of a call what was compiled before, and never checks a schema that the
lint refuses.
"""

from collections import OrderedDict
from threading import Lock
from typing import Final

from thoughtgate.core.json import JsonValue
from thoughtgate.core.problems import Problem
from thoughtgate.schema.dialects import rust
from thoughtgate.schema.explain import Report, explain, too_big
from thoughtgate.schema.lint import inspect
from thoughtgate.schema.weight import guard, weigh

# a schema that looks at one place at most this often needs no count of the value's places
_CALM = 32
# evaluations of one validation: about two seconds of the Rust engine, which holds the GIL
_MAX_EVALUATIONS: Final = 1 << 25


class Check:
    """One compiled schema.

    `is_valid` answers in about 0.3 microseconds for a small value. Values come from the strict
    parser (depth ≤ 64, finite numbers, no lone surrogates); `guarded` takes any. `formats` says
    whether `format` is asserted.
    """

    __slots__ = ("_formats", "_room", "_rust", "_seen", "is_valid")

    def __init__(self, schema: JsonValue, *, formats: bool = False) -> None:
        self._seen = inspect(schema)
        self._formats = formats
        self._rust = rust(
            self._seen.prepared, self._seen.dialect, patterns=self._seen.patterns, formats=formats
        )
        self._room = _MAX_EVALUATIONS // self._seen.evaluations
        calm = self._seen.evaluations <= _CALM
        self.is_valid = self._rust.is_valid if calm else self._weighed

    def guarded(self, value: JsonValue) -> bool:
        """Return the verdict on a value that did not come from the strict parser.

        Raises:
            Malformed: No verdict is safe: too deep, or not JSON.
        """
        guard(value)
        return self.is_valid(value)

    def problems(self, value: JsonValue) -> tuple[Problem, ...]:
        """Return at most ten problems of `value`: none exactly when it is valid."""
        return self.report(value).problems

    def report(self, value: JsonValue) -> Report:
        """Return what is wrong with `value`, and whether that is all."""
        if self.is_valid(value):
            return Report(problems=())
        weight = weigh(value, self._room)
        if weight.nodes > self._room:
            return too_big(value)
        return explain(value, self._seen, self._rust, weight, formats=self._formats)

    def _weighed(self, value: JsonValue) -> bool:
        """Refuse what would take seconds: many places under a schema of many paths."""
        return weigh(value, self._room).nodes <= self._room and self._rust.is_valid(value)


class Checks:
    """The compiled schemas used last, by key; safe to use from several threads."""

    def __init__(self, capacity: int = 4096) -> None:
        self._capacity = capacity
        self._lock = Lock()
        self._held: OrderedDict[tuple[str, bool], Check] = OrderedDict()

    def __len__(self) -> int:
        """Return how many checks are held."""
        return len(self._held)

    def compiled(self, key: str, schema: JsonValue, *, formats: bool = False) -> Check:
        """Return the check of `schema`; `key` is its digest, or any name of that one schema.

        Raises:
            SchemaRejected: The schema may not be used.
        """
        name = (key, formats)
        with self._lock:
            if (held := self._held.get(name)) is not None:
                self._held.move_to_end(name)
                return held
        made = Check(schema, formats=formats)
        with self._lock:
            self._held[name] = made
            while len(self._held) > self._capacity:
                self._held.popitem(last=False)
        return made


_SHARED: Final = Checks()


def compiled(key: str, schema: JsonValue, *, formats: bool = False) -> Check:
    """Return the check of `schema` from the process's own store; see `Checks.compiled`."""
    return _SHARED.compiled(key, schema, formats=formats)
