from typing import Any

import instructor
import openai
from cases import (
    API_KEY,
    BASE_URL,
    EXACTLY,
    SAID,
    WRONG_KEY,
    Forecast,
    assert_forecast,
    failure,
    run_cases,
)

GREETING: list[Any] = [{"role": "user", "content": "Good morning"}]


def run_mode(api: str, mode: instructor.Mode) -> None:
    def client(key: str = API_KEY) -> Any:
        return instructor.from_openai(
            openai.OpenAI(base_url=f"{BASE_URL}/v1", api_key=key, max_retries=0), mode=mode
        )

    def create(key: str = API_KEY, **more: Any) -> Any:
        ask = {"model": "sandbox-chat", "messages": GREETING, "response_model": Forecast, "max_retries": 1}
        return client(key).create(**{**ask, **more})

    def held() -> None:
        messages = [{"role": "user", "content": EXACTLY}]
        answer = create(messages=messages, response_model=None)
        assert answer.choices[0].message.content == SAID, answer

    def streamed() -> None:
        stream = client().create_partial(model="sandbox-chat", messages=GREETING, response_model=Forecast)
        parts = list(stream)
        assert len(parts) > 1, parts
        Forecast.model_validate(parts[-1].model_dump())

    def structured_output() -> None:
        assert_forecast(create())

    async def error() -> None:
        unknown = await failure(lambda: create(model="no-such-model"))
        assert "no-such-model" in str(unknown), unknown
        refused = await failure(lambda: create(WRONG_KEY))
        assert "invalid_api_key" in str(refused), refused

    run_cases(api, held=held, streamed=streamed, structured_output=structured_output, error=error)


run_mode("tools", instructor.Mode.TOOLS)
run_mode("json schema", instructor.Mode.JSON_SCHEMA)
