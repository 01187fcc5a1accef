import os

import openai
import pytest


@pytest.fixture(scope="session")
def settings() -> dict:
    # No retries: an answer that succeeds only on the second attempt is a failure.
    return {
        "base_url": os.environ["REFRAME_BASE_URL"],
        "api_key": "any-key",
        "max_retries": 0,
        "timeout": 20,
    }


@pytest.fixture(scope="session")
def client(settings):
    with openai.OpenAI(**settings) as client:
        yield client
