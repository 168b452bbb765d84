"""What the Python programs share: what they ask, where, and how each tells what came of its cases."""

import asyncio
import inspect
import json
import os
import traceback
from collections.abc import Callable
from typing import Any, Literal

from pydantic import BaseModel

BASE_URL = os.environ["SLUICE_BASE_URL"]
API_KEY = os.environ["SLUICE_API_KEY"]
WRONG_KEY = "sk-sluice-wrong"

# What the sandbox answers word for word, and the directive that has it do so.
SAID = "Hello from Sluice"
EXACTLY = f"Reply with exactly: {SAID}"

# A tool that the sandbox calls by this question.
QUESTION = 'TOOL:multiply {"one":6,"other":7}'
MULTIPLY_SCHEMA = {
    "type": "object",
    "properties": {"one": {"type": "number"}, "other": {"type": "number"}},
    "required": ["one", "other"],
    "additionalProperties": False,
}


def multiply(one: int, other: int) -> str:
    """Multiplies two numbers

    Args:
        one: The one number
        other: The other number
    """
    return str(one * other)


class Forecast(BaseModel):
    """A form that a structured answer has."""

    city: str
    degrees: float
    sky: Literal["clear", "grey"]


def assert_said(pieces: list[str | None]) -> None:
    """Checks a text that came in pieces."""
    texts = [piece for piece in pieces if piece]
    assert "".join(texts) == SAID, texts
    assert len(texts) > 1, "the text comes in more than one piece"


def assert_multiplied(text: str | None) -> None:
    assert text is not None and "42" in text, text


def assert_forecast(answer: Any) -> None:
    assert isinstance(answer, Forecast), answer


async def failure(call: Callable[[], Any]) -> Exception:
    """Checks that a call fails, and returns its error."""
    try:
        result = call()
        if inspect.isawaitable(result):
            await result
    except Exception as error:
        return error
    raise AssertionError("the call succeeds")


# Of the whole program: some clients keep a connection from one call to the next.
loop = asyncio.new_event_loop()


def run_cases(api: str, **cases: Callable[[], Any]) -> None:
    """Runs the cases of one API, one after another: each prints a line of JSON."""

    async def run_all() -> None:
        for kind, run in cases.items():
            line = {"name": f"{api}, {kind.replace('_', ' ')}", "ok": True, "detail": ""}
            try:
                result = run()
                if inspect.isawaitable(result):
                    await result
            except Exception:
                line.update(ok=False, detail=traceback.format_exc())
            print(json.dumps(line), flush=True)

    loop.run_until_complete(run_all())
