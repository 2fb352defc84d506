"""The page about ReAct: its picture is the table, its plan can be read, its words exist."""

import re
from pathlib import Path

from thoughtgate.engines.contract import StopReason
from thoughtgate.engines.plan import plan_from_toml
from thoughtgate.engines.react_table import diagram

PAGE = Path(__file__).parents[2] / "docs/explanation/react.md"


def blocks(language: str) -> list[str]:
    text = PAGE.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def test_the_picture_is_printed_from_the_table() -> None:
    assert blocks("mermaid") == [diagram()]


def test_the_plan_on_the_page_is_a_plan() -> None:
    (text,) = blocks("toml")
    plan = plan_from_toml(text)
    assert [sorted(step.needs) for step in plan.steps] == [[], ["find"], ["read"]]


def test_every_stop_reason_is_explained() -> None:
    text = PAGE.read_text(encoding="utf-8")
    reserved = {StopReason.NO_CANDIDATES}  # of engines that search
    missing = [one.value for one in StopReason if f"`{one.value}`" not in text]
    assert set(missing) <= {one.value for one in reserved}
