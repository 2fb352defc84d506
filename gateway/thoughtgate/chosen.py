"""The tools that a domain chooses of each server, and the names that they get there.

Never dresses a tool, and never lets one name mean two tools: who cannot have one is left out.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from thoughtgate.catalog import MAX_ADVERTISED, Share, advertised_name, safe_name
from thoughtgate.core.domains import Domain, ToolDress
from thoughtgate.core.json import JsonObject
from thoughtgate.core.tools import Tool
from thoughtgate.offered import fits, shows
from thoughtgate.schema.checks import compiled
from thoughtgate.schema.limits import Profile
from thoughtgate.schema.pointers import pointer

Key = tuple[str, str]
"""What a tool is known by: its server and its name there."""

_RENAME = re.compile(rf"[A-Za-z0-9_-]{{1,{MAX_ADVERTISED}}}")
_NO_DRESS: Final = ToolDress()


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """What a domain takes of one server, before names are settled between servers.

    `usual` are the names that the tools have by default, `wished` those that the domain wants;
    `used` are the domain's rules, and its dressed tools, that there is something for here.
    """

    share: Share
    tools: tuple[Tool, ...]
    usual: Mapping[Key, str]
    wished: Mapping[Key, str]
    used: frozenset[str]
    misfits: tuple[str, ...]
    warnings: tuple[str, ...]


def choose(domain: Domain, share: Share) -> Chosen:
    """Return what a domain takes of a server. It depends on nothing else."""
    misfits: list[str] = []
    warnings: list[str] = []
    tools = tuple(_fitting(domain, share, misfits))
    usual = {tool.key: _usual_name(domain, tool) for tool in tools}
    return Chosen(
        share=share,
        tools=tools,
        usual=usual,
        wished={tool.key: _wish(domain, tool, usual[tool.key], warnings) for tool in tools},
        used=frozenset(_used(domain, share)),
        misfits=tuple(misfits),
        warnings=tuple(warnings),
    )


def settle(chosen: Sequence[Chosen]) -> tuple[Mapping[Key, str] | None, Sequence[str]]:
    """Give each tool one name that no other has, and say who did not get its own.

    None says that all have the names that they wished for. Who asks for a taken name keeps its
    default. Only own names (`prefixed = False`) can still collide then, and such tools are left
    out: a client must never reach another tool than the one it means.
    """
    names: dict[Key, str] = {}
    for one in chosen:
        names.update(one.wished)
    if len(set(names.values())) == len(names):
        return None, ()
    usual = {key: name for one in chosen for key, name in one.usual.items()}
    warnings: list[str] = []
    while losers := [key for key in _sharing(names) if names[key] != usual[key]]:
        for key in losers:
            warnings.append(f"{'/'.join(key)} is shown as {usual[key]}: {names[key]} is taken")
            names[key] = usual[key]
    warnings += [
        f"{'/'.join(key)} is left out: {names.pop(key)} is ambiguous; rename it"
        for key in _sharing(names)
    ]
    return names, warnings


def dress_of(domain: Domain, tool: Tool) -> ToolDress:
    """Return how a tool looks in a domain."""
    return domain.dress.get(_path(tool), _NO_DRESS) if domain.dress else _NO_DRESS


def idle_rules(domain: Domain, chosen: Sequence[Chosen]) -> Iterator[str]:
    """Say which rules fit nothing: a typing error, or a server that was not seen yet."""
    used = frozenset[str]().union(*(one.used for one in chosen))
    for rule in (*domain.include, *domain.exclude):
        if rule not in used:
            yield f"the rule {rule} of domain {domain.name} fits no tool"
    for path in domain.dress:
        if path not in used:
            yield f"domain {domain.name} dresses {path}, which is no tool"


def _path(tool: Tool) -> str:
    return f"{tool.server}/{tool.name}"


def _fitting(domain: Domain, share: Share, misfits: list[str]) -> Iterator[Tool]:
    """Yield the tools to show, and note those whose fixed arguments cannot be sent."""
    for tool in share.index.values():
        if not shows(domain, "tool:", _path(tool), tool.tags):
            continue
        wrong = _misfits(tool, dress_of(domain, tool).fixed)
        if wrong:
            misfits.append(
                f"{_path(tool)} is left out: it does not take {', '.join(wrong)} as fixed"
            )
        else:
            yield tool


def _misfits(tool: Tool, fixed: JsonObject) -> list[str]:
    """Return the fixed arguments that the tool's schema refuses whatever else is sent."""
    if not fixed:
        return []
    problems = compiled(tool.digest + "#in", tool.input_schema).problems(fixed)
    places = {problem.pointer for problem in problems if problem.got_type != "absent"}
    return [name for name in fixed if any(_within(place, pointer([name])) for place in places)]


def _within(place: str, name: str) -> bool:
    return place == name or place.startswith(name + "/")


def _usual_name(domain: Domain, tool: Tool) -> str:
    if domain.prefixed:
        return advertised_name(*tool.key)
    return tool.name if domain.limits == Profile.MCP else safe_name(tool.name)


def _wish(domain: Domain, tool: Tool, usual: str, warnings: list[str]) -> str:
    wish = dress_of(domain, tool).rename
    if wish and not _RENAME.fullmatch(wish):
        warnings.append(
            f"{_path(tool)} is shown as {usual}: a name in a domain must be "
            f"1 to {MAX_ADVERTISED} characters of A-Z a-z 0-9 _ -"
        )
        return usual
    return wish or usual


def _sharing(names: Mapping[Key, str]) -> list[Key]:
    """Return the tools that share their name with another one."""
    claims = Counter(names.values())
    return [key for key, name in names.items() if claims[name] > 1]


def _used(domain: Domain, share: Share) -> Iterator[str]:
    """Yield the rules, and the dressed tools, that there is something for."""
    rules = {*domain.include, *domain.exclude}
    if rules:
        things = tuple(_things(share))
        yield from (rule for rule in rules if any(fits(rule, *thing) for thing in things))
    for path in domain.dress:
        server, _, name = path.partition("/")
        if (server, name) in share.index:
            yield path


def _things(share: Share) -> Iterator[tuple[str, str, frozenset[str]]]:
    """Yield everything that a rule may fit, as `fits` takes it."""
    for tool in share.index.values():
        yield "tool:", _path(tool), tool.tags
    some = share.part.offers
    for kind, offers in (
        ("prompt:", some.prompts),
        ("resource:", some.resources),
        ("resource:", some.templates),
    ):
        yield from ((kind, f"{one.server}/{one.name}", one.tags) for one in offers)
