import asyncio
import os

import openai
import pytest
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider


@pytest.fixture(scope="session", autouse=True)
def loop():
    """One loop for run_sync and for the streams, because pooled connections belong to their loop."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield loop
    loop.close()


@pytest.fixture(params=[OpenAIChatModel, OpenAIResponsesModel], ids=["chat", "responses"])
def model(request):
    client = openai.AsyncOpenAI(
        base_url=os.environ["REFRAME_BASE_URL"],
        api_key="any-key",
        max_retries=0,  # An answer that succeeds only on the second attempt is a failure.
        timeout=20,
    )
    return request.param("demo", provider=OpenAIProvider(openai_client=client))


@pytest.fixture
def agent(model):
    return Agent(model)


@pytest.fixture
def cities():
    """The cities that the tool was called with."""
    return []


@pytest.fixture
def weather_agent(model, cities):
    agent = Agent(model)

    @agent.tool_plain
    def get_weather(city: str) -> str:
        """The weather in a city."""
        cities.append(city)
        return "sunny, 21 °C" if city == "Paris" else "rainy, 12 °C"

    return agent
