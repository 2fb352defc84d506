"""`thoughtgate grpc`: what a gRPC server could offer as tools.

Never registers anything, and calls no method of the server's but reflection.
"""

import asyncio
import json
import shlex
from collections.abc import Iterator, Mapping, Sequence

import click

from thoughtgate.cli.grpc_options import grpc_transport, tls_options
from thoughtgate.cli.lazy import Group
from thoughtgate.cli.output import clean, json_flag, show, strong, table
from thoughtgate.cli.signals import interruptible
from thoughtgate.core.errors import ConfigError, Missing, SchemaRejected, UpstreamError
from thoughtgate.core.json import JsonObject
from thoughtgate.core.servers import GrpcTransport
from thoughtgate.core.tools import Effect
from thoughtgate.protos.descriptors import Method
from thoughtgate.protos.urls import is_grpc
from thoughtgate.upstream.grpc.describing import NATIVE, Description, describe

_EFFECTS: Mapping[Effect, str] = {Effect.READ: "reads only", Effect.IDEMPOTENT: "repeatable"}
_EVERYTHING = ("*",)
_NAMED = 12
"""Methods that are named to whoever asked for another one."""


@click.group(cls=Group)
def grpc() -> None:
    """Servers that speak gRPC."""


@grpc.command(
    "describe",
    epilog="\b\n"
    "thoughtgate grpc describe grpc://127.0.0.1:50051\n"
    "thoughtgate grpc describe grpc://127.0.0.1:50051 --method shop.v1.Orders/GetOrder\n"
    "thoughtgate grpc describe grpcs://shop.example --ca ca.pem --header 'x-key: …'",
)
@click.argument("target", metavar="TARGET")
@click.option("--service", "services", multiple=True, metavar="NAME", help="Only this service.")
@click.option(
    "--method", metavar="SERVICE/METHOD", help="Print the tool that a method becomes, whole."
)
@click.option(
    "--descriptor-set",
    metavar="FILE",
    default="",
    help="File of protoc --descriptor_set_out, instead of asking the server.",
)
@tls_options
@click.option(
    "--header", "headers", multiple=True, metavar="NAME=VALUE", help="Metadata; NAME: VALUE too."
)
@json_flag
def describe_(target: str, as_json: bool, **given: object) -> None:
    """Say which services and methods a gRPC server has, and how to make them tools.

    TARGET is grpc://HOST:PORT, or with TLS grpcs://HOST:PORT. The server is asked by reflection,
    unless --descriptor-set names a file.
    """
    if not is_grpc(target):
        raise click.UsageError(message="TARGET is grpc://HOST:PORT, or with TLS grpcs://HOST:PORT")
    headers = _headers(given["headers"])
    transport = grpc_transport(target, headers, {**given, "reflect": _EVERYTHING, "bidi": True})
    try:
        described = asyncio.run(interruptible(describe(transport)))
    except UpstreamError as error:
        raise UpstreamError(message=f"{target}: {error.message}", data=error.data) from None
    if given["method"]:
        tool = _tool(described, str(given["method"]), transport)
        show(tool, map(clean, _spelled(tool)), as_json=as_json)
        return
    named = given["services"]
    chosen = _chosen(described, named if isinstance(named, tuple) else ())
    lines = map(clean, _lines(described, chosen, transport, target))
    show(_value(described, chosen, transport, target), lines, as_json=as_json)


def _headers(words: object) -> dict[str, str]:
    """Return `NAME=VALUE` or `NAME: VALUE` words as a mapping."""
    made: dict[str, str] = {}
    for word in words if isinstance(words, tuple) else ():
        at = min((word.find(sign) for sign in "=:" if sign in word), default=0)
        if at <= 0:
            raise click.UsageError(message="--header is NAME=VALUE or NAME: VALUE")
        made[word[:at].strip()] = word[at + 1 :].strip()
    return made


def _chosen(described: Description, names: Sequence[str]) -> tuple[str, ...]:
    for name in names:
        if name in described.hidden:
            raise ConfigError(message=f"{name} tells of the server itself; it never becomes tools")
        described.methods(name)
    return tuple(names) or described.services


def _tool(described: Description, named: str, transport: GrpcTransport) -> JsonObject:
    service, _, name = named.strip("/").rpartition("/")
    if not service:
        raise click.UsageError(message="--method is SERVICE/METHOD, such as shop.v1.Orders/Get")
    methods = {method.name: method for method in described.methods(service)}
    if name not in methods:
        has = ", ".join(list(methods)[:_NAMED]) or "none"
        raise Missing(message=f"service {service} has no method {name[:120]}; it has {has}")
    return described.tool(methods[name], transport)


def _spelled(tool: JsonObject) -> Iterator[str]:
    yield f"{strong(tool['name'])}  {tool.get('description', '')}".rstrip()
    for key, title in (("inputSchema", "takes"), ("outputSchema", "returns")):
        if key in tool:
            yield f"{title} {json.dumps(tool[key], ensure_ascii=False, indent=2)}"


def _lines(
    described: Description, chosen: Sequence[str], transport: GrpcTransport, target: str
) -> Iterator[str]:
    if described.by:
        yield f"{target}, by {described.by}"
    if described.native:
        yield f"it speaks {NATIVE}, the gateway's own protocol; to add it:"
        yield f"  thoughtgate server add NAME {target}"
    for service in chosen:
        yield ""
        yield strong(service)
        rows = [
            (method.name, _kind(method), _name(described, method, transport), _remark(method))
            for method in described.methods(service)
        ]
        yield from (f"  {line}" for line in table(("METHOD", "KIND", "TOOL", ""), rows))
    if described.hidden:
        yield ""
        yield f"never tools: {', '.join(described.hidden)}"
    if chosen:
        yield ""
        yield "to make its methods tools, with one --reflect for each service:"
        yield f"  {_command(target, chosen, transport)}"
    elif not described.native:
        yield "it has no service that could become tools"


def _command(target: str, chosen: Sequence[str], transport: GrpcTransport) -> str:
    """Return the command that adds the first service, as it was reached now."""
    tls = transport.tls
    options = {
        "--descriptor-set": transport.descriptor_set,
        "--ca": tls.ca,
        "--cert": tls.cert,
        "--key": tls.key,
        "--server-name": tls.name,
    }
    words = ["thoughtgate", "server", "add", "NAME", target, "--reflect", chosen[0]]
    words += [word for name, value in options.items() if value for word in (name, value)]
    words += [word for name in transport.headers for word in ("--header", f"{name}=…")]
    return " ".join(word if "…" in word else shlex.quote(word) for word in words)


def _value(
    described: Description, chosen: Sequence[str], transport: GrpcTransport, target: str
) -> JsonObject:
    return {
        "target": target,
        "by": described.by or None,
        "native": described.native,
        "services": [
            {
                "name": service,
                "methods": [
                    {
                        "name": method.name,
                        "kind": _kind(method),
                        "tool": _name(described, method, transport),
                        "request": method.request,
                        "response": method.response,
                        "effect": method.effect,
                        "deprecated": method.deprecated,
                        "description": method.comment,
                    }
                    for method in described.methods(service)
                ],
            }
            for service in chosen
        ],
        "hidden": list(described.hidden),
        "command": _command(target, chosen, transport) if chosen else None,
    }


def _kind(method: Method) -> str:
    if method.client_streaming and method.server_streaming:
        return "both stream"
    if method.client_streaming:
        return "client streams"
    return "server streams" if method.server_streaming else "unary"


def _name(described: Description, method: Method, transport: GrpcTransport) -> str:
    try:
        return str(described.tool(method, transport)["name"])
    except SchemaRejected as error:
        return f"none: {error.message}"


def _remark(method: Method) -> str:
    bidi = method.client_streaming and method.server_streaming
    said = (
        _EFFECTS.get(method.effect, "") if method.effect else "",
        "needs --bidi" if bidi else "",
        "deprecated" if method.deprecated else "",
    )
    return ", ".join(filter(None, said))
