"""Which branch of a union its writer meant, judged by the errors of each branch.

Never reports "matches none of the schemas" while a better guess exists: models then mend the
wrong member.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from jsonschema.exceptions import ValidationError

from thoughtgate.core.json import JsonValue

Branch = list[ValidationError]


def choose(keyword: str, value: JsonValue, branches: Sequence[Branch]) -> Branch:
    """Return the errors to report for a value that no branch accepts.

    In this order: the branches that take the value's type, those whose discriminator (a member
    with `const` or `enum`) agrees, the one with the fewest errors.
    """
    live = [branch for branch in branches if not any(map(_refuses_itself, branch))]
    if not live:
        return _nothing_fits(keyword, value, branches)
    agreeing = [branch for branch in live if not any(map(_refutes, branch))]
    if not agreeing and isinstance(value, dict):
        return _wrong_discriminator(value, live) or min(live, key=len)
    if len(agreeing) > 1 and (missing := _missing_in_all(value, agreeing)):
        return missing
    return min(agreeing or live, key=len)


def _refuses_itself(error: ValidationError) -> bool:
    """The branch does not take this value at all, whatever is inside."""
    return not error.relative_path and error.validator in {"type", "const", "enum", "false", None}


def _refutes(error: ValidationError) -> bool:
    return (
        len(error.relative_path) == 1
        and error.validator in {"const", "enum"}
        and isinstance(error.relative_path[0], str)
    )


def _options(error: ValidationError) -> list[Any]:
    argument: Any = error.validator_value
    return [argument] if error.validator == "const" else list(argument)


def _nothing_fits(keyword: str, value: JsonValue, branches: Sequence[Branch]) -> Branch:
    """Say what any branch would take: all their types, or all their constants."""
    own = [next(filter(_refuses_itself, branch)) for branch in branches]
    kinds = {error.validator for error in own}
    if kinds == {"type"}:
        names = _unique(name for error in own for name in _names(error.validator_value))
        return [_error("type", names, value, own[0].schema if len(own) == 1 else {})]
    if kinds <= {"const", "enum"}:
        return [_error("enum", [o for error in own for o in _options(error)], value, {})]
    return [_error(keyword, [error.schema for error in own], value, {})]


def _names(argument: Any) -> list[str]:
    return [argument] if isinstance(argument, str) else list(argument)


def _wrong_discriminator(value: dict[str, JsonValue], live: Sequence[Branch]) -> Branch:
    """When every branch refuses the same member, say what any of them would take there."""
    refuting = [[error for error in branch if _refutes(error)] for branch in live]
    shared = set.intersection(*({e.relative_path[0] for e in errors} for errors in refuting))
    if not shared:
        return []
    name = min(shared, key=str)
    options = [
        option
        for errors in refuting
        for error in errors
        if error.relative_path[0] == name
        for option in _options(error)
    ]
    return [_error("enum", options, value[str(name)], {}, (name,))]


def _missing_in_all(value: JsonValue, live: Sequence[Branch]) -> Branch:
    """When every branch misses the same members, report those alone."""
    missing = [
        {error.validator_value: error for error in branch if _misses(error)} for branch in live
    ]
    shared = [name for name in missing[0] if all(name in names for names in missing[1:])]
    return [
        _error("required", name, value, {"properties": {name: _either(name, missing)}})
        for name in shared
    ]


def _misses(error: ValidationError) -> bool:
    return not error.relative_path and error.validator == "required"


def _either(name: Any, missing: Sequence[dict[Any, ValidationError]]) -> JsonValue:
    """Merge what the branches want of a member, when all of them want constants."""
    options: list[Any] = []
    for names in missing:
        schema: Any = names[name].schema
        wanted = schema.get("properties", {}).get(name) if isinstance(schema, dict) else None
        if not isinstance(wanted, dict) or not {"const", "enum"} & wanted.keys():
            return {}
        options += [wanted["const"]] if "const" in wanted else wanted["enum"]
    return {"enum": options}


def _unique(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))


def _error(
    keyword: str, argument: Any, value: JsonValue, schema: JsonValue, path: Sequence[Any] = ()
) -> ValidationError:
    return ValidationError(
        "", validator=keyword, validator_value=argument, instance=value, schema=schema, path=path
    )
