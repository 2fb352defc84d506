"""Variables in the values of other clients' files, in every spelling that these have.

Never leaves one unfilled in silence. `$NAME` without braces is text to all of them, and to us.
"""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import NoReturn

from thoughtgate.config.imports.folders import OF_A_PROJECT
from thoughtgate.core.errors import ConfigError

_BRACE = re.compile(r"\$\{|\}")
_DEEPEST = 64
"""Variables that may stand inside one another, as defaults do."""

_LONGEST = 2**20
"""Characters of the longest value; no program takes as much."""

_NAME = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?", re.DOTALL)
_OF_AN_EDITOR = {
    "cwd", "execPath", "defaultBuildTask", "file", "fileBasename", "fileBasenameNoExtension",
    "fileDirname", "fileExtname", "fileWorkspaceFolder", "lineNumber", "columnNumber",
    "relativeFile", "relativeFileDirname", "selectedText",
}  # fmt: skip
_EDITOR_PREFIXES = ("config:", "command:", "workspaceFolder:", "extensionInstallFolder:")


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What variables may stand for.

    `read` returns the text of a file, or raises a ConfigError that says why it cannot. `inputs` are
    the answers that are known; `asking` says that somebody may be asked for others.
    """

    environ: Mapping[str, str]
    read: Callable[[Path], str]
    inputs: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    asking: bool = False


class Filler:
    """Fills variables in: of the environment, answers to inputs, and a client's predefined ones.

    `used` are the inputs that it met, `wanted` those of `to_ask` that nobody has answered yet.
    """

    def __init__(
        self,
        around: Surroundings,
        predefined: Mapping[str, str],
        to_ask: Collection[str] = (),
    ) -> None:
        self.wanted: set[str] = set()
        self.used: set[str] = set()
        self._around = around
        self._predefined = predefined
        self._to_ask = to_ask

    def __call__(self, text: str) -> str:
        """Return `text` with its variables filled in; `$${` stands for the text `${` itself.

        Raises:
            ConfigError: One cannot be filled in.
        """
        parts: list[str] = []
        at, size = 0, len(text)
        while (start := text.find("${", at)) >= 0:
            end = _closing(text, start + 2)
            if end < 0:
                break
            if text[at:start].endswith("$"):
                parts.append(text[at : start - 1] + text[start : end + 1])
            else:
                parts.append(text[at:start] + self._value(text[start + 2 : end]))
                size += len(parts[-1])
            if size > _LONGEST:
                raise ConfigError(message=f"becomes longer than {_LONGEST} characters")
            at = end + 1
        return "".join([*parts, text[at:]])

    def variable(self, name: str) -> str:
        """Return a variable of the environment.

        Raises:
            ConfigError: It is not set.
        """
        value = self._around.environ.get(name)
        if value is None:
            raise ConfigError(message=f"the variable {name[:80]} is not set; set it and try again")
        return value

    def is_set(self, name: str) -> bool:
        """Say whether the environment has a variable."""
        return name in self._around.environ

    def file(self, path: Path) -> str:
        """Return the text of a file.

        Raises:
            ConfigError: It cannot be read.
        """
        return self._around.read(path)

    def _value(self, body: str) -> str:
        known = self._predefined
        if body in known:
            return known[body]
        kind, colon, rest = body.partition(":")
        if colon and kind == "input":
            return self._input(rest)
        if colon and kind == "file":
            return self.file(Path(known.get("userHome", "/"), rest.removeprefix("~/"))).strip()
        if colon and kind == "env":
            name, default, otherwise = rest.partition(":-")
            return self._variable(name, otherwise if default else None, "write its value here")
        if known and (body in _OF_AN_EDITOR or body.startswith(_EDITOR_PREFIXES)):
            _fail(body, "is known to the editor only; write what it stands for")
        if known and body in OF_A_PROJECT:
            _fail(body, "is not known for this file; name the project with --workspace FOLDER")
        match = _NAME.fullmatch(body)
        if match is None:
            _fail(body, f"cannot be filled in; write $${{{body[:60]}}} if it is meant as text")
        return self._variable(match[1], match[2], f"write ${{{match[1]}:-default}}")

    def _variable(self, name: str, default: str | None, advice: str) -> str:
        if name in self._around.environ:
            return self._around.environ[name]
        if default is None:
            raise ConfigError(
                message=f"the variable {name[:80]} is not set; set it and try again, or {advice}"
            )
        return self(default)

    def _input(self, id_: str) -> str:
        self.used.add(id_)
        if id_ in self._around.inputs:
            return self._around.inputs[id_]
        if id_ not in self._to_ask:
            raise ConfigError(
                message=f"the input {id_[:60]} has no value; give it with --input {id_[:60]}=VALUE"
            )
        self.wanted.add(id_)
        return ""


def _closing(text: str, at: int) -> int:
    """Return where the brace closes that was opened just before `at`; -1 when nowhere.

    Raises:
        ConfigError: Too many stand inside one another.
    """
    depth = 1
    for match in _BRACE.finditer(text, at):
        depth += 1 if match[0] == "${" else -1
        if depth > _DEEPEST:
            raise ConfigError(message=f"more than {_DEEPEST} variables stand inside one another")
        if depth == 0:
            return match.start()
    return -1


def _fail(body: str, why: str) -> NoReturn:
    raise ConfigError(message=f"${{{body[:60]}}} {why}")
