"""Chat completions and responses with OpenAI's client, held and streamed."""

import json
from typing import Any

import openai
from cases import (
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

client = openai.OpenAI(base_url=f"{BASE_URL}/v1", api_key=API_KEY, max_retries=0)
stranger = openai.OpenAI(base_url=f"{BASE_URL}/v1", api_key=WRONG_KEY, max_retries=0)


async def assert_errors(create: Any, create_as_stranger: Any, **ask: Any) -> None:
    unknown = await failure(lambda: create(**{**ask, "model": "no-such-model"}))
    assert isinstance(unknown, openai.NotFoundError), unknown
    assert unknown.code == "model_not_found", unknown.code
    refused = await failure(lambda: create_as_stranger(**ask, stream=True))
    assert isinstance(refused, openai.AuthenticationError), refused
    assert refused.code == "invalid_api_key", refused.code


def run_chat_cases() -> None:
    model = "sandbox-chat"
    create = client.chat.completions.create
    ask: dict[str, Any] = {"model": model, "messages": [{"role": "user", "content": EXACTLY}]}

    def held() -> None:
        answer = create(**ask)
        assert answer.choices[0].message.content == SAID, answer
        assert answer.usage.completion_tokens > 0

    def streamed() -> None:
        chunks = list(create(**ask, stream=True, stream_options={"include_usage": True}))
        assert_said([chunk.choices[0].delta.content for chunk in chunks if chunk.choices])
        assert chunks[-1].usage.completion_tokens > 0

    def tool_turn() -> None:
        messages: list[Any] = [{"role": "user", "content": QUESTION}]
        function = {"name": "multiply", "description": "Multiplies two numbers", "parameters": MULTIPLY_SCHEMA}
        tools = [{"type": "function", "function": {**function, "strict": True}}]
        with client.chat.completions.stream(model=model, messages=messages, tools=tools) as stream:
            asked = stream.get_final_completion().choices[0].message
        call = asked.tool_calls[0]
        result = {"role": "tool", "tool_call_id": call.id, "content": multiply(**json.loads(call.function.arguments))}
        answer = create(model=model, messages=[*messages, asked, result], tools=tools)
        assert_multiplied(answer.choices[0].message.content)

    def structured_output() -> None:
        messages: list[Any] = [{"role": "user", "content": "Good morning"}]
        answer = client.chat.completions.parse(model=model, messages=messages, response_format=Forecast)
        assert_forecast(answer.choices[0].message.parsed)

    async def error() -> None:
        await assert_errors(create, stranger.chat.completions.create, **ask)

    async def without_a_timeout() -> None:
        patient = client.with_options(timeout=None)
        assert patient.chat.completions.create(**ask).choices[0].message.content == SAID

    run_cases(
        "chat",
        held=held,
        streamed=streamed,
        tool_turn=tool_turn,
        structured_output=structured_output,
        error=error,
        without_a_timeout=without_a_timeout,
    )


def run_responses_cases(model: str) -> None:
    create = client.responses.create
    ask: dict[str, Any] = {"model": model, "input": EXACTLY}

    def held() -> None:
        answer = create(**ask)
        assert answer.output_text == SAID, answer
        assert answer.usage.output_tokens > 0

    def streamed() -> None:
        events = list(create(**ask, stream=True))
        assert_said([event.delta for event in events if event.type == "response.output_text.delta"])
        assert events[-1].type == "response.completed", events[-1]

    def tool_turn() -> None:
        parameters = {"parameters": MULTIPLY_SCHEMA, "strict": True}
        tools: list[Any] = [{"type": "function", "name": "multiply", "description": "Multiplies", **parameters}]
        with client.responses.stream(model=model, input=QUESTION, tools=tools) as stream:
            first = stream.get_final_response()
        call = next(item for item in first.output if item.type == "function_call")
        output = multiply(**json.loads(call.arguments))
        result: list[Any] = [{"type": "function_call_output", "call_id": call.call_id, "output": output}]
        answer = create(model=model, previous_response_id=first.id, input=result, tools=tools)
        assert_multiplied(answer.output_text)

    def structured_output() -> None:
        answer = client.responses.parse(model=model, input="Good morning", text_format=Forecast)
        assert_forecast(answer.output_parsed)

    async def error() -> None:
        await assert_errors(create, stranger.responses.create, **ask)

    run_cases(
        f"responses of {model}",
        held=held,
        streamed=streamed,
        tool_turn=tool_turn,
        structured_output=structured_output,
        error=error,
    )
