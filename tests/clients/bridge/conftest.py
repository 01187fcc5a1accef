import asyncio
import functools
import os

import openai
import pytest
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

MODEL = "gpt-5.2"
MODELS = {"chat": OpenAIChatModel, "responses": OpenAIResponsesModel}
# No retries: an answer that succeeds only on the second attempt is a failure.
SETTINGS = {"api_key": "any-key", "max_retries": 0, "timeout": 20}
GATEWAYS = ["SSE_RESPONSES", "SSE_CHAT", "JSON_RESPONSES", "JSON_CHAT"]


@pytest.fixture(scope="session", autouse=True)
def loop():
    """One loop for run_sync and for the streams, because pooled connections belong to their loop."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield loop
    loop.close()


@functools.cache
def client_of(kind, base_url):
    """Cached: creating a client takes longer than any test."""
    return kind(base_url=base_url, **SETTINGS)


def model_of(dialect, base_url):
    return MODELS[dialect](MODEL, provider=OpenAIProvider(openai_client=client_of(openai.AsyncOpenAI, base_url)))


@pytest.fixture(scope="session", params=GATEWAYS, ids=lambda name: "over-" + name.lower().replace("_", "-"))
def gateway(request):
    """The gateways, each with a backend that supports one response form and one dialect."""
    return os.environ["REFRAME_BRIDGE_" + request.param]


@pytest.fixture(params=["responses", "chat"])
def dialect(request):
    """The dialect of the client, independent of the backend."""
    return request.param


@pytest.fixture
def model(dialect, gateway):
    return model_of(dialect, gateway)


@pytest.fixture
def client(gateway):
    return client_of(openai.OpenAI, gateway)


@pytest.fixture
def sse_only():
    return os.environ["REFRAME_SSE_ONLY"]


@pytest.fixture
def json_only():
    return os.environ["REFRAME_JSON_ONLY"]
