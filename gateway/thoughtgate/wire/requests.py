"""Requests for tools and other items, between an MCP message and the parts of a call.

Never knows an era: what the eras add to a request is theirs. Both directions are here, so what one
reads the other writes.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from thoughtgate.core.json import JsonObject
from thoughtgate.core.tools import Item, Kind, Tool
from thoughtgate.wire import methods
from thoughtgate.wire.methods import Meta, invalid_params, read_meta

_NAMED: Final = {
    methods.PROMPTS_GET: (Kind.PROMPT, "name"),
    methods.RESOURCES_READ: (Kind.RESOURCE, "uri"),
    methods.SUBSCRIBE: (Kind.SUBSCRIBE, "uri"),
    methods.UNSUBSCRIBE: (Kind.UNSUBSCRIBE, "uri"),
}
_METHODS: Final = {kind: (method, member) for method, (kind, member) in _NAMED.items()}
_REFERENCES: Final = {
    "ref/prompt": (Kind.PROMPT_COMPLETION, "name"),
    "ref/resource": (Kind.RESOURCE_COMPLETION, "uri"),
}
_REFERENCE_OF: Final = {kind: (type_, key) for type_, (kind, key) in _REFERENCES.items()}
_NOT_EXTRA: Final = frozenset({"_meta", "inputResponses", "requestState"})


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What a request asks for. `kind` is None for a tool; `extra` are members we do not know."""

    kind: Kind | None
    name: str
    arguments: JsonObject
    extra: JsonObject
    meta: Meta


def read_request(method: str, params: JsonObject) -> Wanted:
    """Return what a client's request asks for; a method that we do not know is asked for itself.

    Members of a retry (`inputResponses`, `requestState`) are left out.

    Raises:
        BadMessage: A part is missing or of the wrong type.
    """
    meta = read_meta(params)
    if method == methods.TOOLS_CALL:
        return _wanted(None, "name", params, meta)
    if method in _NAMED:
        kind, member = _NAMED[method]
        return _wanted(kind, member, params, meta)
    rest = {k: v for k, v in params.items() if k not in _NOT_EXTRA}
    if method == methods.COMPLETE:
        return _completion(rest, meta)
    return Wanted(kind=Kind.METHOD, name=method, arguments=rest, extra={}, meta=meta)


def write_request(
    target: Tool | Item, arguments: JsonObject, extra: JsonObject
) -> tuple[str, dict[str, Any]]:
    """Return the method and params that ask a server for a target, still without `_meta`."""
    if isinstance(target, Tool):
        return methods.TOOLS_CALL, {"name": target.name, "arguments": arguments, **extra}
    if target.kind is Kind.METHOD:
        return target.name, dict(arguments)
    if target.kind in _REFERENCE_OF:
        type_, key = _REFERENCE_OF[target.kind]
        ref = {**extra.get("ref", {}), "type": type_, key: target.name}
        return methods.COMPLETE, {**extra, "ref": ref, **arguments}
    method, member = _METHODS[target.kind]
    params: dict[str, Any] = {member: target.name, **extra}
    if arguments:
        params["arguments"] = arguments
    return method, params


def _wanted(kind: Kind | None, member: str, rest: JsonObject, meta: Meta) -> Wanted:
    name, arguments = rest.get(member), rest.get("arguments", {})
    if type(name) is not str:
        raise invalid_params(message=f'"{member}" must be a string')
    if type(arguments) is not dict:
        raise invalid_params(message='"arguments" must be an object; leave it out when empty')
    known = {member, "arguments", *_NOT_EXTRA}
    extra = {k: v for k, v in rest.items() if k not in known}
    return Wanted(kind=kind, name=name, arguments=arguments, extra=extra, meta=meta)


def _completion(rest: JsonObject, meta: Meta) -> Wanted:
    ref, argument = rest.get("ref"), rest.get("argument")
    ref = ref if type(ref) is dict else {}
    type_ = ref.get("type")
    if type(type_) is not str or type_ not in _REFERENCES:
        raise invalid_params(message='"ref" must be a ref/prompt or a ref/resource')
    kind, key = _REFERENCES[type_]
    name = ref.get(key)
    if type(name) is not str:
        raise invalid_params(message=f'"ref" must carry "{key}", a string')
    if type(argument) is not dict:
        raise invalid_params(message='"argument" must be an object')
    arguments = {k: v for k, v in rest.items() if k in {"argument", "context"}}
    extra = {k: v for k, v in rest.items() if k not in {"ref", "argument", "context"}}
    if more := {k: v for k, v in ref.items() if k not in {"type", key}}:
        extra["ref"] = more
    return Wanted(kind=kind, name=name, arguments=arguments, extra=extra, meta=meta)


def offers(capabilities: Mapping[str, Any], method: str, params: JsonObject) -> bool:
    """Tell whether a client that declared `capabilities` can be asked for this.

    An `elicitation` that names no mode means forms (2025-11-25, elicitation, capabilities).
    """
    match method:
        case methods.ELICIT:
            declared = capabilities.get("elicitation")
            if type(declared) is not dict:
                return False
            return "url" in declared if params.get("mode") == "url" else _takes_forms(declared)
        case methods.SAMPLE:
            declared = capabilities.get("sampling")
            return type(declared) is dict and ("tools" not in params or "tools" in declared)
        case methods.ROOTS:
            return type(capabilities.get("roots")) is dict
        case _:
            return False


def _takes_forms(declared: Mapping[str, Any]) -> bool:
    return "form" in declared or "url" not in declared
