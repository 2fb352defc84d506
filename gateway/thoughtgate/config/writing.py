"""A first configuration as text: what was chosen, and every other setting as a comment.

Never writes a file; what it returns is read by our own loader as what was chosen.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args, get_origin

import msgspec
from msgspec import NODEFAULT, Meta
from msgspec.structs import FieldInfo

from thoughtgate.config.settings import (
    DomainSettings,
    GatewaySettings,
    LimitSettings,
    ModelSettings,
    ServerSettings,
)
from thoughtgate.config.toml import value_text

_HEAD = """\
# Configuration of thoughtgate. Lines that begin with `# ` and a key show a default: take the mark
# away to change it. Check the file with `thoughtgate config check`, and everything around it with
# `thoughtgate doctor`. ${NAME} and ${NAME:-default} are filled in from the environment in a
# server's command, env, url, headers and files, and in a model's api_key: secrets are named there,
# not written.
"""

_WHY = {
    "gateway": "Where the gateway listens, and what it keeps. The defaults suit one person on one "
    "machine.",
    "limits": "Bounds that keep one client or server from harming the others. Each refuses clearly "
    "when it is reached.",
    "servers": "Tool servers. The command line registers more of them, with their secrets "
    "encrypted:\n# thoughtgate server add NAME -- COMMAND, or: thoughtgate server import FILE",
    "domains": "Named views of the tools, one endpoint each: fewer tools make better choices.",
    "models": "A model is needed only for tasks that are handed over without a plan.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """What somebody chose for a first configuration.

    `command` starts a first server called `server`; empty for none. `purpose` becomes the
    instructions of the domain; `port` is None where only pipes are used; `traces` is the base URL
    of an OTLP endpoint, empty for none.
    """

    domain: str = "default"
    purpose: str = ""
    server: str = ""
    command: tuple[str, ...] = ()
    capture: bool = False
    traces: str = ""
    port: int | None = None


def written(choices: Choices) -> str:
    """Return the text of a configuration that says what was chosen."""
    gateway: dict[str, object] = {}
    if choices.port is not None:
        gateway["port"] = choices.port
    if choices.capture:
        gateway["capture"] = True
    if choices.traces:
        gateway["traces"] = choices.traces
    parts = [
        _HEAD.rstrip("\n"),
        *_table("gateway", "gateway", GatewaySettings, gateway),
        *_table("limits", "limits", LimitSettings, {}),
        *_server(choices),
        *_domain(choices),
        *_example("models", "models.local", ModelSettings, _MODEL),
    ]
    return "\n".join(parts) + "\n"


_MODEL = {"url": "http://127.0.0.1:8080/v1", "model": "name-that-the-endpoint-knows"}


def _server(choices: Choices) -> Iterator[str]:
    if choices.server:
        values: Mapping[str, object] = {"command": choices.command, "trusted": True}
        yield from _table("servers", f"servers.{choices.server}", ServerSettings, values)
    else:
        yield from _example("servers", "servers.files", ServerSettings, _FILES)


_ALL_TOOLS = 100
"""The budget of a domain that shows everything: enough not to be warned of."""

_FILES = {"command": ("thoughtgate-files", "--root", "/a/folder"), "trusted": True}


def _domain(choices: Choices) -> Iterator[str]:
    values: dict[str, object] = {}
    if choices.purpose:
        values["instructions"] = choices.purpose
    if choices.domain == "default":
        values["max_tools"] = _ALL_TOOLS
    if choices.domain == "default" and not choices.purpose:
        yield from _example(
            "domains", "domains.notes", DomainSettings, {"include": ["files/read_*"]}
        )
    else:
        yield from _table("domains", f"domains.{choices.domain}", DomainSettings, values)


def _table(
    about: str, name: str, kind: type[msgspec.Struct], values: Mapping[str, object]
) -> Iterator[str]:
    yield ""
    yield f"# {_WHY[about]}"
    yield f"[{name}]"
    yield from _keys(kind, values)


def _example(
    about: str, name: str, kind: type[msgspec.Struct], values: Mapping[str, object]
) -> Iterator[str]:
    """Yield a table that is a comment as a whole."""
    for line in _table(about, name, kind, values):
        yield f"# {line}" if line and not line.startswith("#") else line


def _keys(kind: type[msgspec.Struct], values: Mapping[str, object]) -> Iterator[str]:
    """Yield each key with its line of why; those not in `values` as comments with their default."""
    for field in msgspec.structs.fields(kind):
        if _is_table(field.type):
            continue
        why, key = _description(field.type), field.encode_name
        if key in values:
            yield from (f"# {why}", f"{key} = {value_text(values[key])}")
        elif field.default is None:
            yield from (
                f"# {why} Not set by default.",
                f"# {key} = {value_text(_sample(field.type))}",
            )
        else:
            yield from (f"# {why}", f"# {key} = {value_text(_default(field))}")


def _default(field: FieldInfo) -> object:
    return field.default if field.default is not NODEFAULT else field.default_factory()


def _is_table(kind: Any) -> bool:
    """Say whether a key is a table of its own, which stands below with a heading."""
    bare = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    if get_origin(bare) is not dict:
        return False
    value = get_args(bare)[1]
    return isinstance(value, type) and issubclass(value, msgspec.Struct)


def _description(kind: Any) -> str:
    metas = [meta for meta in getattr(kind, "__metadata__", ()) if isinstance(meta, Meta)]
    return next((meta.description for meta in metas if meta.description), "")


def _sample(kind: Any) -> object:
    """Return a value that a key without a default takes."""
    choices = tuple(_within(kind))
    for one in choices:
        if get_origin(one) is Literal:
            return get_args(one)[0]
    return 10 if int in choices else "a text"


def _within(kind: Any) -> Iterator[Any]:
    """Yield a type and all that it is made of, however deep that stands."""
    yield kind
    for part in get_args(kind) if get_origin(kind) is not Literal else ():
        yield from _within(part)
