"""Rejected requests raise openai-python's own exceptions before any stream starts; and the list of models."""

import openai
import pytest
from openai.types.chat import ChatCompletion

from demo import HELLO, MODEL


@pytest.fixture(params=[False, True], ids=["json", "stream"])
def stream(request):
    return request.param


def test_messages_are_required(client, stream):
    with pytest.raises(openai.BadRequestError) as raised:
        # `create` would reject this without a request to the server.
        client.post("/chat/completions", cast_to=ChatCompletion, body={"model": MODEL, "stream": stream})

    assert raised.value.body == {
        "message": raised.value.body["message"],
        "type": "invalid_request_error",
        "param": "messages",
        "code": "missing_required_parameter",
    }
    assert "messages" in raised.value.body["message"]


def test_an_unknown_model_is_not_found(client, stream):
    with pytest.raises(openai.NotFoundError) as raised:
        client.chat.completions.create(model="nope", messages=HELLO, stream=stream)

    assert set(raised.value.body) == {"message", "type", "param", "code"}
    assert raised.value.code == "model_not_found"
    assert "nope" in raised.value.body["message"]


def test_the_demo_model_is_listed(client):
    [demo] = [model for model in client.models.list() if model.id == MODEL]

    assert demo.object == "model"
    assert isinstance(demo.created, int)
    assert demo.owned_by
