"""One server of another client's file, as one of ours.

Never decides about names, nor whether anything is stored: one table in, one transport out.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from urllib.parse import urlsplit

from thoughtgate.config.clients.entries import URL_KEYS
from thoughtgate.config.imports import dotenv
from thoughtgate.config.imports.fields import Fields
from thoughtgate.config.imports.folders import Folders
from thoughtgate.config.imports.grpc import GRPC_KEYS, read_grpc
from thoughtgate.config.imports.headers import read_headers
from thoughtgate.config.imports.names import is_sse_url
from thoughtgate.core.errors import ConfigError
from thoughtgate.core.servers import HttpTransport, StdioTransport, Transport
from thoughtgate.protos.urls import is_grpc
from thoughtgate.telemetry.redact import is_secret_name, redact

_KINDS = {
    "stdio": "stdio",
    "local": "stdio",
    "http": "http",
    "streamable-http": "http",
    "streamable_http": "http",
    "streamablehttp": "http",
    "sse": "sse",
    "grpc": "grpc",
}
_OF_A_COMMAND = {"command", "args", "env", "env_vars", "envFile", "cwd"}
_OF_A_URL = {*URL_KEYS, "headers", "http_headers", "env_http_headers", "bearer_token_env_var"}
_OF_BOTH = {
    "type", "transport", "enabled", "disabled",
    "startup_timeout_sec", "startup_timeout_ms", "tool_timeout_sec",
}  # fmt: skip
_HARMLESS = {
    "$schema", "alwaysLoad", "comment", "description", "dev", "gallery", "icon", "metadata", "name",
    "note", "notes", "required", "source", "supports_parallel_tool_calls", "title", "version",
}  # fmt: skip

_TOOLS = "which tools may be used is not imported; choose them with: thoughtgate domain"
_ASKING = "what may run without asking is not imported; your client asks"
_LOGIN = "a login is not imported; log in with: thoughtgate server login"
_SANDBOX = "the server runs without that sandbox here"
_LEFT_OUT: Mapping[str, str] = {
    **dict.fromkeys(
        ("tools", "disabledTools", "enabledTools", "disabled_tools", "enabled_tools"), _TOOLS
    ),
    **dict.fromkeys(("includeTools", "excludeTools"), _TOOLS),
    **dict.fromkeys(
        ("autoApprove", "alwaysAllow", "trust", "default_tools_approval_mode"), _ASKING
    ),
    **dict.fromkeys(("oauth", "auth", "oauth_resource", "scopes", "authProviderType"), _LOGIN),
    **dict.fromkeys(("sandbox", "sandboxEnabled"), _SANDBOX),
    "headersHelper": "headers that a command makes are not imported; give them as headers",
    "settings": "settings of an editor's extension are not imported",
    "timeout": "seconds to some clients, milliseconds to others; not imported, set it with: "
    "thoughtgate server add --replace --call-timeout",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One server as its file says; None is what the file does not say."""

    transport: Transport
    enabled: bool | None = None
    start_timeout: float | None = None
    call_timeout: float | None = None


def read_server(fields: Fields, folders: Folders) -> Found | None:
    """Return the server; None when its transport cannot be told, and a problem says why."""
    kind = _kind(fields)
    if kind is None:
        return None
    transport = _transport(fields, folders, kind)
    _tell_of_the_rest(fields, kind)
    start = fields.seconds("startup_timeout_sec")
    return Found(
        transport=transport,
        enabled=_enabled(fields),
        start_timeout=start or fields.seconds("startup_timeout_ms", 0.001),
        call_timeout=fields.seconds("tool_timeout_sec"),
    )


def _transport(fields: Fields, folders: Folders, kind: str) -> Transport:
    if kind == "stdio":
        return _stdio(fields, folders)
    if kind == "grpc":
        key = next(key for key in URL_KEYS if fields.given(key))
        return read_grpc(fields, folders, key, read_headers(fields))
    return _http(fields, sse=kind == "sse")


def _kind(fields: Fields) -> str | None:
    """Return `stdio`, `http`, `sse` or `grpc`."""
    named = "type" if fields.given("type") else "transport"
    said = fields.text(named).lower()
    by_url = [key for key in URL_KEYS if fields.given(key)]
    if said and said not in _KINDS:
        fields.problem("not a transport that is spoken here; use stdio, http, sse or grpc", named)
        return None
    if fields.given("command") and by_url:
        fields.problem("both a command and a URL; keep one of them", by_url[0])
        return None
    if not fields.given("command") and not by_url:
        hidden = fields.table.get("source") == "extension" or fields.given("settings")
        fields.problem(
            "an extension of the editor holds its command; register it with: "
            "thoughtgate server add, or leave it out with --only"
            if hidden
            else "neither a command nor a URL"
        )
        return None
    if len(by_url) > 1:
        fields.problem(f"given as {by_url[0]} too; keep one of them", by_url[1])
        return None
    kind = _KINDS[said] if said else ""
    if kind and (kind == "stdio") != fields.given("command"):
        needed = "a command" if kind == "stdio" else "a URL"
        fields.problem(f"{said} needs {needed}", named)
        return None
    return kind or ("stdio" if not by_url else _kind_of_url(fields, by_url[0]))


def _kind_of_url(fields: Fields, key: str) -> str:
    if is_grpc(str(fields.table[key])):
        return "grpc"
    if key == "httpUrl" or not is_sse_url(str(fields.table[key])):
        return "http"
    fields.note("ends in /sse: taken for the older HTTP+SSE transport; a type would say", key)
    return "sse"


def _stdio(fields: Fields, folders: Folders) -> StdioTransport:
    argv, env = _command(fields)
    _check_program(fields, argv, folders)
    cwd = fields.text("cwd")
    variables = {**_env_file(fields, folders), **_passed_on(fields), **env}
    for name in variables:
        if not name or "=" in name:
            fields.problem("not a name that a variable can have", "env", name)
    if any(map(_is_secret, argv[1:])):
        fields.note("may hold a secret, and a command is stored as it is; use env", "args")
    return StdioTransport(
        argv=(folders.expanded(argv[0]), *argv[1:]) if argv else (),
        env=variables,
        cwd=str(folders.absolute(cwd)),
    )


def _is_secret(part: str) -> bool:
    """Say whether an argument names a secret, or has the shape of one."""
    named = part.startswith("-") and is_secret_name(part.partition("=")[0])
    return named or redact(part) != part


def _command(fields: Fields) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the command and its environment, in each shape that clients know."""
    command = fields.table["command"]
    if isinstance(command, Mapping):  # Zed, until 2025
        inner = fields.inside("command")
        argv = (inner.text("path"), *inner.texts("args"))
        return argv, {**inner.pairs("env"), **fields.pairs("env")}
    if isinstance(command, list):
        return (*fields.texts("command"), *fields.texts("args")), fields.pairs("env")
    return (fields.text("command"), *fields.texts("args")), fields.pairs("env")


def _check_program(fields: Fields, argv: tuple[str, ...], folders: Folders) -> None:
    """Refuse a whole command line in one text: no shell will take it apart."""
    if fields.problems or fields.to_be_asked("command"):
        return
    if not argv or not argv[0].strip():
        fields.problem("empty; name the program to start", "command")
        return
    first, *more = argv[0].split()
    if more and len(argv) == 1 and "/" not in first:
        fields.problem("a whole command line; give the program alone, the rest as args", "command")


def _env_file(fields: Fields, folders: Folders) -> dict[str, str]:
    name = fields.text("envFile")
    if not name:
        return {}
    try:
        return dotenv.parse(fields.fill.file(folders.absolute(name)))
    except ConfigError as error:
        fields.problem(error.message, "envFile")
        return {}


def _passed_on(fields: Fields) -> dict[str, str]:
    """Return the variables that a file names to be handed on (Codex); unset ones are left out."""
    found = {}
    names = fields.table.get("env_vars")
    for at, entry in enumerate(names if isinstance(names, list) else ()):
        name = entry.get("name") if isinstance(entry, Mapping) else entry
        if not isinstance(name, str):
            fields.problem("must be the name of a variable", "env_vars", at)
        elif fields.fill.is_set(name):
            found[name] = fields.fill.variable(name)
        else:
            fields.note(f"the variable {name[:80]} is not set; left out", "env_vars", at)
    return found


def _http(fields: Fields, *, sse: bool) -> HttpTransport:
    key = next(key for key in URL_KEYS if fields.given(key))
    before = len(fields.problems)
    url = fields.text(key)
    known = len(fields.problems) == before and not fields.to_be_asked(key)
    if known and not _is_http(url):
        fields.problem("must begin with http:// or https:// and a host", key)
    return HttpTransport(url=url, headers=read_headers(fields), sse=sse)


def _is_http(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return (
        parts.scheme in {"http", "https"} and bool(parts.hostname) and not set(url) & set(" \r\n")
    )


def _enabled(fields: Fields) -> bool | None:
    disabled, enabled = fields.flag("disabled"), fields.flag("enabled")
    if disabled is None:
        return enabled
    if enabled is disabled:
        fields.problem("contradicts enabled; keep one of them", "disabled")
    return not disabled


def _tell_of_the_rest(fields: Fields, kind: str) -> None:
    """Note every key that was not used and may matter."""
    stdio = kind == "stdio"
    used = _OF_BOTH | (_OF_A_COMMAND if stdio else _OF_A_URL)
    used |= GRPC_KEYS if kind == "grpc" else frozenset()
    other = _OF_A_URL if stdio else _OF_A_COMMAND
    for key in fields.table:
        if key in used or key in _HARMLESS:
            continue
        if key in other:
            fields.note("has no use for a " + ("command" if stdio else "URL") + "; left out", key)
        elif key in GRPC_KEYS:
            fields.note("is for a gRPC server; left out", key)
        else:
            fields.note(_LEFT_OUT.get(key) or _unknown(key), key)


def _unknown(key: str) -> str:
    near = get_close_matches(key, _OF_A_COMMAND | _OF_A_URL | _OF_BOTH, n=1)
    return "unknown key; left out" + (f"; did you mean {near[0]}?" if near else "")
