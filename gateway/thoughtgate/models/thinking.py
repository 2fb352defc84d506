"""Reasoning that a model wrote into its text, between `<think>` marks, told apart from the text.

Never takes anything away that stands behind the first words of an answer.
"""

import re

_OPENED = re.compile(r"\s*<(think|thinking|reasoning)>", re.IGNORECASE)
_CLOSED = re.compile(r"</(think|thinking|reasoning)>\s*", re.IGNORECASE)


def apart(text: str) -> tuple[str, str]:
    """Return the reasoning that a text begins with, and the rest of the text.

    A span that is not closed is reasoning to its end. Some chat templates write the opening mark
    themselves, so that a reply holds the closing one only: that is read by the caller's parser.
    """
    opened = _OPENED.match(text)
    if opened is None:
        return "", text
    closed = _CLOSED.search(text, opened.end())
    if closed is None:
        return text[opened.end() :].strip(), ""
    return text[opened.end() : closed.start()].strip(), text[closed.end() :]
