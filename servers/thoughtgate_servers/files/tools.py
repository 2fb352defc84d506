"""The four tools of the files server: read, list, write, search, all inside the sandbox.

Never opens a path that the sandbox did not walk.
"""

import asyncio
import base64
import binascii
import codecs
import fnmatch
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from thoughtgate_servers import cursors, times
from thoughtgate_servers.files import schemas
from thoughtgate_servers.sandbox import Place, Sandbox, speakable
from thoughtgate_servers.stepwise import stepwise
from thoughtgate_servers.table import Effect, Reply, Request, Tool, ToolFailed
from thoughtgate_servers.writing import make_directories, write_whole

MAX_SEEN = 200_000
_SEARCHED = 10 * 1024 * 1024
"""Files larger than this are not searched for text."""

_BINARY_LOOK = 8_192
_LINE = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class FileTools:
    """The tools over one sandbox; `writable` offers write_file too."""

    sandbox: Sandbox
    writable: bool

    def table(self) -> tuple[Tool, ...]:
        """Return the rows of the server's table."""
        rows = (
            Tool(
                name="read_file",
                title="Read a file",
                description="Read a file, a page of bytes at a time; as text (broken bytes "
                "replaced and counted) or base64.",
                input_schema=schemas.READ_INPUT,
                output_schema=schemas.READ_OUTPUT,
                run=self.read,
            ),
            Tool(
                name="list_directory",
                title="List a directory",
                description="List one directory: names, kinds, sizes, times; sorted, in pages.",
                input_schema=schemas.LIST_INPUT,
                output_schema=schemas.LIST_OUTPUT,
                run=self.entries,
            ),
            Tool(
                name="search_files",
                title="Search files",
                description="Find files below a directory by name pattern, and by a text that "
                "they hold.",
                input_schema=schemas.SEARCH_INPUT,
                output_schema=schemas.SEARCH_OUTPUT,
                run=self.search,
            ),
        )
        write = Tool(
            name="write_file",
            title="Write a file",
            description="Write a whole file, or nothing when it fails. A file of other content is "
            "replaced only with overwrite; the same call again changes nothing.",
            input_schema=schemas.WRITE_INPUT,
            output_schema=schemas.WRITE_OUTPUT,
            run=self.write,
            effect=Effect.IDEMPOTENT,
            destructive=True,
        )
        return (*rows, write) if self.writable else rows

    async def read(self, request: Request) -> Reply:
        """Read a page of a file."""
        asked = request.arguments
        place = self.sandbox.place(asked["path"])
        offset, room = asked.get("offset", 0), asked.get("max_bytes", 100_000)
        size, data = await asyncio.to_thread(self._read, place, offset, room)
        encoding = asked.get("encoding", "utf-8")
        if encoding == "base64":
            content, replaced = base64.b64encode(data).decode(), 0
        else:
            data = _whole_characters(data, at_end=offset + len(data) >= size)
            content = data.decode(errors="replace")
            replaced = content.count("\ufffd") - data.count(b"\xef\xbf\xbd")
        end = offset + len(data)
        structured = {
            "path": str(place.path),
            "size": size,
            "offset": offset,
            "content": content,
            "encoding": encoding,
            "replaced_bytes": replaced,
            "next_offset": end if end < size and data else None,
        }
        more = f"\n(goes on at offset {end} of {size})" if structured["next_offset"] else ""
        return Reply(text=content + more, structured=structured)

    async def entries(self, request: Request) -> Reply:
        """List one directory."""
        asked = request.arguments
        given = asked.get("path", str(self.sandbox.roots[0]))
        place = self.sandbox.place(given)
        after = cursors.decode(asked.get("cursor"), given)
        entries, unspeakable = await asyncio.to_thread(self._list, place)
        rest = [entry for entry in entries if entry["name"] > after]
        page = rest[: asked.get("limit", 200)]
        more = cursors.encode(page[-1]["name"], given) if len(rest) > len(page) else None
        structured = {
            "path": str(place.path),
            "entries": page,
            "total": len(entries),
            "unspeakable": unspeakable,
            "next_cursor": more,
        }
        lines = [f"{e['kind']:<9} {e['size']:>12}  {e['modified']}  {e['name']}" for e in page]
        tail = "\n(more: ask again with next_cursor)" if more else ""
        return Reply(text="\n".join(lines) + tail or "(empty)", structured=structured)

    async def write(self, request: Request) -> Reply:
        """Write a file."""
        asked = request.arguments
        place = self.sandbox.place(asked["path"])
        data = _data(asked)
        if not place.names:
            raise ToolFailed(message="this is a directory, not a file")

        def put() -> str:
            if asked.get("make_directories", False):
                make_directories(self.sandbox, Place(root=place.root, names=place.names[:-1]))
            overwrite = asked.get("overwrite", False)
            return write_whole(self.sandbox, place, data, overwrite=overwrite).value

        outcome = await asyncio.to_thread(put)
        structured = {"path": str(place.path), "size": len(data), "outcome": outcome}
        return Reply(text=f"{outcome} {place.path} ({len(data)} bytes)", structured=structured)

    async def search(self, request: Request) -> Reply:
        """Search below a directory."""
        asked = request.arguments
        place = self.sandbox.place(asked.get("path", str(self.sandbox.roots[0])))
        search = _Search(asked)

        async def on_step(seen: int) -> None:
            await request.progress(seen, None, f"{seen} files looked at")

        await stepwise(search.run(self.sandbox, place), on_step)
        structured = {"matches": search.matches, "complete": search.complete}
        lines = [
            m["path"] + (f":{m['line']}: {m['text']}" if m["line"] else "") for m in search.matches
        ]
        tail = "" if search.complete else "\n(there may be more)"
        return Reply(text="\n".join(lines) + tail or "nothing found", structured=structured)

    def _read(self, place: Place, offset: int, room: int) -> tuple[int, bytes]:
        with os.fdopen(self.sandbox.open_file(place), "rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            stream.seek(offset)
            return size, stream.read(room)

    def _list(self, place: Place) -> tuple[list[dict[str, Any]], int]:
        entries: list[dict[str, Any]] = []
        unspeakable = 0
        with self.sandbox.directory(place) as directory:
            for name in os.listdir(directory):
                if not speakable(name):
                    unspeakable += 1
                    continue
                try:
                    status = os.stat(name, dir_fd=directory, follow_symlinks=False)
                except FileNotFoundError:
                    # it went away between the two looks
                    continue
                entries.append({
                    "name": name,
                    "kind": _kind(status.st_mode),
                    "size": status.st_size,
                    "modified": times.shown(status.st_mtime),
                })
        entries.sort(key=lambda entry: entry["name"])
        return entries, unspeakable


class _Search:
    """A search under way."""

    def __init__(self, asked: Mapping[str, Any]) -> None:
        self._pattern: str = asked.get("pattern", "*")
        self._text: str = asked.get("text", "").casefold()
        self._limit: int = asked.get("limit", 100)
        self.matches: list[dict[str, Any]] = []
        self.complete = True
        self._seen = 0

    def run(self, sandbox: Sandbox, place: Place) -> Iterator[int]:
        """Look through `place`, yielding now and then."""
        with sandbox.directory(place) as root:
            for below, folders, names, directory in os.fwalk(".", dir_fd=root):
                folders.sort()
                for name in sorted(names):
                    self._seen += 1
                    if self._seen > MAX_SEEN or len(self.matches) >= self._limit:
                        self.complete = False
                        return
                    if self._seen % 100 == 0:
                        yield self._seen
                    relative = os.path.normpath(os.path.join(below, name))
                    self._look(place, relative, name, directory)

    def _look(self, place: Place, relative: str, name: str, directory: int) -> None:
        subject = relative if "/" in self._pattern else name
        if not fnmatch.fnmatchcase(subject, self._pattern) or not speakable(relative):
            return
        path = str(place.path / relative)
        if self._text:
            self._inside(path, name, directory)
        elif _is_file(name, directory):
            self.matches.append({"path": path, "line": None, "text": ""})

    def _inside(self, path: str, name: str, directory: int) -> None:
        try:
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            descriptor = os.open(name, flags, dir_fd=directory)
        except OSError:
            return
        with os.fdopen(descriptor, "rb") as stream:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or status.st_size > _SEARCHED:
                return
            if b"\0" in stream.read(_BINARY_LOOK):
                return
            stream.seek(0)
            for number, raw in enumerate(stream, 1):
                line = raw.decode(errors="replace").rstrip("\r\n")
                if self._text in line.casefold():
                    found = {"path": path, "line": number, "text": line[:_LINE]}
                    self.matches.append(found)
                    if len(self.matches) >= self._limit:
                        return


def _whole_characters(data: bytes, *, at_end: bool) -> bytes:
    """Return `data` without a character that the page's end cuts in two."""
    if at_end:
        return data
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    decoder.decode(data)
    kept, _ = decoder.getstate()
    return data[: len(data) - len(kept)] or data


def _data(asked: Mapping[str, Any]) -> bytes:
    content: str = asked["content"]
    if asked.get("encoding", "utf-8") == "base64":
        try:
            data = base64.b64decode(content, validate=True)
        except (binascii.Error, ValueError):
            raise ToolFailed(message="content is not base64") from None
    else:
        data = content.encode(errors="replace")
    if len(data) > schemas.MAX_WRITE:
        raise ToolFailed(message=f"content is larger than {schemas.MAX_WRITE} bytes")
    return data


def _kind(mode: int) -> str:
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "directory"
    return "link" if stat.S_ISLNK(mode) else "other"


def _is_file(name: str, directory: int) -> bool:
    try:
        return stat.S_ISREG(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode)
    except OSError:
        return False
