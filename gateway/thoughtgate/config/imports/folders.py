"""The folders that a file's relative paths and predefined variables mean.

Never looks at the disk: paths in, paths out.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

OF_A_PROJECT = {"workspaceFolder", "workspaceRoot", "workspaceFolderBasename"}
"""Predefined variables that are known only for a file of one project."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Folders:
    """Where relative paths of a file begin, what `~` is, and the project, if there is one."""

    base: Path
    home: Path
    project: Path | None = None

    def absolute(self, path: str) -> Path:
        """Return a path that means the same from anywhere."""
        return self.base / self.expanded(path)

    def expanded(self, path: str) -> str:
        """Return `path` with a leading `~/` filled in."""
        return str(self.home / path[2:]) if path.startswith("~/") else path

    def variables(self) -> Mapping[str, str]:
        """Return the predefined variables that editors share."""
        known = {"userHome": str(self.home), "pathSeparator": os.sep, "/": os.sep}
        if self.project is not None:
            known |= dict.fromkeys(OF_A_PROJECT, str(self.project))
            known["workspaceFolderBasename"] = self.project.name
        return known


def folders_of(file: Path, home: Path) -> Folders:
    """Return the folders of a file, which is named by its absolute path.

    A client's own settings (`~/.cursor/mcp.json`, `~/Library/…`) begin at the user's home. The file
    of a project (`.vscode/mcp.json`, `.mcp.json`) begins at the project's folder, any other file
    where it is.
    """
    below_home = file.relative_to(home).parts[:-1] if file.is_relative_to(home) else ()
    if below_home and (below_home[0].startswith(".") or below_home[0] == "Library"):
        return Folders(base=home, home=home)
    hidden = file.parent.name.startswith(".")
    base = file.parent.parent if hidden else file.parent
    of_a_project = hidden or file.name == ".mcp.json"
    return Folders(base=base, home=home, project=base if of_a_project else None)
