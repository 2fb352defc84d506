"""Choosing tools for a task: a plain BM25 ranker over what a domain shows.

Never decides what may be called; it only orders what a view already shows, and never cuts
silently: who shows fewer tools than a view has, says so.
"""

import math
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest

from thoughtgate.views import Entry

_K1 = 1.2
_B = 0.75
"""The usual constants of BM25 (Robertson and Zaragoza 2009): saturation and length."""

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_CJK = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uac00-\ud7af"
_RUN = re.compile(rf"[{_CJK}]+|[^\W_{_CJK}]+")
_IS_CJK = re.compile(rf"[{_CJK}]")

_MIN_STEM = 3
_ENDINGS_TEXT = "ization ations ation ings ions ing ion ers ors ies ed er or es ly al e s y"
_EMPTY_TEXT = """
a about also an and are as at be but by can could do does for from get has have how i if in into is
it its like me my need of on or our please should so some such that the their then there these they
this to us use want was we what when where which who will with would you your
"""
_ENDINGS = tuple(_ENDINGS_TEXT.split())
_EMPTY_WORDS = frozenset(_EMPTY_TEXT.split())
"""Words that a task is full of and that say nothing about a tool; measured to matter a lot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """A tool and how well it fits; scores of different queries cannot be compared."""

    entry: Entry
    score: float


class Index:
    """Tools, ready to be ranked; made by `index`."""

    def __init__(
        self, entries: Sequence[Entry], weights: Mapping[str, Sequence[tuple[int, float]]]
    ) -> None:
        self.entries = tuple(entries)
        self._weights = weights

    def rank(self, query: str, limit: int) -> tuple[Scored, ...]:
        """Return the best tools first, at most `limit`; none that shares no word with the query.

        Equal scores keep the view's order, so the answer depends on nothing but view and query.
        """
        scores: defaultdict[int, float] = defaultdict(float)
        for term, times in Counter(terms(query)).items():
            for position, weight in self._weights.get(term, ()):
                scores[position] += times * weight
        best = nlargest(limit, scores.items(), key=lambda pair: (pair[1], -pair[0]))
        return tuple(Scored(entry=self.entries[place], score=score) for place, score in best)


def index(entries: Sequence[Entry]) -> Index:
    """Index tools by server, name, description and the names of their arguments."""
    counts = [Counter(_words_of(entry)) for entry in entries]
    lengths = [count.total() for count in counts]
    mean = (sum(lengths) / len(lengths) if lengths else 0.0) or 1.0
    found: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
    for position, count in enumerate(counts):
        for term, times in count.items():
            found[term].append((position, times))
    weights: dict[str, list[tuple[int, float]]] = {}
    for term, places in found.items():
        rarity = math.log(1 + (len(counts) - len(places) + 0.5) / (len(places) + 0.5))
        weights[term] = [
            (
                place,
                rarity * times * (_K1 + 1) / (times + _K1 * (1 - _B + _B * lengths[place] / mean)),
            )
            for place, times in places
        ]
    return Index(entries, weights)


def choose(
    ranker: Index, query: str, *, max_tools: int | None, max_tokens: int | None
) -> tuple[Entry, ...]:
    """Return the best tools for a query that fit the budget, the best one first.

    A tool that is too large for what is left is passed over, and smaller ones still come in.
    """
    chosen: list[Entry] = []
    left = math.inf if max_tokens is None else max_tokens
    for scored in ranker.rank(query, len(ranker.entries)):
        if max_tools is not None and len(chosen) >= max_tools:
            break
        if scored.entry.tokens <= left:
            left -= scored.entry.tokens
            chosen.append(scored.entry)
    return tuple(chosen)


def terms(text: str) -> Iterator[str]:
    """Yield the terms of a text: stems of words, and pairs of CJK characters.

    `getLogFiles`, `get_log_files` and `Get the log file` have the same terms. Chinese, Japanese
    and Korean are written without spaces that part words, so each two neighbours are a term.
    """
    for run in _RUN.findall(_HUMP.sub(" ", unicodedata.normalize("NFKC", text))):
        if _IS_CJK.match(run):
            yield from (run[at : at + 2] for at in range(max(1, len(run) - 1)))
        elif (word := run.casefold()) not in _EMPTY_WORDS:
            yield _stem(word)


def _words_of(entry: Entry) -> Iterator[str]:
    shown = entry.shown
    yield from terms(entry.tool.server)
    yield from terms(entry.tool.name)
    yield from terms(str(shown.get("title") or ""))
    yield from terms(str(shown.get("description") or ""))
    for name in shown["inputSchema"].get("properties", ()):
        yield from terms(name)


def _stem(word: str) -> str:
    """Return the word without its ending: crude, but alike for all forms of most words."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _MIN_STEM:
            return word[: -len(ending)]
    return word
