"""The texts of other clients' files: files of variables, names, bytes."""

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thoughtgate.config.imports import dotenv
from thoughtgate.config.imports.names import name_from_url, proper_name
from thoughtgate.config.imports.places import Place
from thoughtgate.config.texts import LARGEST, Unreadable, settings_of
from thoughtgate.core.errors import ConfigError
from thoughtgate.registry.values import check_name


@pytest.mark.parametrize(
    ("text", "variables"),
    [
        ("A=1\nB = two words \n\n# comment\n", {"A": "1", "B": "two words"}),
        ("export A=1 # why\nB='#1' # why\nC=a#b", {"A": "1", "B": "#1", "C": "a#b"}),
        (r'A="x\ny \"z\" \\"', {"A": 'x\ny "z" \\'}),
        (r"A='x\ny $B'", {"A": r"x\ny $B"}),
        ("A=\nB=''", {"A": "", "B": ""}),
        ("A=x=y&z\r\nA=again\r\n", {"A": "again"}),
        ("A.b-c=1", {"A.b-c": "1"}),
    ],
)
def test_a_file_of_variables_is_read(text: str, variables: dict[str, str]) -> None:
    assert dotenv.parse(text) == variables


@pytest.mark.parametrize("line", ["A", "=1", "1A=1", "A='open", 'A="open', "A='x' y", "A B=1"])
def test_a_line_that_is_no_variable_is_refused_by_its_number(line: str) -> None:
    with pytest.raises(ConfigError) as caught:
        dotenv.parse(f"OK=hush\n{line}")
    assert caught.value.message == "line 2 is not NAME=value"


@pytest.mark.parametrize(
    ("name", "proper"),
    [
        ("github", "github"),
        ("My Server", "my-server"),
        ("@scope/pkg_name", "scope-pkg-name"),
        ("--x--", "x"),
        ("Überblick", "uberblick"),
        ("a" * 50, "a" * 40),
        ("a" * 39 + " b", "a" * 39),
        ("高德地图", "server-1ecb3b"),
        ("", "server-e3b0c4"),
    ],
)
def test_a_name_is_turned_into_one_of_ours(name: str, proper: str) -> None:
    assert proper_name(name) == proper


@given(st.text())
def test_every_name_made_is_one_that_the_registry_takes(name: str) -> None:
    check_name("server", proper_name(name))


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://tools.example/mcp", "tools"),
        ("https://mcp.sentry.dev/mcp", "sentry"),
        ("https://docs.mcp.cloudflare.com/sse", "docs-cloudflare"),
        ("https://api.example.co.uk/", "example-co"),
        ("https://mcp.io", "mcp-io"),
        ("http://localhost:3000/mcp", "localhost-3000"),
        ("http://localhost/mcp", "localhost"),
        ("http://127.0.0.1:8080", "127-0-0-1-8080"),
        ("http://[::1]:8080", "1-8080"),
        ("https://user:hush@Tools.EXAMPLE?key=hush", "tools"),
    ],
)
def test_a_url_names_its_server_by_its_host(url: str, name: str) -> None:
    assert name_from_url(url) == name


@pytest.mark.parametrize("url", ["http://", "https:///mcp", "http://[::1", "http://h:port/"])
def test_a_url_without_a_host_names_nothing(url: str) -> None:
    with pytest.raises(ConfigError):
        name_from_url(url)


@pytest.mark.parametrize(
    "data",
    [
        "é".encode(),
        codecs.BOM_UTF8 + "é".encode(),
        "é".encode("utf-16"),
        codecs.BOM_UTF16_BE + "é".encode("utf-16-be"),
    ],
)
def test_a_byte_order_mark_is_no_part_of_the_text(data: bytes) -> None:
    assert settings_of(data) == "é"


@pytest.mark.parametrize("data", [b"\xff", b"ok \xe9", codecs.BOM_UTF16_LE + b"x"])
def test_bytes_that_are_no_text_are_refused(data: bytes) -> None:
    with pytest.raises(Unreadable):
        settings_of(data)


def test_a_file_has_a_largest_size() -> None:
    with pytest.raises(Unreadable):
        settings_of(b" " * (LARGEST + 1))


@pytest.mark.parametrize(
    ("steps", "pointer", "key"),
    [
        (("a", "b", 0), "/a/b/0", "a.b[0]"),
        (("a/b", "c~d"), "/a~1b/c~0d", '"a/b"."c~d"'),
        (("x.y", "ü"), "/x.y/ü", '"x.y"."ü"'),
        ((), "", ""),
    ],
)
def test_a_place_is_a_pointer_or_a_key(
    steps: tuple[str | int, ...], pointer: str, key: str
) -> None:
    assert str(Place(steps=steps)) == pointer
    assert str(Place(steps=steps, toml=True)) == key
