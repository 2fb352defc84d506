"""Spans and audit rows in lists.

Never drops and never waits.
"""

from thoughtgate.core.audit import AuditRow
from thoughtgate.core.traces import NOTHING_SHARED, SpanRecord


class ListRecorder:
    """A recorder whose `spans` can be read at once, in the order in which they ended.

    Each has all of its attributes as its own, those that it shares with others too.
    """

    def __init__(self) -> None:
        self.spans: list[SpanRecord] = []

    def record(self, span: SpanRecord) -> None:
        """Keep one finished span."""
        attributes = {**span.shared.attributes, **span.attributes}
        self.spans.append(span._replace(attributes=attributes, shared=NOTHING_SHARED))

    def one(self, name: str) -> SpanRecord:
        """Return the only span of this name; fails when there are none or several."""
        (found,) = [span for span in self.spans if span.name == name]
        return found


class ListAuditLog:
    """An audit log whose `rows` can be read at once."""

    def __init__(self) -> None:
        self.rows: list[AuditRow] = []

    def append(self, row: AuditRow) -> None:
        """Keep one row."""
        self.rows.append(row)

    async def flush(self) -> None:
        """Return: a list is as durable as it gets."""
