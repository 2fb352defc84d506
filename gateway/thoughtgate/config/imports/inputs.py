"""What a file wants to be asked for: VS Code's `inputs`.

Never asks; who does so gets to know what to say and what to hide.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from thoughtgate.config.imports.formats import Document
from thoughtgate.config.imports.places import Place, Remark


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """One question: `options` are the only answers when there are any.

    `asked` is False for what only the editor can find out, by running a command of its own.
    """

    id: str
    description: str
    hidden: bool = False
    default: str | None = None
    options: tuple[str, ...] = ()
    asked: bool = True


def read_inputs(document: Document) -> tuple[dict[str, Input], list[Remark]]:
    """Return the inputs of a document by their ids, and what is wrong with the others."""
    place = Place(steps=(*document.place.steps[:-1], "inputs"), toml=document.place.toml)
    found: dict[str, Input] = {}
    problems = []
    for at, entry in enumerate(document.inputs):
        id_ = entry.get("id") if isinstance(entry, Mapping) else None
        if isinstance(id_, str) and id_ and id_ not in found:
            found[id_] = _input(id_, entry)
            continue
        again = isinstance(id_, str) and id_ in found
        text = "given more than once; keep one of them" if again else "has no id"
        problems.append(Remark(server="", key=str(place.at(at)), text=text))
    return found, problems


def _input(id_: str, entry: Mapping[str, Any]) -> Input:
    default, options = entry.get("default"), entry.get("options")
    return Input(
        id=id_,
        description=str(entry.get("description") or id_),
        hidden=entry.get("password") is True,
        default=default if isinstance(default, str) else None,
        options=tuple(map(_option, options if isinstance(options, list) else ())),
        asked=entry.get("type") != "command",
    )


def _option(option: object) -> str:
    return str(option.get("value", "")) if isinstance(option, Mapping) else str(option)
