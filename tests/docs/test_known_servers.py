"""The page of known servers lists what the journey runs, at the versions that it runs."""

import re

from tests.support.known_servers import KNOWN
from tests.support.source import ROOT, text_of

PAGE = ROOT / "docs" / "reference" / "known-servers.md"


def test_the_page_lists_each_server_that_is_tried_and_no_other() -> None:
    rows = re.findall(r"^\| (?!server |---)(.+) \|$", text_of(PAGE), re.MULTILINE)
    tried = [
        " | ".join(
            (
                known.name, f"`{known.package}`", known.home, known.version, known.transport,
                f"`{known.call}`" if known.call else "listed only",
            )
        )
        for known in KNOWN
    ]  # fmt: skip
    assert rows == tried
