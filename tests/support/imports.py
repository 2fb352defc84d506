"""Reads the text of another client's file as `server import` does, without a command line.

Never opens a file: what a text names is in `FILES`.
"""

from collections.abc import Mapping
from pathlib import Path

from thoughtgate.config.imports.folders import folders_of
from thoughtgate.config.imports.formats import AUTO, read_document
from thoughtgate.config.imports.reading import Entry, Import, read_servers
from thoughtgate.config.imports.variables import Surroundings
from thoughtgate.core.errors import ConfigError

HOME = Path("/people/ada")
PROJECT_FILE = "/people/ada/atlas/.vscode/mcp.json"
ENVIRON = {"TOKEN": "t0k-hush", "REGION": "eu"}
FILES = {"/people/ada/atlas/.env": "TOKEN=from-file\nMORE='m'\n", "/people/ada/atlas/bad.env": "x"}


def read(
    text: str,
    *only: str,
    file: str = PROJECT_FILE,
    format_name: str = AUTO,
    inputs: Mapping[str, str] | None = None,
    asking: bool = False,
) -> Import:
    """Return what a file with this text holds."""
    document = read_document(text, format_name=format_name, toml=file.endswith(".toml"))
    around = Surroundings(environ=ENVIRON, read=_file, inputs=inputs or {}, asking=asking)
    return read_servers(document, around, folders_of(Path(file), HOME), only)


def only_one(text: str, *, file: str = PROJECT_FILE, format_name: str = AUTO) -> Entry:
    """Return the one server of a file that has no problems."""
    found = read(text, file=file, format_name=format_name)
    assert found.problems == ()
    (entry,) = found.entries
    return entry


def problems(text: str, *only: str, file: str = PROJECT_FILE) -> list[str]:
    """Return what keeps a file from being imported, as it is shown."""
    return [str(problem) for problem in read(text, *only, file=file).problems]


def _file(path: Path) -> str:
    if str(path) not in FILES:
        raise ConfigError(message="there is no such file")
    return FILES[str(path)]
