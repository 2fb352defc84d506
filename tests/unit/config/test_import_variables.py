"""Every spelling of variables: filled in, or refused with what to do."""

from pathlib import Path

import pytest

from thoughtgate.config.imports.folders import Folders, folders_of
from thoughtgate.config.imports.variables import Filler, Surroundings
from thoughtgate.core.errors import ConfigError

HOME = Path("/people/ada")
PROJECT = Folders(base=HOME / "atlas", home=HOME, project=HOME / "atlas")
NO_PROJECT = Folders(base=HOME, home=HOME)
ENVIRON = {"TOKEN": "t0k", "EMPTY": "", "Program(x86)": "p", "DOLLAR": "${TOKEN}"}


def read(path: Path) -> str:
    if path.name != "key":
        raise ConfigError(message="there is no such file")
    return f"<{path.parent}>\n"


def filler(folders: Folders | None = PROJECT, *, to_ask: tuple[str, ...] = ()) -> Filler:
    around = Surroundings(environ=ENVIRON, read=read, inputs={"id": "${TOKEN}"})
    return Filler(around, folders.variables() if folders else {}, to_ask)


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("plain", "plain"),
        ("a ${TOKEN} b", "a t0k b"),
        ("${TOKEN}${TOKEN}", "t0kt0k"),
        ("${env:TOKEN}", "t0k"),
        ("${env:Program(x86)}", "p"),
        ("${EMPTY}", ""),
        ("${EMPTY:-x}", ""),
        ("${TOKEN:-x}", "t0k"),
        ("${NONE:-x y:-z}", "x y:-z"),
        ("${NONE:-}", ""),
        ("${env:NONE:-x}", "x"),
        ("${NONE:-${TOKEN}}!", "t0k!"),
        ("${NONE:-${ALSO:-${env:TOKEN}}}", "t0k"),
        ("${NONE:-{}}", "{}"),
        ("$TOKEN $$TOKEN $(TOKEN) {TOKEN}", "$TOKEN $$TOKEN $(TOKEN) {TOKEN}"),
        ("${TOKEN", "${TOKEN"),
        ("$${TOKEN} $${not one at all}", "${TOKEN} ${not one at all}"),
        ("${DOLLAR}", "${TOKEN}"),
        ("${input:id}", "${TOKEN}"),
        ("${userHome}${/}${pathSeparator}", "/people/ada//"),
        ("${workspaceFolder}/x ${workspaceFolderBasename}", "/people/ada/atlas/x atlas"),
        ("${workspaceRoot}", "/people/ada/atlas"),
        ("${file:/run/key}", "</run>"),
        ("${file:~/key}", "</people/ada>"),
    ],
)
def test_a_variable_is_filled_in_once(text: str, filled: str) -> None:
    assert filler()(text) == filled


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "${NONE}",
            "the variable NONE is not set; set it and try again, or write ${NONE:-default}",
        ),
        ("${env:NONE}", "the variable NONE is not set; "),
        ("${NONE:-${ALSO}}", "the variable ALSO is not set; "),
        ("${input:other}", "the input other has no value; give it with --input other=VALUE"),
        ("${file:/run/none}", "there is no such file"),
        ("${config:a.b}", "${config:a.b} is known to the editor only; "),
        ("${command:pick}", "${command:pick} is known to the editor only; "),
        ("${workspaceFolder:api}", "${workspaceFolder:api} is known to the editor only; "),
        ("${fileDirname}", "${fileDirname} is known to the editor only; "),
        ("${a-b}", "${a-b} cannot be filled in; write $${a-b} if it is meant as text"),
        ("${}", "${} cannot be filled in; "),
        ("${#list[@]}", "cannot be filled in; "),
    ],
)
def test_a_variable_that_cannot_be_filled_in_is_an_error_that_says_what_to_do(
    text: str, said: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        filler()(text)
    assert said in caught.value.message
    assert "t0k" not in caught.value.message


def test_a_project_that_is_not_known_can_be_named() -> None:
    with pytest.raises(ConfigError) as caught:
        filler(NO_PROJECT)("${workspaceFolder}")
    assert "--workspace FOLDER" in caught.value.message


def test_a_client_that_knows_no_predefined_names_takes_them_from_the_environment() -> None:
    with pytest.raises(ConfigError) as caught:
        filler(None)("${userHome}")
    assert caught.value.message.startswith("the variable userHome is not set")


def test_inputs_that_somebody_can_be_asked_for_are_gathered() -> None:
    fill = filler(to_ask=("a", "b"))
    assert fill("x${input:a}y${input:id}") == "xy${TOKEN}"
    assert (fill.wanted, fill.used) == ({"a"}, {"a", "id"})


def test_a_default_without_end_is_no_endless_work() -> None:
    deep = "${A:-" * 64 + "x" + "}" * 64
    assert filler()(deep) == "x"
    with pytest.raises(ConfigError, match="inside one another"):
        filler()("${A:-" + deep + "}")


@pytest.mark.parametrize(
    ("file", "base", "project"),
    [
        ("/people/ada/.cursor/mcp.json", "/people/ada", None),
        ("/people/ada/.codeium/windsurf/mcp_config.json", "/people/ada", None),
        ("/people/ada/.config/zed/settings.json", "/people/ada", None),
        ("/people/ada/Library/Application Support/Claude/config.json", "/people/ada", None),
        ("/people/ada/.claude.json", "/people/ada", None),
        ("/people/ada/atlas/.vscode/mcp.json", "/people/ada/atlas", "/people/ada/atlas"),
        ("/people/ada/atlas/.mcp.json", "/people/ada/atlas", "/people/ada/atlas"),
        ("/srv/api/.cursor/mcp.json", "/srv/api", "/srv/api"),
        ("/people/ada/atlas/servers.json", "/people/ada/atlas", None),
    ],
)
def test_a_file_knows_where_it_belongs(file: str, base: str, project: str | None) -> None:
    found = folders_of(Path(file), HOME)
    assert (found.base, found.project) == (Path(base), Path(project) if project else None)
    assert found.absolute("x") == Path(base, "x")
    assert found.absolute("~/x") == HOME / "x"
    assert found.absolute("/x") == Path("/x")
