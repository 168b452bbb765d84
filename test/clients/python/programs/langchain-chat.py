import functools
import operator
from collections.abc import Callable
from typing import Any

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
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI

multiply_tool = tool(multiply)


def open_ai(use_responses_api: bool) -> Callable[[str, str], Any]:
    settings: dict[str, Any] = {"base_url": f"{BASE_URL}/v1", "max_retries": 0, "stream_usage": True}
    return lambda model, key: ChatOpenAI(
        model=model, api_key=key, use_responses_api=use_responses_api, **settings
    )


def anthropic(model: str, key: str) -> Any:
    return ChatAnthropic(model=model, api_key=key, base_url=BASE_URL, max_retries=0, max_tokens=1000)


def run_chat(api: str, chat: Callable[[str, str], Any], model: str, method: str) -> None:
    def held() -> None:
        answer = chat(model, API_KEY).invoke(EXACTLY)
        assert answer.text == SAID, answer
        assert answer.usage_metadata["output_tokens"] > 0

    def streamed() -> None:
        pieces = list(chat(model, API_KEY).stream(EXACTLY))
        assert_said([piece.text for piece in pieces])
        assert functools.reduce(operator.add, pieces).usage_metadata["output_tokens"] > 0

    def tool_turn() -> None:
        messages = [HumanMessage(QUESTION)]
        bound = chat(model, API_KEY).bind_tools([multiply_tool])
        asked = bound.invoke(messages)
        assert len(asked.tool_calls) == 1, asked
        result = multiply_tool.invoke(asked.tool_calls[0])
        assert_multiplied(bound.invoke([*messages, asked, result]).text)

    def structured_output() -> None:
        structured = chat(model, API_KEY).with_structured_output(Forecast, method=method)
        assert_forecast(structured.invoke("Good morning"))

    async def error() -> None:
        unknown = await failure(lambda: chat("no-such-model", API_KEY).invoke(EXACTLY))
        assert getattr(unknown, "status_code", None) == 404, unknown
        refused = await failure(lambda: chat(model, WRONG_KEY).invoke(EXACTLY))
        assert getattr(refused, "status_code", None) == 401, refused

    run_cases(
        api,
        held=held,
        streamed=streamed,
        tool_turn=tool_turn,
        structured_output=structured_output,
        error=error,
    )


run_chat("openai chat", open_ai(False), "sandbox-chat", "json_schema")
run_chat("openai responses", open_ai(True), "sandbox-chat", "json_schema")
run_chat("openai native responses", open_ai(True), "sandbox-responses", "json_schema")
run_chat("anthropic", anthropic, "sandbox-chat", "json_schema")
run_chat("anthropic by tools", anthropic, "sandbox-chat", "function_calling")
