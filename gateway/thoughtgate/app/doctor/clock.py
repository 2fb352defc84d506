"""The clock, held against what others say the time is.

Never asks a time server: what the tool servers and the files say is enough to see a wrong clock.
"""

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from pathlib import Path

from thoughtgate.app.doctor.findings import Checked, Finding

TOLERATED = 30.0
"""Seconds that two clocks may differ; a `Date` is whole seconds, and its reply may be slow."""

JUMP = 2.0
"""Seconds that the clock may gain or lose against steady time while we look."""

_MEND = "set the clock: timedatectl set-ntp true (on macOS: sudo sntp -sS time.apple.com)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """One look at both clocks, in seconds: the time of day, and the steady time."""

    wall: float
    steady: float


def now() -> Moment:
    """Look at both clocks."""
    return Moment(wall=time.time(), steady=time.monotonic())


def check_clock(
    began: Moment, dates: Mapping[str, tuple[str, float]], files: Iterable[Path]
) -> Checked:
    """Look at the clock; `dates` holds by origin what a server said and when that came."""
    ended = now()
    newest = max(((_modified(file), str(file)) for file in files), default=(0.0, ""))
    findings = (
        *judged_dates(dates),
        *judged_files(newest[0], newest[1], ended.wall),
        *judged_jump(began, ended),
    )
    compared = f"compared with {len(dates)} server(s) and the files of the registry"
    return Checked(name="clock", said=compared, findings=findings)


def judged_dates(dates: Mapping[str, tuple[str, float]]) -> Iterator[Finding]:
    """Yield a finding for each server whose clock differs from ours."""
    for origin, (said, came) in dates.items():
        try:
            theirs = parsedate_to_datetime(said)
            # one without a zone is in GMT too, as HTTP has it, and not in our own
            off = theirs.replace(tzinfo=theirs.tzinfo or UTC).timestamp() - came
        except (ValueError, OverflowError):
            continue
        if abs(off) > TOLERATED:
            yield Finding(
                code="clock_off",
                where=origin,
                what=f"our clock is {abs(off):.0f} s {'behind' if off > 0 else 'ahead of'} "
                f"that of {origin}",
                mend=f"{_MEND}; or theirs is wrong",
            )


def judged_files(newest: float, name: str, wall: float) -> Iterator[Finding]:
    """Yield a finding when a file was written later than now."""
    if newest - wall > TOLERATED:
        yield Finding(
            code="clock_behind_files",
            where=name,
            what=f"it was written {newest - wall:.0f} s after what our clock says is now",
            mend=_MEND,
        )


def judged_jump(began: Moment, ended: Moment) -> Iterator[Finding]:
    """Yield a finding when the time of day did not go as steady time does."""
    jump = (ended.wall - began.wall) - (ended.steady - began.steady)
    if abs(jump) > JUMP:
        yield Finding(
            code="clock_jumped",
            where="the system's clock",
            what=f"it jumped by {jump:+.1f} s while we looked",
            mend=f"see what sets it; {_MEND}",
        )


def _modified(file: Path) -> float:
    try:
        return file.stat().st_mtime
    except OSError:
        return 0.0
