from typing import Any

import anthropic
from anthropic import beta_tool
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

client = anthropic.Anthropic(base_url=BASE_URL, api_key=API_KEY, max_retries=0)
stranger = anthropic.Anthropic(base_url=BASE_URL, api_key=WRONG_KEY, max_retries=0)
ask: dict[str, Any] = {
    "model": "sandbox-chat",
    "max_tokens": 1000,
    "messages": [{"role": "user", "content": EXACTLY}],
}
tool_ask: dict[str, Any] = {
    **ask,
    "messages": [{"role": "user", "content": QUESTION}],
    "tools": [beta_tool(multiply)],
}


def text_of(message: Any) -> str:
    return "".join(block.text for block in message.content if block.type == "text")


def held() -> None:
    answer = client.messages.create(**ask)
    assert text_of(answer) == SAID, answer
    assert answer.stop_reason == "end_turn", answer
    assert answer.usage.output_tokens > 0


def streamed() -> None:
    events = list(client.messages.create(**ask, stream=True))
    deltas = [event.delta for event in events if event.type == "content_block_delta"]
    assert_said([delta.text for delta in deltas if delta.type == "text_delta"])
    with client.messages.stream(**ask) as stream:
        assert text_of(stream.get_final_message()) == SAID


def without_a_timeout() -> None:
    assert text_of(client.with_options(timeout=None).messages.create(**ask)) == SAID


def tool_turn() -> None:
    turns = list(client.beta.messages.tool_runner(**tool_ask))
    assert len(turns) == 2, turns
    assert_multiplied(text_of(turns[1]))


def streamed_tool_turn() -> None:
    last = ""
    for stream in client.beta.messages.tool_runner(**tool_ask, stream=True):
        last = text_of(stream.get_final_message())
    assert_multiplied(last)


def structured_output() -> None:
    messages: list[Any] = [{"role": "user", "content": "Good morning"}]
    answer = client.messages.parse(**{**ask, "messages": messages}, output_format=Forecast)
    assert_forecast(answer.parsed_output)


def count_of_tokens() -> None:
    counted = client.messages.count_tokens(model=ask["model"], messages=ask["messages"])
    assert counted.input_tokens > 0


async def error() -> None:
    unknown = await failure(lambda: client.messages.create(**{**ask, "model": "no-such-model"}))
    assert isinstance(unknown, anthropic.NotFoundError), unknown
    assert unknown.body["error"]["type"] == "not_found_error", unknown.body
    refused = await failure(lambda: stranger.messages.create(**ask, stream=True))
    assert isinstance(refused, anthropic.AuthenticationError), refused


run_cases(
    "messages",
    held=held,
    streamed=streamed,
    without_a_timeout=without_a_timeout,
    tool_turn=tool_turn,
    streamed_tool_turn=streamed_tool_turn,
    structured_output=structured_output,
    count_of_tokens=count_of_tokens,
    error=error,
)
