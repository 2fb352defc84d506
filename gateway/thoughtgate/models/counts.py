"""Tokens as servers count them, read without belief in zeros.

Never says zero where nothing is known: a question has tokens, and so has a reply with words.
"""

from collections.abc import Mapping, Sequence

from thoughtgate.core.json import JsonValue
from thoughtgate.core.models import Usage


def count(value: JsonValue) -> int | None:
    """Return a number of tokens, None unless it is one."""
    return value if type(value) is int and value >= 0 else None


def summed(one: Usage, other: Usage) -> Usage:
    """Return the sum; what one of the two does not know is unknown."""
    return Usage(
        input_tokens=_sum(one.input_tokens, other.input_tokens),
        output_tokens=_sum(one.output_tokens, other.output_tokens),
        cached_tokens=_sum(one.cached_tokens, other.cached_tokens),
    )


def believed(usage: Usage, *, said: bool) -> Usage:
    """Return the usage without zeros that cannot be; `said` tells that the reply has content."""
    return Usage(
        input_tokens=usage.input_tokens or None,
        output_tokens=usage.output_tokens if usage.output_tokens or not said else None,
        cached_tokens=usage.cached_tokens if usage.input_tokens else None,
    )


def openai_usage(value: JsonValue) -> Usage:
    """Return the usage of a completion."""
    if not isinstance(value, Mapping):
        return Usage()
    details = value.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, Mapping) else None
    return Usage(
        input_tokens=count(value.get("prompt_tokens")),
        output_tokens=count(value.get("completion_tokens")),
        cached_tokens=count(cached),
    )


def streamed_usage(told: Sequence[Usage]) -> Usage:
    """Return the usage of a stream that told it once or often.

    Counts that never fall are running totals, of which the last is the sum; where one falls, each
    piece was counted by itself.
    """
    if not told:
        return Usage()
    outputs = [one.output_tokens for one in told if one.output_tokens is not None]
    last = told[-1]
    output = outputs[-1] if outputs else None
    if outputs != sorted(outputs):
        output = sum(outputs)
    inputs = [one.input_tokens for one in told if one.input_tokens is not None]
    return Usage(
        input_tokens=max(inputs) if inputs else None,
        output_tokens=output,
        cached_tokens=last.cached_tokens,
    )


def anthropic_usage(value: JsonValue) -> Usage:
    """Return the usage of a message; what was read from a cache, or put there, is input too."""
    if not isinstance(value, Mapping):
        return Usage()
    fresh = count(value.get("input_tokens"))
    cached = count(value.get("cache_read_input_tokens"))
    kept = count(value.get("cache_creation_input_tokens"))
    whole = None if fresh is None else fresh + (cached or 0) + (kept or 0)
    return Usage(
        input_tokens=whole,
        output_tokens=count(value.get("output_tokens")),
        cached_tokens=cached,
    )


def _sum(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other
