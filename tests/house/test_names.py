"""Each span attribute of ours is documented, and used only by its constant."""

import ast
import re

from tests.support.source import PACKAGES, ROOT, files, name_of, text_of, tree_of
from thoughtgate.telemetry import names

PAGE = ROOT / "docs" / "reference" / "spans.md"
OURS = sorted(
    value
    for value in vars(names).values()
    if isinstance(value, str)
    and value.startswith("thoughtgate.")
    and not value.startswith("thoughtgate.telemetry")
)


def test_the_page_lists_each_attribute_of_ours_and_no_other() -> None:
    listed = re.findall(r"^\| `(thoughtgate\.[a-z_.]+)` \|", text_of(PAGE), re.MULTILINE)
    assert listed == OURS


def test_an_attribute_s_name_is_written_once() -> None:
    spelled = [
        f"{name_of(path)}:{node.lineno} {node.value}"
        for path in files(*PACKAGES)
        if not name_of(path).endswith("telemetry/names.py")
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Constant) and node.value in OURS
    ]
    assert spelled == []
