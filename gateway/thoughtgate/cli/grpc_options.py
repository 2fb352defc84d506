"""The options of commands that are about a gRPC server, and the transport that they mean.

Never opens a connection; of files it only looks whether they are there.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from thoughtgate.config.grpc_servers import (
    NOT_OF_GRPC,
    anchored,
    files_of,
    lowered,
    misfits,
    with_files,
)
from thoughtgate.core.errors import ConfigError
from thoughtgate.core.servers import GrpcTransport, Sharing, Streaming, Tls

F = TypeVar("F", bound=Callable[..., Any])

_FLAGS: Mapping[str, str] = {
    "reflect": "--reflect",
    "descriptor_set": "--descriptor-set",
    "streaming": "--streaming",
    "bidi": "--bidi",
    "tls_ca": "--ca",
    "tls_cert": "--cert",
    "tls_key": "--key",
    "tls_name": "--server-name",
    "era": "--era",
    "sse": "--sse",
    "sharing": "--sharing",
    "env": "--env",
    "cwd": "--cwd",
}
"""The option by the key of a configuration that says the same."""

_ONLY = "is for a gRPC server, whose URL begins with grpc:// or grpcs://"


def tls_options(command: F) -> F:
    """Add the options of a connection by TLS: `--ca`, `--cert`, `--key` and `--server-name`."""
    for option in (
        click.option("--server-name", "tls_name", metavar="NAME", default="", help=_NAME),
        click.option("--key", "tls_key", metavar="FILE", default="", help=_KEY),
        click.option("--cert", "tls_cert", metavar="FILE", default="", help=_CERT),
        click.option("--ca", "tls_ca", metavar="FILE", default="", help=_CA),
    ):
        command = option(command)
    return command


def reflect_options(command: F) -> F:
    """Add the options of a server whose methods become tools."""
    modes = click.Choice([mode.value for mode in Streaming])
    for option in (
        click.option("--bidi", is_flag=True, help=_BIDI),
        click.option("--streaming", type=modes, default="array", help=_STREAMING),
        click.option("--descriptor-set", metavar="FILE", default="", help=_SET),
        click.option("--reflect", multiple=True, metavar="SERVICE", help=_REFLECT),
    ):
        command = option(command)
    return command


_BIDI = "gRPC: also methods in which both sides stream."
_CA = "gRPC: PEM file of authorities to trust instead of the system's."
_CERT = "gRPC: PEM file of our own certificate, with its chain."
_KEY = "gRPC: PEM file of the key of --cert."
_NAME = "gRPC: name in the server's certificate, where it is not the URL's host."
_STREAMING = "gRPC: what the messages of a streaming method become, all of them or the last."
_SET = "gRPC: file of protoc --descriptor_set_out, instead of asking the server."
_REFLECT = (
    "gRPC: package.Service or package.Service/Method that becomes tools, * for all; repeatable."
)


def grpc_transport(url: str, headers: Mapping[str, str], given: Mapping[str, Any]) -> GrpcTransport:
    """Return the transport that the options mean; paths are made absolute.

    Raises:
        click.UsageError: They do not fit together, or mean nothing for a gRPC server.
        ConfigError: A file is not there.
    """
    tls = Tls(
        ca=given["tls_ca"], cert=given["tls_cert"], key=given["tls_key"], name=given["tls_name"]
    )
    transport = GrpcTransport(
        url=url,
        headers=headers,
        reflect=tuple(given.get("reflect", ())),
        descriptor_set=given.get("descriptor_set", ""),
        streaming=Streaming(given.get("streaming", "array")),
        bidi=given.get("bidi", False),
        tls=tls,
    )
    for key, why in NOT_OF_GRPC.items():
        if given.get(key) and given[key] != Sharing.SHARED:
            raise click.UsageError(message=f"{_FLAGS[key]} {why}")
    for misfit in misfits(transport):
        raise click.UsageError(message=_said(misfit.key, misfit.text))
    if files_of(transport):
        folder = _here()
        transport = with_files(transport, lambda file: anchored(file, folder))
    for file in files_of(transport):
        if not Path(file).is_file():
            raise ConfigError(message=f"there is no file {file}")
    return lowered(transport)


def refuse_grpc_options(given: Mapping[str, Any]) -> None:
    """Refuse options of a gRPC server for another kind.

    Raises:
        click.UsageError: One was given.
    """
    for key, flag in _FLAGS.items():
        if key not in NOT_OF_GRPC and given.get(key) not in (None, (), "", False, "array"):
            raise click.UsageError(message=f"{flag} {_ONLY}")


def _said(key: str, text: str) -> str:
    if key == "url":
        return text
    if key.startswith("headers."):
        return f"--header {key.removeprefix('headers.')}: {text}"
    return f"{_FLAGS[key]} {text.replace('needs reflect', 'needs --reflect')}"


def _here() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise ConfigError(
            message="the present folder is gone; name files by their whole path"
        ) from None
