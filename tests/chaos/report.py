"""What a run came to: judged, printed on one screen, and kept as JSON and as a part of a page.

Never rounds a broken promise away.
"""

import json
import platform
from collections import Counter
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.chaos.checker import RULES, check, excerpt
from tests.chaos.fleet import KINDS
from tests.chaos.history import LAST, What
from tests.chaos.leaks import leaks
from tests.chaos.run import CLIENTS, PIPED, Outcome, Wish
from tests.support.gate import ROOT

PAGE = ROOT / "docs" / "explanation" / "chaos.md"
BEGIN, END = "<!-- chaos result: begin -->\n", "<!-- chaos result: end -->\n"
_ALIVE = "the gateway lives, ends well and leaks nothing"


def judged(wish: Wish, outcome: Outcome) -> dict[str, Any]:
    """Return everything that a run came to, as JSON."""
    broken = check(outcome.history)
    rules = Counter(one.rule for one in broken)
    own = [
        *leaks(outcome.before, outcome.after, outcome.waiting),
        *(f"{name} does not answer again" for name in outcome.lost),
        *outcome.odd,
        *_crashed(outcome),
    ]
    ends = Counter(
        f"{event.what.value} {event.code}".strip()
        for event in outcome.history.events
        if event.what in LAST
    )
    return {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": f"Python {platform.python_version()}, {platform.system()}",
        "seconds": wish.seconds,
        "seed": wish.seed,
        "workers": wish.workers,
        "clients": CLIENTS + len(PIPED),
        "servers": len(KINDS),
        "took": round(outcome.took, 1),
        "rounds": sum(event.what is What.INVOKE for event in outcome.history.events),
        "cancelled": sum(event.what is What.CANCEL for event in outcome.history.events),
        "executed": sum(one.what == "ran" for one in outcome.history.ran),
        "rows": len(outcome.history.rows),
        "outcomes": dict(ends.most_common()),
        "faults": outcome.struck,
        "done": outcome.done,
        "held": {"before": outcome.before.as_json(), "after": outcome.after.as_json()},
        "rules": {**{rule: rules[rule] for rule in RULES}, _ALIVE: len(own)},
        "violations": len(broken) + len(own),
        "trouble": own[:20],
        "excerpt": excerpt(outcome.history, broken),
        "broken": [asdict(one) for one in broken[:200]],
    }


def save(found: dict[str, Any], folder: Path) -> None:
    """Keep a result where the next one takes its place."""
    (folder / "chaos.json").write_text(json.dumps(found, indent=1), encoding="utf-8")


def screen(found: dict[str, Any]) -> str:
    """Return a result for a person."""
    who = f"{found['clients']} clients, {found['servers']} servers"
    counts = ("rounds", "executed", "faults", "cancelled", "rows")
    lines = [
        f"chaos: {found['seconds']:g} s, seed {found['seed']}, {found['workers']} worker(s), {who}",
        "  " + ", ".join(f"{found[name]} {name}" for name in counts),
        "  " + ", ".join(f"{number} {what}" for what, number in found["done"].items()),
        "  outcomes: " + ", ".join(f"{n} {what}" for what, n in found["outcomes"].items()),
        *_held_lines(found["held"]),
        *(f"  {_mark(number)} {rule}" for rule, number in found["rules"].items()),
    ]
    if found["violations"]:
        again = f"--seconds {found['seconds']:g} --seed {found['seed']}"
        lines += [f"  again with: make chaos ARGS={again!r}", *found["trouble"], *found["excerpt"]]
    return "\n".join(lines) + "\n"


def render(folder: Path, page: Path = PAGE) -> None:
    """Put the last result into the page, between its two marks."""
    found = json.loads((folder / "chaos.json").read_text(encoding="utf-8"))
    text = page.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    page.write_text(before + BEGIN + table(found) + END + after, encoding="utf-8")


def table(found: dict[str, Any]) -> str:
    """Return a result as Markdown."""
    held = found["held"]
    sizes = {name: f"{one['memory'] / 2**20:.0f} MiB" for name, one in held.items()}
    files = {name: str(one["files"]) for name, one in held.items()}
    rows = [
        ("run", f"{found['seconds']:g} s, seed {found['seed']}, {found['workers']} worker(s)"),
        ("on", f"{found['when']}, {found['machine']}"),
        ("clients and servers", f"{found['clients']} and {found['servers']}"),
        ("calls", f"{found['rounds']:,}"),
        ("of these executed by a server", f"{found['executed']:,}"),
        ("faults that struck", f"{found['faults']:,}"),
        ("done meanwhile", ", ".join(f"{n} {what}" for what, n in found["done"].items())),
        ("outcomes", ", ".join(f"{n:,} {what}" for what, n in found["outcomes"].items())),
        ("memory before and after", f"{sizes['before']}, {sizes['after']}"),
        ("files and sockets before and after", f"{files['before']}, {files['after']}"),
        ("zombies after", str(held["after"]["zombies"])),
        *((rule, f"broken {n} times" if n else "held") for rule, n in found["rules"].items()),
    ]
    return "| what | result |\n|---|---|\n" + "".join(f"| {a} | {b} |\n" for a, b in rows)


def _held_lines(held: dict[str, dict[str, int]]) -> list[str]:
    names = [name for name in held["before"] if name != "memory"]
    pairs = [f"{name} {held['before'][name]}→{held['after'][name]}" for name in names]
    sizes = "→".join(f"{one['memory'] / 2**20:.0f}" for one in held.values())
    return [f"  held: {', '.join(pairs)}, memory {sizes} MiB"]


def _mark(number: int) -> str:
    return f"BROKEN {number}×" if number else "held"


def _crashed(outcome: Outcome) -> list[str]:
    """Return what the gateway should not have written, and how it should not have ended."""
    found = [] if outcome.code == 0 else [f"the gateway ended with {outcome.code}"]
    if "Traceback" in outcome.words:
        at = outcome.words.index("Traceback")
        found.append(outcome.words[max(0, at - 300) : at + 1500])
    return found
