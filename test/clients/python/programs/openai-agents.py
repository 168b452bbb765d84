from typing import Any

from agents import Agent, ModelSettings, OpenAIProvider, RunConfig, Runner, function_tool
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

multiply_tool = function_tool(multiply)


def run_agent(api: str, model: str, use_responses: bool) -> None:
    def config(key: str = API_KEY) -> RunConfig:
        provider = OpenAIProvider(base_url=f"{BASE_URL}/v1", api_key=key, use_responses=use_responses)
        return RunConfig(model_provider=provider, tracing_disabled=True)

    def agent(name: str = model, **more: Any) -> Agent:
        settings = ModelSettings(include_usage=True)
        return Agent(name="Assistant", instructions="You help.", model=name, model_settings=settings, **more)

    async def held() -> None:
        run = await Runner.run(agent(), EXACTLY, run_config=config())
        assert run.final_output == SAID, run
        assert run.raw_responses[0].usage.output_tokens > 0

    async def streamed() -> None:
        run = Runner.run_streamed(agent(), EXACTLY, run_config=config())
        events = [event async for event in run.stream_events()]
        raw = [event.data for event in events if event.type == "raw_response_event"]
        assert_said([data.delta for data in raw if data.type == "response.output_text.delta"])
        assert run.final_output == SAID, run
        assert run.raw_responses[0].usage.output_tokens > 0

    async def tool_turn() -> None:
        run = await Runner.run(agent(tools=[multiply_tool]), QUESTION, run_config=config())
        assert_multiplied(run.final_output)
        assert len(run.raw_responses) == 2

    async def streamed_tool_turn() -> None:
        run = Runner.run_streamed(agent(tools=[multiply_tool]), QUESTION, run_config=config())
        async for _ in run.stream_events():
            pass
        assert_multiplied(run.final_output)

    async def structured_output() -> None:
        run = await Runner.run(agent(output_type=Forecast), "Good morning", run_config=config())
        assert_forecast(run.final_output)

    async def error() -> None:
        unknown = await failure(lambda: Runner.run(agent("no-such-model"), EXACTLY, run_config=config()))
        assert getattr(unknown, "status_code", None) == 404, unknown
        refused = await failure(lambda: Runner.run(agent(), EXACTLY, run_config=config(WRONG_KEY)))
        assert getattr(refused, "status_code", None) == 401, refused

    run_cases(
        api,
        held=held,
        streamed=streamed,
        tool_turn=tool_turn,
        streamed_tool_turn=streamed_tool_turn,
        structured_output=structured_output,
        error=error,
    )


run_agent("chat", "sandbox-chat", use_responses=False)
run_agent("responses", "sandbox-chat", use_responses=True)
run_agent("native responses", "sandbox-responses", use_responses=True)
