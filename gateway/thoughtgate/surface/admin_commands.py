"""Commands and names of files never come over the network, however they are spelled.

Never decides what a server is: a body that speaks of a process is refused before it is read.
"""

import re

from thoughtgate.core.errors import Refused
from thoughtgate.core.json import JsonValue

_SPEAKS_OF_A_PROCESS = frozenset({
    "args", "argv", "arguments", "binary", "cmd", "command", "commands", "cwd", "dir", "entrypoint",
    "env", "envfile", "environ", "environment", "exec", "executable", "process", "program", "run",
    "script", "shell", "stdio", "workdir", "workingdir", "workingdirectory",
})  # fmt: skip
_NAMES_A_FILE = frozenset({
    "ca", "cafile", "cert", "certfile", "descriptorset", "keyfile", "tlsca", "tlscert", "tlskey",
})  # fmt: skip
_KINDS = frozenset({"kind", "transport", "type"})
_PROGRAM_URL = re.compile(
    r"\s*(stdio|file|exec|cmd|command|npx|uvx|docker|unix)\s*:", re.IGNORECASE
)
_FILLING = re.compile(r"[\s_.-]+")


def refuse_commands(body: JsonValue) -> None:
    """Refuse a server that is a command, or names a file, at any depth and in any spelling.

    Raises:
        Refused: It does.
    """
    if isinstance(body, list):
        for item in body:
            refuse_commands(item)
    elif isinstance(body, dict):
        for key, value in body.items():
            _refuse_entry(_FILLING.sub("", key).casefold(), value)


def refusal_of_command() -> Refused:
    """Return the refusal of anything that would start or change a process."""
    return Refused(
        message="a server that is a command cannot be registered or changed over the network; "
        "use the local command line"
    )


def refusal_of_file() -> Refused:
    """Return the refusal to let anybody far away choose what the gateway reads on its machine."""
    return Refused(
        message="a file on the gateway's machine cannot be named over the network; "
        "use the local command line"
    )


def _refuse_entry(key: str, value: JsonValue) -> None:
    if key in _SPEAKS_OF_A_PROCESS:
        raise refusal_of_command()
    if key in _NAMES_A_FILE:
        raise refusal_of_file()
    if isinstance(value, str):
        stdio = key in _KINDS and "stdio" in value.casefold()
        if stdio or (key == "url" and _PROGRAM_URL.match(value)):
            raise refusal_of_command()
    elif key != "headers":  # their names are anybody's
        refuse_commands(value)
