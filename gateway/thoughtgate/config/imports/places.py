"""Where a value stands in a document, and what is to be said about it.

Never holds the value itself: it may be a secret.
"""

from dataclasses import dataclass, replace

from thoughtgate.config.toml import key_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The way to a value; as text a JSON pointer, or in TOML a dotted key."""

    steps: tuple[str | int, ...] = ()
    toml: bool = False

    def at(self, *steps: str | int) -> "Place":
        """Return the place below this one."""
        return replace(self, steps=(*self.steps, *steps))

    def __str__(self) -> str:
        """Return it as people find it in the file."""
        if not self.toml:
            return "".join(f"/{_escaped(str(step))}" for step in self.steps)
        said = ""
        for step in self.steps:
            said += f"[{step}]" if isinstance(step, int) else f".{key_text(step)}"
        return said.removeprefix(".")


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """One sentence about one key of one server; `server` is empty for the whole file."""

    server: str
    key: str
    text: str

    def __str__(self) -> str:
        """Return it as one line."""
        return ": ".join(filter(None, (self.server, self.key, self.text)))


def _escaped(step: str) -> str:
    return step.replace("~", "~0").replace("/", "~1")
