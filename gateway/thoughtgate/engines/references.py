"""References between steps: how the output of one becomes the input of another.

Never guesses: a pointer that misses is an error that says what was there instead.

Inside the `arguments`, `each` and `answer` of a plan, these objects stand for values:

    {"$from": "find#/structuredContent/files"}  a JSON Pointer into the observation of step `find`
    {"$from": "inputs#/directory"}              an input of the run
    {"$item": "/path"}                          a pointer into the current item of `each`
    {"$literal": {"$from": "x"}}                the inner value as it stands

A step with `each` has one observation per item, so a pointer into it is applied to every one of
them and yields the list, in order. `"$flat": true` beside `$from` joins a list of lists into one.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from thoughtgate.core.json import JsonObject, JsonValue
from thoughtgate.schema.weight import weigh

FROM, ITEM, FLAT, LITERAL = "$from", "$item", "$flat", "$literal"
INPUTS = "inputs"
"""The reserved step id under which the inputs of a run are found."""

MAX_VALUES = 500_000
MAX_CHARACTERS = 4_194_304
"""What one resolved value may hold: a few references repeated multiply from step to step."""

_NAMED = 8


class ReferenceMissed(ValueError):
    """A reference that is not well formed or points at nothing; its text says which and why."""

    def __init__(self, *, why: str) -> None:
        super().__init__(why)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sourced:
    """What references find under a step's id: one value, or one per item of its `each`."""

    values: tuple[JsonValue, ...]
    fanned: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A parsed `$from`."""

    step: str
    pointer: str
    flat: bool = False

    @property
    def tokens(self) -> tuple[str, ...]:
        """Return the members and indexes that the pointer leads along."""
        return tuple(_tokens(self.pointer, self.step))


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """The current item of an `each`."""

    value: JsonValue


def parse(value: JsonObject) -> Reference:
    """Return the reference that `value`, an object with `$from`, stands for.

    Raises:
        ReferenceMissed: It is not well formed.
    """
    target, flat = value[FROM], value.get(FLAT, False)
    if not isinstance(target, str) or not target or not isinstance(flat, bool):
        raise ReferenceMissed(why=f'{FROM} needs "step#/pointer", {FLAT} true or false')
    if extra := set(value) - {FROM, FLAT}:
        raise ReferenceMissed(why=f"{target}: unknown member {min(extra)} beside {FROM}")
    step, _, pointer = target.partition("#")
    _tokens(pointer, target)
    return Reference(step=step, pointer=pointer, flat=flat)


def references(value: JsonValue) -> Iterator[Reference]:
    """Yield every `$from` in `value`.

    Raises:
        ReferenceMissed: One is not well formed.
    """
    if isinstance(value, Mapping):
        if FROM in value:
            yield parse(value)
        elif LITERAL not in value:
            for inner in value.values():
                yield from references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from references(inner)


def is_stand_in(value: JsonValue) -> bool:
    """Say whether the whole of `value` stands for another value, known only when it is resolved."""
    return isinstance(value, Mapping) and not value.keys().isdisjoint({FROM, ITEM, LITERAL})


def uses_item(value: JsonValue) -> bool:
    """Say whether `value` refers to the item of an `each`."""
    if isinstance(value, Mapping):
        if LITERAL in value or FROM in value:
            return False
        return ITEM in value or any(uses_item(inner) for inner in value.values())
    return isinstance(value, list) and any(uses_item(inner) for inner in value)


def resolve(
    value: JsonValue, sources: Mapping[str, Sourced], item: Item | None = None
) -> JsonValue:
    """Return `value` with every reference replaced by what it points at.

    Raises:
        ReferenceMissed: A reference points at nothing, or all of them bring too much.
    """
    found = _resolved(value, sources, item)
    weight = weigh(found, MAX_VALUES)
    if weight.nodes > MAX_VALUES or weight.characters > MAX_CHARACTERS:
        raise ReferenceMissed(
            why=f"the references bring more than {MAX_VALUES} values or {MAX_CHARACTERS} characters"
        )
    return found


def point(value: JsonValue, pointer: str, where: str) -> JsonValue:
    """Return what a JSON Pointer (RFC 6901) finds in `value`; `where` names it in errors.

    Raises:
        ReferenceMissed: It finds nothing.
    """
    here, walked = value, ""
    for token in _tokens(pointer, where):
        if isinstance(here, Mapping) and token in here:
            here = here[token]
        elif isinstance(here, list) and _is_index(token) and int(token) < len(here):
            here = here[int(token)]
        else:
            raise ReferenceMissed(why=f"{where}: nothing at {walked}/{token}; {_inventory(here)}")
        walked = f"{walked}/{token}"
    return here


def _resolved(value: JsonValue, sources: Mapping[str, Sourced], item: Item | None) -> JsonValue:
    if isinstance(value, list):
        return [_resolved(inner, sources, item) for inner in value]
    if not isinstance(value, Mapping):
        return value
    if FROM in value:
        return _fetch(parse(value), sources)
    if ITEM in value:
        return _from_item(value, item)
    if LITERAL in value:
        return _literal(value)
    return {key: _resolved(inner, sources, item) for key, inner in value.items()}


def _fetch(reference: Reference, sources: Mapping[str, Sourced]) -> JsonValue:
    where = f"{reference.step}#{reference.pointer}"
    source = sources.get(reference.step)
    if source is None:
        raise ReferenceMissed(why=f"{where}: {reference.step} has no observation")
    found = [point(value, reference.pointer, where) for value in source.values]
    joined: JsonValue = found if source.fanned else found[0]
    if not reference.flat:
        return joined
    if not isinstance(joined, list) or not all(isinstance(inner, list) for inner in joined):
        raise ReferenceMissed(why=f"{where}: {FLAT} needs a list of lists")
    return [entry for inner in joined for entry in inner]


def _from_item(value: JsonObject, item: Item | None) -> JsonValue:
    pointer = value[ITEM]
    if item is None or not isinstance(pointer, str) or len(value) != 1:
        raise ReferenceMissed(why=f"{ITEM} needs a pointer, alone, inside a step with each")
    return point(item.value, pointer, "the item")


def _literal(value: JsonObject) -> JsonValue:
    if len(value) != 1:
        raise ReferenceMissed(why=f"{LITERAL} stands alone in its object")
    return value[LITERAL]


def _tokens(pointer: str, where: str) -> list[str]:
    if not pointer:
        return []
    if not pointer.startswith("/"):
        raise ReferenceMissed(why=f"{where}: a pointer is empty or starts with /")
    return [token.replace("~1", "/").replace("~0", "~") for token in pointer[1:].split("/")]


def _is_index(token: str) -> bool:
    return (
        token.isascii()
        and token.isdigit()
        and len(token) < 10
        and (token == "0" or not token.startswith("0"))
    )


def _inventory(value: JsonValue) -> str:
    if isinstance(value, Mapping):
        names = [str(key)[:40] for key in list(value)[:_NAMED]]
        more = ", …" if len(value) > _NAMED else ""
        return f"there is {', '.join(names)}{more}" if names else "the object is empty"
    if isinstance(value, list):
        return f"there is a list of {len(value)}"
    return "there is no object or list"
