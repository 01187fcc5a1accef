"""One call to every endpoint, with the client that was generated from the live document."""

import importlib
import pkgutil

import pytest

MESSAGE = {"role": "user", "content": "hello"}


def body(model, fields):
    return {"body": model.from_dict(fields)}


# What each operation is called with, and what is checked in its parsed answer; or the status of an error.
CALLS = {
    "post_v1_chat_completions": (
        lambda models: body(models.ChatRequest, {"model": "demo", "messages": [MESSAGE]}),
        lambda answer: answer.choices[0].message.content.startswith("Hello!"),
    ),
    "post_v1_responses": (
        lambda models: body(models.ResponsesRequest, {"model": "demo", "input": "hello"}),
        lambda answer: answer.status == "completed" and len(answer.output) == 1,
    ),
    "post_v1_completions": (
        lambda models: body(models.CompletionsRequest, {"model": "demo", "prompt": "hello"}),
        lambda answer: answer.choices[0].text != "",
    ),
    "websocket_v1_responses": (lambda models: {"upgrade": "websocket"}, 426),
    "get_v1_models": (None, lambda answer: [model.id for model in answer.data] == ["demo"]),
    "get_v1_models_model": (lambda models: {"model": "demo"}, lambda answer: answer.owned_by == "demo"),
    "get_healthz": (None, lambda answer: answer.ok is True),
    "get_livez": (None, lambda answer: answer.ok is True),
    "get_readyz": (None, lambda answer: answer.ok is True),
    "metrics": (None, lambda answer: answer.endswith("# EOF\n")),
    "status": (None, lambda answer: answer.generation.number == 1 and answer.config_state == "applied"),
    "openapi_json": (None, lambda answer: answer["openapi"] == "3.1.0"),
    "openapi_yaml": (None, lambda answer: answer.startswith('openapi: "3.1.0"\n')),
    "schemas": (None, lambda answer: any(entry.name == "chat/body.json" for entry in answer.schemas)),
    "schema": (
        lambda models: {"folder": "chat", "file": "body.json"},
        lambda answer: answer["$id"] == "/schemas/chat/body.json",
    ),
    "docs": (None, lambda answer: "<title>Reframe</title>" in answer),
    "root": (None, 404),  # not a browser: there is no such page
}


def operations(document):
    return {operation["operationId"] for path in document["paths"].values() for operation in path.values()}


def test_every_operation_has_a_call(document):
    assert operations(document) == set(CALLS)


@pytest.fixture(scope="session")
def modules(generated):
    """The module of each operation, by its id."""
    api = importlib.import_module("api_client.api")
    names = [found.name for found in pkgutil.walk_packages(api.__path__, "api_client.api.") if not found.ispkg]
    return {name.rsplit(".", 1)[1]: importlib.import_module(name) for name in names}


@pytest.mark.parametrize("operation", CALLS)
def test_the_generated_client_calls(operation, generated, modules, http):
    client = generated.Client(base_url=str(http.base_url), httpx_args={"trust_env": False})
    arguments, check = CALLS[operation]
    models = importlib.import_module("api_client.models")
    arguments = arguments(models) if arguments else {}
    answer = modules[operation].sync_detailed(client=client, **arguments)
    if isinstance(check, int):
        assert answer.status_code == check
    else:
        assert answer.status_code == 200, answer
        assert check(answer.parsed), answer.parsed
