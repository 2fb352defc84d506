"""One thing that is wrong with a value, said for people and for models.

Never holds more of the value than a preview of 80 characters.
"""

from dataclasses import dataclass

from thoughtgate.core.json import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One violation of a schema.

    `pointer` is an RFC 6901 JSON pointer into the value (`""` is the whole value); `keyword` the
    schema keyword that failed; `expected` a phrase; `got_type` a JSON type name; `got_preview` at
    most 80 characters, empty when the schema marks the value secret; `hint` what to do, or empty.
    """

    pointer: str
    keyword: str
    expected: str
    got_type: str
    got_preview: str
    hint: str = ""

    def as_json(self) -> JsonObject:
        """Return the problem as JSON, the shape that clients see."""
        shown: dict[str, object] = {
            "pointer": self.pointer,
            "keyword": self.keyword,
            "expected": self.expected,
            "got": {"type": self.got_type, "preview": self.got_preview},
        }
        if self.hint:
            shown["hint"] = self.hint
        return shown
