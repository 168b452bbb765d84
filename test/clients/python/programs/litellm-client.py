import json
import os
from typing import Any

# Else it asks for a list of prices at its start.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import litellm  # noqa: E402
from cases import (  # noqa: E402
    API_KEY,
    BASE_URL,
    EXACTLY,
    MULTIPLY_SCHEMA,
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

TOOLS = [
    {
        "type": "function",
        "function": {"name": "multiply", "description": "Multiplies two numbers", "parameters": MULTIPLY_SCHEMA},
    }
]


def run_provider(api: str, provider: str, base: str) -> None:
    def complete(text: str, model: str = "sandbox-chat", key: str = API_KEY, **more: Any) -> Any:
        messages = more.pop("messages", [{"role": "user", "content": text}])
        connection = {"api_base": base, "api_key": key, "num_retries": 0, "max_retries": 0}
        return litellm.completion(model=f"{provider}/{model}", messages=messages, **connection, **more)

    def held() -> None:
        answer = complete(EXACTLY)
        assert answer.choices[0].message.content == SAID, answer
        assert answer.usage.completion_tokens > 0

    def streamed() -> None:
        chunks = list(complete(EXACTLY, stream=True, stream_options={"include_usage": True}))
        assert_said([chunk.choices[0].delta.content for chunk in chunks if chunk.choices])
        assert chunks[-1].usage.completion_tokens > 0

    def tool_turn() -> None:
        messages: list[Any] = [{"role": "user", "content": QUESTION}]
        asked = complete(QUESTION, tools=TOOLS).choices[0].message
        call = asked.tool_calls[0]
        result = {"role": "tool", "tool_call_id": call.id, "content": multiply(**json.loads(call.function.arguments))}
        answer = complete("", messages=[*messages, asked.model_dump(), result], tools=TOOLS)
        assert_multiplied(answer.choices[0].message.content)

    def structured_output() -> None:
        answer = complete("Good morning", response_format=Forecast)
        assert_forecast(Forecast.model_validate_json(answer.choices[0].message.content))

    async def error() -> None:
        unknown = await failure(lambda: complete(EXACTLY, "no-such-model"))
        assert isinstance(unknown, litellm.NotFoundError), repr(unknown)
        refused = await failure(lambda: complete(EXACTLY, key=WRONG_KEY))
        assert isinstance(refused, litellm.AuthenticationError), repr(refused)

    run_cases(
        api,
        held=held,
        streamed=streamed,
        tool_turn=tool_turn,
        structured_output=structured_output,
        error=error,
    )


run_provider("openai", "openai", f"{BASE_URL}/v1")
run_provider("anthropic", "anthropic", BASE_URL)
