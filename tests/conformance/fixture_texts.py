"""The prompts and resources of the fixture server, and its completion.

Never answers for a resource that it does not have: such a read is an error that names it.
"""

import re
from typing import Any, Final

import mcp_types as types
from mcp.shared.exceptions import MCPError

from tests.conformance import samples
from tests.conformance.asking import Context, asked, elicitation, modern
from tests.conformance.fixture_tools import APPEARS, Lists

OLD_NOT_FOUND: Final = -32002
"""How a missing resource was told before the stateless era."""

_TEMPLATE: Final = re.compile(r"test://template/([^/]+)/data")
_RESOURCES: Final = (
    types.Resource(uri="test://static-text", name="Text", mime_type="text/plain"),
    types.Resource(uri="test://static-binary", name="Picture", mime_type="image/png"),
    types.Resource(uri="test://watched-resource", name="Watched", mime_type="text/plain"),
)
_READINGS: Final[dict[str, types.TextResourceContents | types.BlobResourceContents]] = {
    "test://static-text": types.TextResourceContents(
        uri="test://static-text",
        mime_type="text/plain",
        text="This is the content of the static text resource.",
    ),
    "test://static-binary": types.BlobResourceContents(
        uri="test://static-binary", mime_type="image/png", blob=samples.PICTURE
    ),
    "test://watched-resource": types.TextResourceContents(
        uri="test://watched-resource", mime_type="text/plain", text="Nothing happened yet."
    ),
}


async def list_resources(context: Context, params: Any) -> types.ListResourcesResult:
    """Return the resources that have an address of their own."""
    return types.ListResourcesResult(resources=list(_RESOURCES))


async def list_templates(context: Context, params: Any) -> types.ListResourceTemplatesResult:
    """Return the one template."""
    template = types.ResourceTemplate(
        uri_template="test://template/{id}/data", name="Template", mime_type="application/json"
    )
    return types.ListResourceTemplatesResult(resource_templates=[template])


async def read(
    context: Context, params: types.ReadResourceRequestParams
) -> types.ReadResourceResult:
    """Return what is at an address.

    Raises:
        MCPError: Nothing is there.
    """
    uri = str(params.uri)
    made = _TEMPLATE.fullmatch(uri)
    if made is not None:
        key = made[1]
        body = f'{{"id":"{key}","templateTest":true,"data":"Data for ID: {key}"}}'
        contents = types.TextResourceContents(uri=uri, mime_type="application/json", text=body)
        return types.ReadResourceResult(contents=[contents])
    if uri not in _READINGS:
        code = types.INVALID_PARAMS if modern(context) else OLD_NOT_FOUND
        raise MCPError(code, "no such resource", {"uri": uri})
    return types.ReadResourceResult(contents=[_READINGS[uri]])


async def subscribe(context: Context, params: types.SubscribeRequestParams) -> types.EmptyResult:
    """Agree; nothing ever changes."""
    return types.EmptyResult()


async def unsubscribe(
    context: Context, params: types.UnsubscribeRequestParams
) -> types.EmptyResult:
    """Agree."""
    return types.EmptyResult()


async def set_level(context: Context, params: types.SetLevelRequestParams) -> types.EmptyResult:
    """Agree; what the tools log is told in any case."""
    return types.EmptyResult()


async def complete(context: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
    """Return words that begin as the argument does."""
    words = ["paris", "park", "party", "test", "testing"]
    fitting = [word for word in words if word.startswith(params.argument.value)]
    return types.CompleteResult(
        completion=types.Completion(values=fitting, total=len(fitting), has_more=False)
    )


class Prompts:
    """The prompts, one of which comes and goes."""

    def __init__(self, lists: Lists) -> None:
        self._lists = lists

    async def list(self, context: Context, params: Any) -> types.ListPromptsResult:
        """Return all prompts."""
        two = [
            types.PromptArgument(name=name, description="A word.", required=True)
            for name in ("arg1", "arg2")
        ]
        one = [types.PromptArgument(name="resourceUri", description="An address.", required=True)]
        prompts = [
            _prompt("test_simple_prompt"),
            _prompt("test_prompt_with_arguments", two),
            _prompt("test_prompt_with_embedded_resource", one),
            _prompt("test_prompt_with_image"),
            _prompt("test_input_required_result_prompt"),
        ]
        if self._lists.extra_prompt:
            prompts.append(_prompt(APPEARS))
        return types.ListPromptsResult(prompts=prompts)

    async def get(
        self, context: Context, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult | types.InputRequiredResult:
        """Return the messages of a prompt, or ask for what it needs.

        Raises:
            MCPError: There is no such prompt.
        """
        if params.name == "test_input_required_result_prompt":
            return await _asking_prompt(context, params)
        given = params.arguments or {}
        blocks = _blocks(params.name, given)
        return types.GetPromptResult(
            messages=[types.PromptMessage(role="user", content=block) for block in blocks]
        )


def _prompt(name: str, arguments: list[types.PromptArgument] | None = None) -> types.Prompt:
    return types.Prompt(name=name, description="A prompt to test with.", arguments=arguments)


def _blocks(name: str, given: dict[str, str]) -> list[types.ContentBlock]:
    if name == "test_simple_prompt":
        return [samples.text("This is a simple prompt for testing.")]
    if name == "test_prompt_with_arguments":
        one, two = given.get("arg1"), given.get("arg2")
        return [samples.text(f"Prompt with arguments: arg1='{one}', arg2='{two}'")]
    if name == "test_prompt_with_embedded_resource":
        words = "Embedded resource content for testing."
        inside = samples.embedded(given.get("resourceUri", "test://example-resource"), words)
        return [inside, samples.text("Please process the embedded resource above.")]
    if name == "test_prompt_with_image":
        return [samples.image(), samples.text("Please analyze the image above.")]
    raise MCPError(types.INVALID_PARAMS, f"no prompt {name}")


async def _asking_prompt(
    context: Context, params: types.GetPromptRequestParams
) -> types.GetPromptResult | types.InputRequiredResult:
    question = elicitation("What context should the prompt use?", samples.form("context"))
    answers = await asked(context, params, [{"user_context": question}], stateful=False)
    if isinstance(answers, types.InputRequiredResult):
        return answers
    words = samples.text(answers["user_context"].model_dump_json(by_alias=True))
    return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=words)])
