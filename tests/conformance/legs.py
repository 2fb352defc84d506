"""The legs: one run each of the official suite, straight at the fixture or through thoughtgate.

Never tells a leg from another by its figures: a leg is good when everything went well.
"""

import json
import operator
import os
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from tests.conformance import suite
from tests.conformance.client import FOLDER
from tests.conformance.servers import at, child, fixture, in_front, seen
from tests.conformance.suite import Release, Scenario
from tests.conformance.witness import taken

DIRECT: Final = "direct"
THROUGH: Final = "thoughtgate"

SERVER_SECONDS: Final = 180.0
CLIENT_SECONDS: Final = 90.0
AT_ONCE: Final = 2
"""How many client scenarios run side by side."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """What is run: a release of the suite, with frozen requirements or with all it has."""

    key: str
    title: str
    release: Release
    version: str = ""
    era: str = "stateless"

    @property
    def options(self) -> list[str]:
        """Return how the suite is told."""
        return ["--requirements", self.version] if self.version else ["--suite", "all"]


STABLE: Final = Column(key="stable", title="0.1.16", release=Release.STABLE, era="handshake")
OLD: Final = Column(
    key="2025-11-25",
    title="2025-11-25",
    release=Release.NEXT,
    version="2025-11-25",
    era="handshake",
)
NEW: Final = Column(
    key="2026-07-28", title="2026-07-28", release=Release.NEXT, version="2026-07-28"
)
COLUMNS: Final = (STABLE, OLD, NEW)

CLIENT_SCENARIOS: Final[tuple[tuple[Release, str, tuple[str, ...]], ...]] = (
    (
        Release.STABLE,
        "",
        ("initialize", "tools_call", "elicitation-sep1034-client-defaults", "sse-retry"),
    ),
    (
        Release.NEXT,
        "2025-11-25",
        (
            "initialize",
            "tools_call",
            "elicitation-sep1034-client-defaults",
            "sse-retry",
            "json-schema-2020-12-preservation",
        ),
    ),
    (
        Release.NEXT,
        "2026-07-28",
        (
            "tools_call",
            "request-metadata",
            "http-standard-headers",
            "http-custom-headers",
            "http-invalid-tool-headers",
            "json-schema-ref-no-deref",
            "json-schema-2020-12-preservation",
            "sep-2322-client-request-state",
        ),
    ),
)


_NO_FOLDER: Final = "the suite did not come to it"
_LEFT: Final = "the client ended early; stderr.txt says why"


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """How a leg ended.

    `others` are scenarios that were run and are not scored: pending ones, and extensions. `traces`
    are the requests at the server, the audit rows and the spans; `complaints` is what does not add
    up among them. One that is not required only shows how far the bridge between the eras goes.
    """

    key: str
    front: str
    scored: tuple[Scenario, ...]
    others: tuple[Scenario, ...] = ()
    traces: tuple[int, int, int] = (0, 0, 0)
    complaints: tuple[str, ...] = ()
    required: bool = True

    @property
    def good(self) -> bool:
        """Tell whether all is as it must be, what is not scored as well."""
        return not self.complaints and all(each.good for each in (*self.scored, *self.others))

    @property
    def figure(self) -> str:
        """Return how many of the scored scenarios went well, of how many."""
        return _figure(self.scored)

    @property
    def wider(self) -> str:
        """Return the same with the scenarios that are not scored."""
        return _figure((*self.scored, *self.others))


def straight(column: Column, folder: Path) -> Report:
    """Run the suite straight at the fixture."""
    with fixture() as url:
        return _served(column, DIRECT, url, folder)


def through(column: Column, folder: Path, *, era: str = "") -> Report:
    """Run the suite at a gateway before the fixture, to which it speaks the given era."""
    front_name = f"{THROUGH}, {era} server" if era else THROUGH
    with fixture() as url, in_front(at(url, f'era = "{era}"\n' if era else "")) as front:
        report = _served(column, front_name, front.url, folder)
        traces = taken(front, lambda: seen(url))
    return replace(
        report,
        traces=traces.totals,
        complaints=traces.complaints(_fits(column, era or NEW.era)),
        # a server of 2025 cannot name its questions as the scenarios of 2026 want it
        required=(era, column) != (OLD.era, NEW),
    )


def piped(column: Column, folder: Path) -> Report:
    """Run the suite at a gateway whose server is the fixture as a child."""
    counted = folder / f"{column.key}-counted.json"
    counted.parent.mkdir(parents=True, exist_ok=True)
    with in_front(child(counted)) as front:
        report = _served(column, f"{THROUGH}, stdio server", front.url, folder)
        traces = taken(front, lambda: json.loads(counted.read_text(encoding="utf-8")))
    complaints = traces.complaints(_fits(column, NEW.era))
    return replace(report, traces=traces.totals, complaints=complaints)


def _fits(column: Column, era: str) -> Callable[[int, int], bool]:
    """Return how rows and requests go together: one by one within an era."""
    return operator.eq if era == column.era else operator.le


def clients(folder: Path) -> tuple[Report, ...]:
    """Run the client scenarios through a gateway each, before the suite's own servers."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return tuple(
            _client_report(release, version, names, folder, pool)
            for release, version, names in CLIENT_SCENARIOS
        )


def _served(column: Column, front: str, url: str, folder: Path) -> Report:
    names = suite.server_scenarios(column.release, column.version)
    found = suite.run(
        column.release,
        ["server", "--url", url, *column.options],
        folder=folder / f"{column.key}-{front.replace(', ', '-').replace(' ', '-')}",
        seconds=SERVER_SECONDS,
    )
    return Report(
        key=column.key,
        front=front,
        scored=tuple(found.get(name, _missing(name)) for name in names),
        others=tuple(scenario for name, scenario in found.items() if name not in names),
    )


def _client_report(
    release: Release, version: str, names: tuple[str, ...], folder: Path, pool: ThreadPoolExecutor
) -> Report:
    key = f"client {version or release.version}"
    place = folder / key.replace(" ", "-")
    place.mkdir(parents=True, exist_ok=True)
    run = partial(_client_scenario, release, version, place)
    scored = tuple(pool.map(run, names))
    told = [_told(place, name, version) for name in names]
    totals = [one["totals"] for one in told]
    return Report(
        key=key,
        front=THROUGH,
        scored=scored,
        traces=(sum(t[0] for t in totals), sum(t[1] for t in totals), sum(t[2] for t in totals)),
        complaints=tuple(words for one in told for words in one["complaints"]),
    )


def _client_scenario(release: Release, version: str, place: Path, name: str) -> Scenario:
    command = ["client", "--command", f"{sys.executable} -m tests.conformance.client"]
    limits = ["--scenario", name, "--timeout", str(int(CLIENT_SECONDS * 1000) - 10_000)]
    found = suite.run(
        release,
        [*command, *limits, *(["--spec-version", version] if version else [])],
        folder=place / name,
        seconds=CLIENT_SECONDS,
        extra={FOLDER: str(place), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    scenario = found.get(name, _missing(name))
    ended = () if _told_at(place, name, version).exists() else (_LEFT,)
    # the suite takes a warning as a failure here, so we do
    return replace(scenario, failures=(*scenario.failures, *scenario.warnings, *ended))


def _told_at(place: Path, name: str, version: str) -> Path:
    return place / f"{name}-{version or OLD.version}.json"


def _told(place: Path, name: str, version: str) -> Mapping[str, Any]:
    path = _told_at(place, name, version)
    if not path.exists():
        return {"totals": (0, 0, 0), "complaints": ()}
    found: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def _missing(name: str) -> Scenario:
    return Scenario(name=name, failures=(_NO_FOLDER,))


def _figure(scenarios: tuple[Scenario, ...]) -> str:
    return f"{sum(each.good for each in scenarios)}/{len(scenarios)}"
