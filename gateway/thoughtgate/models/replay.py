"""A model that replies what was recorded, and only to the questions that were recorded.

Never answers a question that differs: it says in which place it does.
"""

from collections import defaultdict, deque
from collections.abc import Iterable
from itertools import islice

from thoughtgate.core.errors import ModelError
from thoughtgate.core.json import digest
from thoughtgate.core.models import ModelRequest, ModelResponse
from thoughtgate.core.ports import ModelClient
from thoughtgate.models.records import Recorded, as_json, differences

_MOST_TOLD = 5


class Replay:
    """Replies from records, each used once; questions asked side by side may come in any order."""

    def __init__(self, records: Iterable[Recorded]) -> None:
        self._left: dict[int, Recorded] = dict(enumerate(records, start=1))
        self._by_question: defaultdict[str, deque[int]] = defaultdict(deque)
        for number, record in self._left.items():
            self._by_question[digest(as_json(record.request))].append(number)

    async def complete(self, request: ModelRequest) -> ModelResponse:
        """Return what was replied to the same question.

        Raises:
            ModelError: No such question was recorded, or none is left; `data["differs"]` are JSON
                Pointers to where it differs from the next record that is left.
        """
        numbers = self._by_question[digest(as_json(request))]
        if numbers:
            return self._left.pop(numbers.popleft()).response
        if not self._left:
            raise ModelError(message="the records hold no more replies")
        number, record = next(iter(self._left.items()))
        places = islice(differences(as_json(record.request), as_json(request)), _MOST_TOLD)
        differs = list(places)
        said = ", ".join(differs) or "nothing, but it was asked before"
        raise ModelError(
            message=f"the question differs from record {number} in: {said}",
            data={"kind": "replay_differs", "record": number, "differs": differs},
        )


class Recording:
    """Asks another model and keeps each question with its reply."""

    def __init__(self, model: ModelClient) -> None:
        self._model = model
        self.records: list[Recorded] = []

    async def complete(self, request: ModelRequest) -> ModelResponse:
        """Return the other model's reply, kept; errors are not."""
        response = await self._model.complete(request)
        self.records.append(Recorded(request=request, response=response))
        return response
