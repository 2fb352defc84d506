"""The files server: reads, lists, searches and writes inside its roots only."""

import base64
import os
from pathlib import Path
from typing import Any

import pytest

from tests.support.tool_servers import ask, data, text
from thoughtgate_servers.files.tools import FileTools
from thoughtgate_servers.sandbox import Sandbox
from thoughtgate_servers.table import Tool


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    (root / "sub").mkdir(parents=True)
    (root / "中文.txt").write_text("第一行\nSecond LINE\n", encoding="utf-8")
    (root / "sub" / "bin").write_bytes(b"\x00\xffline")
    (tmp_path / "secret").write_text("line", encoding="utf-8")
    (root / "link").symlink_to(tmp_path / "secret")
    (root / "up").symlink_to(tmp_path)
    return root


@pytest.fixture
def tools(root: Path) -> tuple[Tool, ...]:
    return FileTools(sandbox=Sandbox([root]), writable=True).table()


async def test_pages_never_cut_a_character(tools: tuple[Tool, ...]) -> None:
    content, offset = "", 0
    while True:
        page = data(await ask(tools, "read_file", path="中文.txt", offset=offset, max_bytes=4))
        content += page["content"]
        if page["next_offset"] is None:
            break
        offset = page["next_offset"]
    assert content == "第一行\nSecond LINE\n"


async def test_bytes_are_read_as_base64_or_replaced(tools: tuple[Tool, ...]) -> None:
    raw = data(await ask(tools, "read_file", path="sub/bin", encoding="base64"))
    assert base64.b64decode(raw["content"]) == b"\x00\xffline"
    shown = data(await ask(tools, "read_file", path="sub/bin"))
    assert (shown["content"], shown["replaced_bytes"]) == ("\x00\ufffdline", 1)
    beyond = data(await ask(tools, "read_file", path="sub/bin", offset=99))
    assert (beyond["content"], beyond["next_offset"]) == ("", None)


@pytest.mark.parametrize("path", ["link", "up/secret", "../secret", "/etc/passwd", "a\0b", "sub"])
async def test_what_is_outside_or_no_file_is_refused(tools: tuple[Tool, ...], path: str) -> None:
    result = await ask(tools, "read_file", path=path)
    assert result.is_error
    assert "line" not in text(result)


@pytest.mark.parametrize("path", ["link", "up/new", "../new", "/tmp/thoughtgate-new", "a\0b"])
async def test_nothing_is_written_outside(root: Path, tools: tuple[Tool, ...], path: str) -> None:
    result = await ask(tools, "write_file", path=path, content="x", overwrite=True)
    assert result.is_error
    assert (root.parent / "secret").read_text(encoding="utf-8") == "line"
    assert sorted(os.listdir(root.parent)) == ["root", "secret"]


async def test_an_offset_that_no_file_has_is_refused_not_a_crash(tools: tuple[Tool, ...]) -> None:
    result = await ask(tools, "read_file", path="中文.txt", offset=10**30)
    assert result.is_error
    assert "/offset: must be at most" in text(result)


async def test_listing_tells_kinds_and_follows_no_link(tools: tuple[Tool, ...]) -> None:
    listed = data(await ask(tools, "list_directory"))
    assert [(e["name"], e["kind"]) for e in listed["entries"]] == [
        ("link", "link"), ("sub", "directory"), ("up", "link"), ("中文.txt", "file"),
    ]  # fmt: skip
    assert (await ask(tools, "list_directory", path="up")).is_error
    assert (await ask(tools, "list_directory", path="中文.txt")).is_error


async def test_listing_pages(tools: tuple[Tool, ...]) -> None:
    first = data(await ask(tools, "list_directory", limit=3))
    rest = data(await ask(tools, "list_directory", limit=3, cursor=first["next_cursor"]))
    assert [e["name"] for e in first["entries"] + rest["entries"]] == [
        "link", "sub", "up", "中文.txt",
    ]  # fmt: skip
    assert rest["next_cursor"] is None
    assert (await ask(tools, "list_directory", path="sub", cursor=first["next_cursor"])).is_error


async def test_writing_is_whole_and_replaces_only_when_asked(
    root: Path, tools: tuple[Tool, ...]
) -> None:
    async def write(**asked: Any) -> Any:
        return await ask(tools, "write_file", path="sub/new.txt", **asked)

    assert data(await write(content="一"))["outcome"] == "created"
    assert data(await write(content="一"))["outcome"] == "unchanged"
    refused = await write(content="二")
    assert refused.is_error
    assert data(await write(content="二", overwrite=True))["outcome"] == "replaced"
    assert sorted(os.listdir(root / "sub")) == ["bin", "new.txt"]
    assert (root / "sub" / "new.txt").read_text(encoding="utf-8") == "二"


async def test_directories_are_made_only_when_asked(root: Path, tools: tuple[Tool, ...]) -> None:
    asked: dict[str, Any] = {"path": "a/b/c.bin", "content": base64.b64encode(b"\x00").decode()}
    assert (await ask(tools, "write_file", **asked)).is_error
    done = await ask(tools, "write_file", **asked, encoding="base64", make_directories=True)
    assert data(done)["size"] == 1
    assert (root / "a" / "b" / "c.bin").read_bytes() == b"\x00"
    assert (await ask(tools, "write_file", path="x", content="%", encoding="base64")).is_error


async def test_searching_finds_names_and_lines(root: Path, tools: tuple[Tool, ...]) -> None:
    names = data(await ask(tools, "search_files", pattern="*.txt"))
    assert [m["path"] for m in names["matches"]] == [str(root / "中文.txt")]
    lines = data(await ask(tools, "search_files", text="line"))
    assert [(m["line"], m["text"]) for m in lines["matches"]] == [(2, "Second LINE")]
    deep = data(await ask(tools, "search_files", pattern="sub/*"))
    assert len(deep["matches"]) == 1
    few = data(await ask(tools, "search_files", limit=1))
    assert (len(few["matches"]), few["complete"]) == (1, False)


def test_a_read_only_server_offers_no_write(root: Path) -> None:
    names = [tool.name for tool in FileTools(sandbox=Sandbox([root]), writable=False).table()]
    assert names == ["read_file", "list_directory", "search_files"]
