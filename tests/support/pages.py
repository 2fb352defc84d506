"""The pages of the documentation, read as what they are to a reader: links, files and commands.

In a page, a `console` block is run: a line `$ …` is a command, `> …` goes on with it, and every
other line must appear in what the command says, in that order. `…` in such a line stands for any
text. A block after a line that ends in "Save as `NAME`:" is a file that the commands find.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from tests.support.source import ROOT, files, text_of

_FENCE = re.compile(r"^(`{3,})([a-z]*)\s*$")
_NAMED = re.compile(r"\bSave as `([^`]+)`:$")
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Command:
    """A command of a page and the lines that it must say."""

    text: str
    says: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class SavedFile:
    """A file that the reader is told to save."""

    name: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Block:
    """A fenced block: its language, its lines, and the last line of prose before it."""

    language: str
    lines: tuple[str, ...]
    before: str


def pages() -> tuple[Path, ...]:
    """Return every page: those below docs/ and those at the top."""
    return (*files("docs", "examples", suffix=".md"), *sorted(ROOT.glob("*.md")))


def blocks(page: Path) -> list[Block]:
    """Return the fenced blocks of a page, in order."""
    found: list[Block] = []
    before, fence, language, inside = "", "", "", list[str]()
    for line in text_of(page).splitlines():
        match = _FENCE.match(line)
        if not fence and match:
            fence, language, inside = match[1], match[2], []
        elif fence and line == fence:
            found.append(Block(language=language, lines=tuple(inside), before=before))
            fence = ""
        elif fence:
            inside.append(line)
        elif line.strip():
            before = line.strip()
    assert not fence, f"{page}: a block is not closed"
    return found


def acts(page: Path) -> list[Command | SavedFile]:
    """Return what a reader does, in order."""
    found: list[Command | SavedFile] = []
    for block in blocks(page):
        named = _NAMED.search(block.before)
        if block.language == "console":
            found += _commands(block)
        elif named:
            found.append(SavedFile(name=named[1], text="\n".join(block.lines) + "\n"))
    return found


def _commands(block: Block) -> list[Command]:
    found: list[tuple[list[str], list[str]]] = []
    for line in block.lines:
        if line.startswith("$ "):
            found.append(([line[2:]], []))
        elif line.startswith("> ") and found and not found[-1][1]:
            found[-1][0].append(line[2:])
        elif line.strip():
            assert found, f"output without a command: {line}"
            found[-1][1].append(line)
    return [Command(text="\n".join(text), says=tuple(says)) for text, says in found]


def links(page: Path) -> list[str]:
    """Return where a page links to, blocks left out."""
    text = re.sub(r"^(`{3,}).*?^\1$", "", text_of(page), flags=re.MULTILINE | re.DOTALL)
    return _LINK.findall(text)


def anchors(page: Path) -> set[str]:
    """Return the fragments by which the headings of a page are reached."""
    kept = re.compile(r"[^\w\- ]")
    return {
        kept.sub("", title.lower()).replace(" ", "-") for title in _HEADING.findall(text_of(page))
    }
