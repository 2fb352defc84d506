"""Writes three months of mixed log files from a seed, and a manifest of what it wrote.

Never reads a log back: the manifest is what the writer knows, kept outside the logs folder.

    python logbook.py LOGS MANIFEST.json --seed 7
"""

import argparse
import gzip
import json
import os
import random
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from voices import (
    Said,
    Voice,
    json_lines,
    nginx_access,
    nginx_error,
    python_app,
    syslog_new,
    syslog_old,
)

MONTHS_3 = 92
"""Days that count as the last three months."""

WINDOWS = ((0, 9), (9, 21), (21, 40), (40, 62), (62, 88))
"""Days before now that each rotated file covers, newest first."""

TOO_OLD = (100, 150)

STREAMS: tuple[tuple[str, Voice, int], ...] = (
    ("syslog/syslog", syslog_old, 260),
    ("syslog/db-1.log", syslog_new, 160),
    ("nginx/access.log", nginx_access, 420),
    ("nginx/error.log", nginx_error, 140),
    ("app/shop.log", python_app, 200),
    ("app/支付/billing.jsonl", json_lines, 180),
)
GBK_LINE = "2026 用户登录：编码不是 UTF-8".encode("gb18030")


@dataclass(frozen=True, slots=True, kw_only=True)
class Error:
    """One error as written."""

    type: str
    severity: str
    day: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFile:
    """One file as written. `readable` counts the errors before the damage of a broken file."""

    path: str
    age_days: float
    damage: str
    errors: tuple[Error, ...]
    readable: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """Everything that was written."""

    seed: int
    now: str
    logs: str
    days: int
    files: tuple[LogFile, ...]


def write_logs(logs: Path, seed: int, now: datetime | None = None) -> Manifest:
    """Write the files below `logs` and return what they hold."""
    rng = random.Random(seed)
    moment = (now or datetime.now(UTC)).replace(microsecond=0)
    files: list[LogFile] = []
    for name, voice, per_file in STREAMS:
        for number, window in enumerate(WINDOWS):
            rotated = name if number == 0 else f"{name}.{number}"
            records = list(_records(rng, voice, moment, window, per_file))
            files.append(_write(logs, rotated, records, moment, gz=number >= 2))
        old = list(_records(rng, voice, moment, TOO_OLD, per_file // 4))
        files.append(_write(logs, f"{name}.{len(WINDOWS)}", old, moment, gz=True))
    torn = list(_records(rng, nginx_access, moment, (30, 50), 600))
    files.append(_write(logs, "nginx/access-torn.log", torn, moment, gz=True, damage="cut"))
    foreign = list(_records(rng, syslog_old, moment, (5, 15), 120))
    files.append(_write(logs, "syslog/foreign.log", foreign, moment, gz=False, damage="gbk"))
    return Manifest(
        seed=seed,
        now=moment.isoformat(),
        logs=str(logs.resolve()),
        days=MONTHS_3,
        files=tuple(files),
    )


Record = tuple[datetime, Said]


def _records(
    rng: random.Random, voice: Voice, now: datetime, window: tuple[int, int], count: int
) -> Iterator[Record]:
    newest, oldest = window
    span = (oldest - newest) * 86_400 - 7_200
    start = now - timedelta(days=oldest)
    amount = rng.randint(count // 2, count)
    for offset in sorted(rng.randint(0, span) for _ in range(amount)):
        when = start + timedelta(seconds=offset)
        yield when, voice(rng, when)


def _write(
    logs: Path, name: str, records: Sequence[Record], now: datetime, *, gz: bool, damage: str = ""
) -> LogFile:
    path = logs / (f"{name}.gz" if gz else name)
    path.parent.mkdir(parents=True, exist_ok=True)
    pieces = [said.text.encode() + b"\n" for _, said in records]
    if damage == "gbk":
        # a stray line in another encoding before every tenth record: no error, no UTF-8
        pieces = [GBK_LINE + b"\n" + p if n % 10 == 0 else p for n, p in enumerate(pieces)]
    data = b"".join(pieces)
    stored = gzip.compress(data, mtime=0) if gz else data
    if damage == "cut":
        stored = stored[: len(stored) * 2 // 3]
    path.write_bytes(stored)
    written = records[-1][0] if records else now
    os.utime(path, (written.timestamp(), written.timestamp()))
    whole = _unpacked(stored) if gz else len(data)
    errors = [_error(record) for record in records]
    kept = [e for e, end in zip(errors, _ends(pieces), strict=True) if end <= whole]
    return LogFile(
        path=str(path.relative_to(logs)),
        age_days=round((now - written).total_seconds() / 86_400, 3),
        damage=damage,
        errors=tuple(e for e in errors if e is not None),
        readable=sum(e is not None for e in kept),
    )


def _error(record: Record) -> Error | None:
    when, said = record
    if not said.type:
        return None
    return Error(type=said.type, severity=said.severity, day=when.date().isoformat())


def _ends(pieces: Sequence[bytes]) -> Iterator[int]:
    end = 0
    for piece in pieces:
        end += len(piece)
        yield end


def _unpacked(stored: bytes) -> int:
    """Return how many bytes of the content can still be had."""
    return len(zlib.decompressobj(wbits=31).decompress(stored))


def save(manifest: Manifest, path: Path) -> None:
    """Write the manifest as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(asdict(manifest), ensure_ascii=False, indent=1)
    path.write_text(text, encoding="utf-8")


def main() -> None:
    """Run as a command."""
    parser = argparse.ArgumentParser(description="Write three months of mixed log files.")
    parser.add_argument("logs", type=Path, help="folder to write into")
    parser.add_argument("manifest", type=Path, help="where to say what was written")
    parser.add_argument("--seed", type=int, default=20260728)
    given = parser.parse_args()
    manifest = write_logs(given.logs, given.seed)
    save(manifest, given.manifest)
    errors = sum(len(file.errors) for file in manifest.files)
    print(f"seed {manifest.seed}: {len(manifest.files)} files, {errors} errors in {given.logs}")


if __name__ == "__main__":
    main()
