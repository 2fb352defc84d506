"""What the pages say equals what the code does: links, lists, names and numbers."""

import re
from pathlib import Path

import msgspec
import pytest
from click import Command, Group, Option

from tests.support.pages import anchors, blocks, links, pages
from tests.support.source import ROOT, files, name_of, text_of
from thoughtgate.app.doctor.examining import CHECKS, LATER
from thoughtgate.app.doctor.findings import KINDS
from thoughtgate.cli.exits import Exit
from thoughtgate.cli.root import cli
from thoughtgate.config.settings import (
    DomainSettings,
    DressSettings,
    GatewaySettings,
    LimitSettings,
    ModelSettings,
    ServerSettings,
    Settings,
    ToolSettings,
)
from thoughtgate.core import errors
from thoughtgate.core.json import JsonObject
from thoughtgate.engines.contract import Limits, StopReason
from thoughtgate.engines.plan import MAX_TEXT, plan_from_json
from thoughtgate.runs.budget import BudgetLimits
from thoughtgate.schema import explain, graph, growth, lint
from thoughtgate.schema.dialects import DIALECTS
from thoughtgate.telemetry import environment
from thoughtgate.wire import handshake, strict

DOCS = ROOT / "docs"
INDEX = DOCS / "README.md"
STRUCTS = (
    Settings,
    GatewaySettings,
    LimitSettings,
    ServerSettings,
    ToolSettings,
    DomainSettings,
    DressSettings,
    ModelSettings,
)


def said(page: str) -> str:
    return " ".join(text_of(ROOT / page).split())


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_every_link_leads_somewhere(page: Path) -> None:
    dead = []
    for link in links(page):
        if link.startswith(("http://", "https://")):
            continue
        target, _, fragment = link.partition("#")
        file = (page.parent / target).resolve() if target else page
        if not file.exists() or (fragment and fragment not in anchors(file)):
            dead.append(link)
    assert dead == []


def test_the_index_lists_every_page_and_no_other() -> None:
    listed = {(DOCS / link).resolve() for link in links(INDEX)}
    here = {page for page in files("docs", suffix=".md") if page != INDEX}
    decisions = {page for page in here if page.parent.name == "decisions"}
    assert listed - {ROOT / "ARCHITECTURE.md", DOCS / "decisions"} == here - decisions
    assert DOCS / "decisions" in listed


def test_the_table_of_rooms_names_every_room_and_no_other() -> None:
    rows = [line.split("|")[0] for line in text_of(ROOT / "ARCHITECTURE.md").split("\n| ")[2:]]
    named = {name.rstrip("/") for row in rows for name in re.findall(r"`([a-z./]+)`", row)}
    source = ROOT / "gateway" / "thoughtgate"
    rooms = {one.parent.name for one in source.glob("*/__init__.py")}
    modules = {one.name for one in source.glob("*.py") if not one.name.startswith("__")}
    assert named == rooms | modules


def test_the_readme_has_the_two_commands_and_no_third() -> None:
    [block] = [block for block in blocks(ROOT / "README.md") if block.language == "sh"]
    assert [line.split("#")[0].strip() for line in block.lines] == ["make demo", "make check"]


def test_every_flag_of_every_command_stands_in_the_reference() -> None:
    page = text_of(DOCS / "reference" / "command-line.md")
    missing = []
    todo: list[tuple[tuple[str, ...], Command]] = [(("thoughtgate",), cli)]
    for path, command in todo:
        _, found, section = page.partition(f"## {' '.join(path)}\n")
        section = section.partition("\n## ")[0] if found else ""
        flags = [flag for one in command.params if isinstance(one, Option) for flag in one.opts]
        missing += [(path, flag) for flag in flags if flag not in section]
        if isinstance(command, Group):
            todo += [((*path, name), one) for name, one in command.commands.items()]
    assert missing == []
    assert len(todo) > 25


def test_every_exit_code_is_told() -> None:
    page = text_of(DOCS / "reference" / "command-line.md")
    told = {
        int(number)
        for number in re.findall(r"\b(\d+) [a-z]", page.partition("Exit codes:")[2][:400])
    }
    assert {code.value for code in Exit} - {Exit.INTERRUPTED} <= told


def test_every_setting_has_a_description_and_a_row() -> None:
    page = text_of(DOCS / "reference" / "configuration.md")
    for struct in STRUCTS:
        for field in msgspec.structs.fields(struct):
            section = field.name in {"gateway", "limits", "servers", "domains", "models", "tools"}
            row = re.search(rf"^\| `{field.name}` \| .+ \| .+ \| (.*) \|$", page, re.MULTILINE)
            assert section or (row and row[1]), f"{struct.__name__}.{field.name}"


def test_every_error_code_is_explained_and_no_other() -> None:
    codes = {
        kind.code
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, errors.GateError)
    }
    listed = re.findall(r"^\| `([a-z_]+)` \|", text_of(DOCS / "reference" / "errors.md"), re.M)
    assert sorted(listed) == sorted(codes)
    store = re.findall(r"^\| `(store_\w+)` \|", text_of(DOCS / "how-to" / "registry.md"), re.M)
    assert set(store) == {code for code in codes if code.startswith("store_")}


def test_every_way_in_which_a_run_ends_is_explained() -> None:
    page = text_of(DOCS / "explanation" / "react.md")
    listed = set(re.findall(r"^\| `([a-z_]+)` \|", page, re.MULTILINE))
    assert {reason.value for reason in StopReason} - {"no_candidates"} == listed


def test_every_variable_of_the_exporter_is_listed() -> None:
    read = set(re.findall(r"OTEL_[A-Z_]+[A-Z]", text_of(Path(environment.__file__))))
    listed = text_of(DOCS / "how-to" / "traces-and-audit.md")
    parts = {"OTEL_EXPORTER_OTLP", "OTEL_EXPORTER_OTLP_TRACES"}
    missing = {
        name for name in read - parts if name not in listed.replace("OTLP_TRACES_…", "OTLP_TRACES")
    }
    assert missing - {"OTEL_EXPORTER_OTLP_TRACES_TIMEOUT"} == set()


def test_every_key_of_a_plan_is_listed_and_no_other() -> None:
    page = text_of(DOCS / "reference" / "plans.md")
    plan, step = (
        {*re.findall(r"^\| `(\w+)` \|", part, re.MULTILINE)}
        for part in re.split(r"^## A step$", page, flags=re.MULTILINE)
    )
    assert plan == {"steps", "goal", "inputs", "answer", "answer_check"}
    assert step == {"id", "goal", "tool", "depends_on", "arguments", "each", "check"}
    whole = {**dict.fromkeys(plan), "steps": [{**dict.fromkeys(step), "id": "a"}], "other": 1}
    assert _reasons(whole) == ["unknown key other"]


def _reasons(plan: JsonObject) -> list[str]:
    """Return what is wrong with a plan; None stands for a key that is known and not given."""
    return list(plan_from_json(plan).faults)


NUMBERS = [
    ("docs/explanation/validation.md", f"{lint.MAX_BYTES // 1024} kB"),
    ("docs/explanation/validation.md", f"{lint.MAX_DEPTH} levels deep"),
    ("docs/explanation/validation.md", f"{graph.MAX_SUBSCHEMAS:,} subschemas"),
    ("docs/explanation/validation.md", f"{growth.MAX_PATHS:,} paths"),
    ("docs/explanation/validation.md", f"{strict.MAX_REQUEST // 2**20} MiB"),
    ("docs/explanation/validation.md", f"{strict.MAX_RESULT // 2**20} MiB"),
    ("docs/explanation/validation.md", {10: "At most ten problems"}[explain.MAX_PROBLEMS]),
    ("docs/how-to/hand-over-a-task.md", f"{Limits().max_steps} steps"),
    ("docs/how-to/hand-over-a-task.md", f"{Limits().max_retries} extra attempts"),
    ("docs/how-to/hand-over-a-task.md", f"ask a model {BudgetLimits().model_calls} times"),
    ("docs/how-to/hand-over-a-task.md", f"call tools {BudgetLimits().tool_calls} times"),
    ("docs/reference/plans.md", f"at most `max_steps` ({Limits().max_steps})"),
    ("docs/reference/plans.md", {4: "four at most"}[Limits().max_parallel]),
    ("docs/reference/plans.md", f"{MAX_TEXT:,} characters"),
    ("docs/how-to/connect-a-client.md", f"`{handshake.VERSIONS[0]}` to `{handshake.LATEST}`"),
]


@pytest.mark.parametrize(("page", "number"), NUMBERS)
def test_a_number_on_a_page_is_the_one_in_the_code(page: str, number: str) -> None:
    assert number in said(page)


def test_the_dialects_that_are_named_are_those_that_are_spoken() -> None:
    named = "drafts 4, 6, 7 and 2019-09 are honoured"
    assert {one.name for one in DIALECTS} == {
        "draft4", "draft6", "draft7", "draft2019-09", "draft2020-12",
    }  # fmt: skip
    assert named in said("docs/explanation/validation.md")


def test_every_finding_of_the_doctor_is_explained_and_no_other() -> None:
    page = text_of(DOCS / "how-to" / "find-out-what-is-wrong.md")
    listed = re.findall(r"^\| `([a-z_]+)` \| .+ \| .+ \|$", page, re.MULTILINE)
    assert listed == list(KINDS)
    assert all(f"`{name}`" in page for name in (*CHECKS, *LATER))
