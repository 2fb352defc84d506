"""Nearest names, for whoever asked for one that is not there. Never decides for the asker."""

import difflib
from collections.abc import Iterable


def nearest(name: str, known: Iterable[str], count: int = 3) -> tuple[str, ...]:
    """Return up to `count` known names that look like `name`, best first."""
    names = sorted(known)
    folded = {one.casefold(): one for one in names}
    close = difflib.get_close_matches(name[:120].casefold(), folded, n=count, cutoff=0.5)
    found = [folded[one] for one in close]
    found += [one for one in names if name and _tail(one) == _tail(name) and one not in found]
    return tuple(found[:count])


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return a phrase with the nearest names, or with all when few are known."""
    names = sorted(known)
    if found := nearest(name, names):
        return f"nearest: {', '.join(found)}"
    if len(names) <= 12:
        return f"there are: {', '.join(names)}" if names else "there are no tools"
    return f"there are {len(names)} tools, none with a similar name"


def _tail(name: str) -> str:
    return name.casefold().replace("-", "_").split("__")[-1].split(".")[-1]
