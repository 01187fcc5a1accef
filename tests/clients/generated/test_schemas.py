"""Plain `jsonschema.validate` with one downloaded schema: nothing else is fetched."""

import json

import jsonschema
import pytest

CHAT = ("/v1/chat/completions", {"model": "demo", "messages": [{"role": "user", "content": "hello"}]})
RESPONSES = ("/v1/responses", {"model": "demo", "input": "hello"})
COMPLETIONS = ("/v1/completions", {"model": "demo", "prompt": "hello"})


def download(http, path):
    schema = http.get(path).raise_for_status().json()
    jsonschema.Draft202012Validator.check_schema(schema)
    return schema


def frames(http, path, request):
    text = http.post(path, json={**request, "stream": True}).raise_for_status().text
    data = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: ")]
    return [json.loads(line) for line in data if line != "[DONE]"]


@pytest.mark.parametrize(
    "call, schema, least",
    [
        (CHAT, "/schemas/chat/chunk.bundled.json", 5),
        (RESPONSES, "/schemas/responses/events.bundled.json", 8),
        (COMPLETIONS, "/schemas/completions/chunk.bundled.json", 5),
    ],
)
def test_frames_are_valid_by_one_downloaded_schema(http, call, schema, least):
    schema = download(http, schema)
    captured = frames(http, *call)
    assert len(captured) >= least
    for frame in captured:
        jsonschema.validate(frame, schema)
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({**frame, "no_such_member": 1}, schema)


@pytest.mark.parametrize("call, folder", [(CHAT, "chat"), (RESPONSES, "responses"), (COMPLETIONS, "completions")])
def test_bodies_are_valid_by_one_downloaded_schema(http, call, folder):
    path, request = call
    body = http.post(path, json=request).raise_for_status().json()
    jsonschema.validate(request, download(http, f"/schemas/{folder}/request.bundled.json"))
    schema = download(http, f"/schemas/{folder}/body.bundled.json")
    jsonschema.validate(body, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**body, "no_such_member": 1}, schema)


def test_every_listed_schema_can_be_downloaded(http):
    listed = http.get("/schemas/").raise_for_status().json()["schemas"]
    assert len(listed) >= 10
    for entry in listed:
        assert download(http, entry["url"])["$id"] == entry["url"]
        bundled = download(http, entry["bundled_url"])
        assert bundled["$id"] == entry["bundled_url"]
        references = [line for line in json.dumps(bundled, indent=0).splitlines() if line.startswith('"$ref": ')]
        assert all(line.startswith('"$ref": "#') for line in references), references
