"""From a function's type hints to JSON Schemas, from arguments to its parameters, and back.

Never calls the function.
"""

import copy
import inspect
import json
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, get_args, get_origin

import msgspec

from thoughtgate_servers.native.call import Call
from thoughtgate_servers.schemas import Schema
from thoughtgate_servers.table import Image, Reply, ToolFailed

_WRAPPED = "result"
"""Member that holds a result which is no object: many clients take objects only."""

_KINDS = {inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY}


class BadSignature(TypeError):
    """A function that cannot become a tool, and why."""

    def __init__(self, *, function: str, why: str) -> None:
        super().__init__(f"{function}: {why}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """What a function takes and gives, as schemas and as ways between JSON and Python."""

    input_schema: Schema
    output_schema: Schema | None
    arguments: type[msgspec.Struct]
    call_parameter: str | None
    returns: Any
    wrapped: bool

    def bound(self, arguments: Mapping[str, Any], call: Call) -> dict[str, Any]:
        """Return the function's keyword arguments.

        Raises:
            ToolFailed: A value fits the schema but not the type, such as a day that is none.
        """
        try:
            made = msgspec.convert(dict(arguments), self.arguments)
        except msgspec.ValidationError as failure:
            raise ToolFailed(message=f"invalid arguments: {failure}") from None
        given = {name: getattr(made, name) for name in self.arguments.__struct_fields__}
        return given if self.call_parameter is None else {**given, self.call_parameter: call}

    def reply(self, result: Any) -> Reply:
        """Return what the function gave, as its output schema promises.

        Raises:
            msgspec.ValidationError: It is not of the type that the function says.
        """
        if isinstance(result, Reply):
            return result
        if isinstance(result, Image):
            return Reply(text="", structured=None, images=(result,))
        plain = msgspec.to_builtins(result)
        if self.output_schema is None:
            text = plain if isinstance(plain, str) else _text(plain)
            return Reply(text="" if plain is None else text, structured=None)
        msgspec.convert(plain, self.returns)
        return Reply(text=_text(plain), structured={_WRAPPED: plain} if self.wrapped else plain)


def signature_of(function: Callable[..., Any]) -> Signature:
    """Return the signature of `function`.

    Raises:
        BadSignature: A parameter has no type, a default that JSON cannot say, or no name.
    """
    name = function.__name__
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except NameError as failure:
        raise BadSignature(function=name, why=f"{failure}, which its type hints need") from None
    fields: list[tuple[str, Any, Any]] = []
    call_parameter = None
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind not in _KINDS:
            why = f"{parameter} has no name of its own to be called by"
            raise BadSignature(function=name, why=why)
        if parameter.name not in hints:
            raise BadSignature(function=name, why=f"the parameter {parameter.name} has no type")
        if hints[parameter.name] is Call:
            call_parameter = parameter.name
            continue
        fields.append((parameter.name, _described(hints[parameter.name]), _default(parameter)))
    try:
        arguments = msgspec.defstruct(
            f"{name}_arguments", fields, kw_only=True, forbid_unknown_fields=True
        )
        returns = hints.get("return", Any)
        output, wrapped = _output(returns)
        return Signature(
            input_schema={"properties": {}, **_schema(arguments)},
            output_schema=output,
            arguments=arguments,
            call_parameter=call_parameter,
            returns=returns,
            wrapped=wrapped,
        )
    except TypeError as failure:
        raise BadSignature(function=name, why=str(failure)) from None


def _described(hint: Any) -> Any:
    """Return the hint with a bare text of `Annotated` as its description."""
    if get_origin(hint) is not Annotated:
        return hint
    kind, *notes = get_args(hint)
    texts = [note for note in notes if isinstance(note, str)]
    rules = [note for note in notes if isinstance(note, msgspec.Meta)]
    if texts:
        rules.append(msgspec.Meta(description=" ".join(texts)))
    for rule in rules:
        kind = Annotated[kind, rule]
    return kind


def _default(parameter: inspect.Parameter) -> Any:
    value = parameter.default
    if value is inspect.Parameter.empty:
        return msgspec.NODEFAULT
    if isinstance(value, list | dict | set):
        return msgspec.field(default_factory=lambda: copy.deepcopy(value))
    return value


def _output(returns: Any) -> tuple[Schema | None, bool]:
    """Return the output schema, and whether a result is wrapped to be an object."""
    if returns in {Any, None, type(None), str, Image, Reply}:
        return None, False
    schema = _schema(returns)
    if schema.get("type") == "object":
        return schema, False
    defs = schema.pop("$defs", {})
    wrapper: Schema = {
        "type": "object",
        "properties": {_WRAPPED: schema},
        "required": [_WRAPPED],
    }
    return ({**wrapper, "$defs": defs} if defs else wrapper), True


def _schema(kind: Any) -> Schema:
    """Return the JSON Schema of a type, its root in place."""
    (root,), definitions = msgspec.json.schema_components([kind], ref_template="#/$defs/{name}")
    if "$ref" in root:
        name = root["$ref"].removeprefix("#/$defs/")
        root = {**definitions[name], **{key: root[key] for key in root if key != "$ref"}}
        rest = {key: value for key, value in definitions.items() if key != name}
        # a type that holds itself needs its definition besides the root
        if f'"#/$defs/{name}"' not in json.dumps([root, rest]):
            definitions = rest
    return {**root, "$defs": definitions} if definitions else root


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
