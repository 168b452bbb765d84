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
    failure,
    multiply,
    run_cases,
)
from guidance import assistant, gen, json, user
from guidance.models import OpenAI


def ask(text: str, *grammars: Any, model: str = "sandbox-chat", key: str = API_KEY) -> str:
    # It streams every answer.
    llm = OpenAI(model, api_key=key, base_url=f"{BASE_URL}/v1", max_retries=0, echo=False)
    with user():
        llm += text
    with assistant():
        for grammar in grammars:
            llm += grammar
    return llm["answer"]


def streamed() -> None:
    answer = ask(EXACTLY, gen(name="answer"))
    assert answer == SAID, answer


def tool_turn() -> None:
    assert_multiplied(ask(QUESTION, gen(tools=[multiply]), gen(name="answer")))


def structured_output() -> None:
    assert_forecast(Forecast.model_validate_json(ask("Good morning", json(name="answer", schema=Forecast))))


async def error() -> None:
    unknown = await failure(lambda: ask(EXACTLY, gen(name="answer"), model="no-such-model"))
    assert getattr(unknown, "status_code", None) == 404, repr(unknown)
    refused = await failure(lambda: ask(EXACTLY, gen(name="answer"), key=WRONG_KEY))
    assert getattr(refused, "status_code", None) == 401, repr(refused)


run_cases("chat", streamed=streamed, tool_turn=tool_turn, structured_output=structured_output, error=error)
