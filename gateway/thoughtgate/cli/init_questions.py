"""What `init` asks: each question, its usual answer, and what may be answered.

Never writes anything but the questions.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from thoughtgate.config import toml
from thoughtgate.config.clients.places import CLIENTS
from thoughtgate.config.settings import NAME_PATTERN
from thoughtgate.config.texts import Unreadable, text_of
from thoughtgate.core.errors import ConfigError

_WORDS = {"true": "yes", "y": "yes", "on": "yes", "false": "no", "n": "no", "off": "no"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question; `fault` returns what is wrong with an answer, empty when nothing is.

    It is asked only when the answers so far say `when`: a key and its value.
    """

    key: str
    text: str
    usual: str
    fault: Callable[[str], str]
    when: tuple[str, str] | None = None


def _one_of(*words: str) -> Callable[[str], str]:
    return lambda answer: "" if answer in words else f"must be one of {', '.join(words)}"


def _name_fault(answer: str) -> str:
    rule = "use 1 to 40 lower-case letters, digits and hyphens"
    return "" if re.fullmatch(NAME_PATTERN, answer) else rule


def _text_fault(answer: str) -> str:
    return "" if answer.isprintable() else "must be one line of text"


def _folder_fault(answer: str) -> str:
    return "" if Path(answer).expanduser().is_dir() else "there is no such folder"


def _traces_fault(answer: str) -> str:
    fits = answer == "none" or re.fullmatch(r"https?://[^\s\"]+", answer)
    return "" if fits else "must be none, or begin with http:// or https://"


def _port_fault(answer: str) -> str:
    number = re.fullmatch(r"[0-9]{1,5}", answer)
    fits = answer == "stdio" or (number and 0 < int(answer) < 65_536)
    return "" if fits else "must be a port from 1 to 65535, or stdio"


QUESTIONS = (
    Question(
        key="where",
        text="For you (user), or for this folder only (folder)?",
        usual="user",
        fault=_one_of("user", "folder"),
    ),
    Question(
        key="domain",
        text="Name of the domain, a view of tools; default shows all of them",
        usual="default",
        fault=_name_fault,
    ),
    Question(
        key="purpose",
        text="What is it for? In a sentence for models; may stay empty",
        usual="",
        fault=_text_fault,
    ),
    Question(
        key="servers",
        text="Servers to begin with: none, import those of your clients, or files of a folder?",
        usual="none",
        fault=_one_of("none", "import", "files"),
    ),
    Question(
        key="folder",
        text="Which folder may its tools read and write?",
        usual=".",
        fault=_folder_fault,
        when=("servers", "files"),
    ),
    Question(
        key="capture",
        text="Keep arguments and results in traces (yes or no)?",
        usual="no",
        fault=_one_of("yes", "no"),
    ),
    Question(
        key="traces",
        text="Where do traces go: none, or the URL of an OTLP endpoint?",
        usual="none",
        fault=_traces_fault,
    ),
    Question(
        key="port",
        text="HTTP port, or stdio when clients only start it themselves?",
        usual="8765",
        fault=_port_fault,
    ),
    Question(
        key="client",
        text=f"Connect a client next: none, {', '.join(CLIENTS)}?",
        usual="none",
        fault=_one_of("none", *CLIENTS),
    ),
)
"""The questions, in the order in which they are asked."""


def answers_of(given: tuple[str, ...]) -> dict[str, str]:
    """Return the answers of the command line: KEY=VALUE, or TOML files of them.

    Raises:
        ConfigError: One answers no question, or a file cannot be read.
    """
    answers: dict[str, str] = {}
    for word in given:
        key, equals, value = word.partition("=")
        answers.update({key: value} if equals else _from_file(Path(word)))
    known = [question.key for question in QUESTIONS]
    for key in answers:
        if key not in known:
            raise ConfigError(
                message=f"--answers: nobody asks {key[:40]}; the questions are {', '.join(known)}"
            )
    return answers


def asked(
    questions: Sequence[Question], answers: Mapping[str, str], *, ask: bool
) -> dict[str, str]:
    """Return an answer to every question: given, asked for, or the usual one.

    Raises:
        ConfigError: A given answer cannot be.
    """
    found: dict[str, str] = {}
    for question in questions:
        applies = question.when is None or found[question.when[0]] == question.when[1]
        if question.key in answers:
            found[question.key] = _given(question, answers[question.key])
        elif ask and applies:
            found[question.key] = _prompted(question)
        else:
            found[question.key] = question.usual
    return found


def _given(question: Question, word: str) -> str:
    answer = _WORDS.get(word.lower(), word) if question.key == "capture" else word
    if fault := question.fault(answer):
        raise ConfigError(message=f"--answers: {question.key}: {fault}")
    return answer


def _prompted(question: Question) -> str:
    while True:
        word = str(click.prompt(question.text, default=question.usual, err=True)).strip()
        answer = _WORDS.get(word.lower(), word) if question.key == "capture" else word
        fault = question.fault(answer)
        if not fault:
            return answer
        click.echo(f"  {fault}", err=True)


def _from_file(file: Path) -> dict[str, str]:
    try:
        given = toml.read(text_of(file))
    except Unreadable as error:
        raise ConfigError(message=f"--answers: {file}: {error}") from None
    except OSError as error:
        raise ConfigError(message=f"--answers: {file}: cannot be read: {error.strerror}") from None
    return {
        key: str(value).lower() if isinstance(value, bool) else str(value)
        for key, value in given.items()
    }
