"""Writes the measurements of the second act: requests and failures by day and service, by a seed.

Never depends on the time of day.
"""

import csv
import random
from collections import Counter
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from statistics import correlation

SERVICES = ("basket", "payment", "search", "支付")
_FIRST, _DAYS = date(2026, 1, 1), 90


def write_measures(folder: Path, seed: int) -> Path:
    """Write `requests.csv` into `folder` and return its path; more load brings more failures."""
    chance = random.Random(seed)
    weak = {service: chance.uniform(0.002, 0.02) for service in SERVICES}
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "requests.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["day", "service", "requests", "failures"])
        for day in range(_DAYS):
            for service in SERVICES:
                requests = round(chance.gauss(1000, 50) * (0.6 if day % 7 > 4 else 1))
                share = weak[service] * (requests / 1000) * chance.uniform(0.8, 1.2)
                row = (_FIRST + timedelta(days=day), service, requests, round(requests * share))
                writer.writerow(row)
    return path


def failures_by_service(path: Path) -> Counter[str]:
    """Return the failures of each service, counted without the tool servers."""
    counts: Counter[str] = Counter()
    for row in _rows(path):
        counts[row["service"]] += int(row["failures"])
    return counts


def load_and_failures(path: Path) -> float:
    """Return how load and failures of a day go together, by the standard library."""
    requests: Counter[str] = Counter()
    failures: Counter[str] = Counter()
    for row in _rows(path):
        requests[row["day"]] += int(row["requests"])
        failures[row["day"]] += int(row["failures"])
    return correlation(list(requests.values()), [failures[day] for day in requests])


def _rows(path: Path) -> Iterator[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)
