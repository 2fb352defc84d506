"""What the command line says of a call while it runs."""

import pytest

from thoughtgate.app.requests import NoticeLines
from thoughtgate.core.calls import Notice, NoticeKind
from thoughtgate.core.json import JsonObject


@pytest.mark.parametrize(
    ("params", "line"),
    [
        ({"progress": 1, "total": 2, "message": "looked it up"}, "1/2 looked it up"),
        ({"progress": 3}, "3"),
        ({"progress": 8, "message": "rows"}, "8 rows"),
        ({"progress": 8, "message": "8 rows read"}, "8 rows read"),
        ({"progress": 8, "message": "80 rows read"}, "8 80 rows read"),
    ],
)
async def test_progress_is_one_line_that_says_no_number_twice(
    params: JsonObject, line: str
) -> None:
    said: list[str] = []
    await NoticeLines(said.append).notify(Notice(kind=NoticeKind.PROGRESS, params=params))
    assert said == [line]
