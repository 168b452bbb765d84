from collections.abc import Callable
from typing import Any

from anthropic import AsyncAnthropic
from cases import (
    API_KEY,
    BASE_URL,
    EXACTLY,
    QUESTION,
    SAID,
    WRONG_KEY,
    Forecast,
    assert_forecast,
    assert_multiplied,
    assert_said,
    failure,
    multiply,
    run_cases,
)
from openai import AsyncOpenAI
from pydantic_ai import Agent, NativeOutput, ToolOutput
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider


def open_ai(kind: Any) -> Callable[[str, str], Any]:
    def model(name: str, key: str) -> Any:
        client = AsyncOpenAI(base_url=f"{BASE_URL}/v1", api_key=key, max_retries=0)
        return kind(name, provider=OpenAIProvider(openai_client=client))

    return model


def anthropic(name: str, key: str) -> Any:
    client = AsyncAnthropic(base_url=BASE_URL, api_key=key, max_retries=0)
    return AnthropicModel(name, provider=AnthropicProvider(anthropic_client=client))


def run_agent(api: str, model: Callable[[str, str], Any], name: str, output: Any) -> None:
    async def held() -> None:
        run = await Agent(model(name, API_KEY)).run(EXACTLY)
        assert run.output == SAID, run
        usage = run.usage() if callable(run.usage) else run.usage
        assert usage.output_tokens > 0

    async def streamed() -> None:
        async with Agent(model(name, API_KEY)).run_stream(EXACTLY) as run:
            assert_said([piece async for piece in run.stream_text(delta=True, debounce_by=None)])

    async def tool_turn() -> None:
        run = await Agent(model(name, API_KEY), tools=[multiply]).run(QUESTION)
        assert_multiplied(run.output)

    async def structured_output() -> None:
        run = await Agent(model(name, API_KEY), output_type=output).run("Good morning")
        assert_forecast(run.output)

    async def error() -> None:
        unknown = await failure(lambda: Agent(model("no-such-model", API_KEY)).run(EXACTLY))
        assert isinstance(unknown, ModelHTTPError) and unknown.status_code == 404, unknown
        refused = await failure(lambda: Agent(model(name, WRONG_KEY)).run(EXACTLY))
        assert isinstance(refused, ModelHTTPError) and refused.status_code == 401, refused

    run_cases(
        api,
        held=held,
        streamed=streamed,
        tool_turn=tool_turn,
        structured_output=structured_output,
        error=error,
    )


run_agent("openai chat", open_ai(OpenAIChatModel), "sandbox-chat", NativeOutput(Forecast))
run_agent("openai responses", open_ai(OpenAIResponsesModel), "sandbox-chat", NativeOutput(Forecast))
run_agent("openai native responses", open_ai(OpenAIResponsesModel), "sandbox-responses", ToolOutput(Forecast))
run_agent("anthropic", anthropic, "sandbox-chat", ToolOutput(Forecast))
