"""Incomplete responses, refusals, failures, rejected requests, and reasoning."""

import openai
import pytest

from demo import BREAK, CUT, FAIL, HELLO, MODEL, REFUSE, THINK
from responses import create, events_of, joined, types_of


@pytest.fixture(params=[False, True], ids=["json", "stream"])
def stream(request):
    return request.param


def test_a_truncated_answer_is_incomplete(client):
    answer = create(client, CUT)
    [message] = answer.output

    assert answer.status == "incomplete"
    assert answer.incomplete_details.reason == "max_output_tokens"
    assert (answer.error, message.status) == (None, "incomplete")
    assert answer.output_text


def test_a_truncated_stream_ends_with_incomplete(client):
    events = events_of(client, CUT)

    assert types_of(events)[-3:] == [
        "response.content_part.done",
        "response.output_item.done",
        "response.incomplete",
    ]
    assert events[-1].response.incomplete_details.reason == "max_output_tokens"
    assert events[-1].response.output_text == joined(events, "output_text")


def test_a_refusal_is_a_separate_part(client):
    answer = create(client, REFUSE)
    [message] = answer.output
    [part] = message.content

    assert (answer.status, message.status) == ("completed", "completed")
    assert part.to_dict() == {"type": "refusal", "refusal": part.refusal}
    assert part.refusal
    assert answer.output_text == ""


def test_a_refusal_is_streamed_as_a_refusal(client):
    events = events_of(client, REFUSE)

    assert types_of(events) == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.refusal.delta",
        "response.refusal.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]
    assert joined(events, "refusal") == events[-1].response.output[0].content[0].refusal


def test_the_stream_helper_gathers_a_refusal(client):
    [whole] = create(client, REFUSE).output
    with client.responses.stream(model=MODEL, input=REFUSE) as stream:
        [message] = stream.get_final_response().output

    assert [part.refusal for part in message.content] == [part.refusal for part in whole.content]


def test_reasoning_comes_before_the_message(client):
    answer = create(client, THINK)
    reasoning, message = answer.output
    [summary] = reasoning.summary

    assert (reasoning.type, message.type) == ("reasoning", "message")
    assert reasoning.id.startswith("rs_")
    assert summary.to_dict() == {"type": "summary_text", "text": summary.text}
    assert summary.text and answer.output_text
    assert summary.text not in answer.output_text


def test_reasoning_is_streamed_as_a_summary(client):
    events = events_of(client, THINK)
    reasoning, _ = events[-1].response.output

    assert types_of(events) == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.reasoning_summary_part.added",
        "response.reasoning_summary_text.delta",
        "response.reasoning_summary_text.done",
        "response.reasoning_summary_part.done",
        "response.output_item.done",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]
    assert joined(events, "reasoning_summary_text") == reasoning.summary[0].text


def test_the_stream_helper_keeps_reasoning_apart(client):
    whole = create(client, THINK)
    with client.responses.stream(model=MODEL, input=THINK) as stream:
        final = stream.get_final_response()

    assert [item.type for item in final.output] == ["reasoning", "message"]
    assert final.output[0].summary == whole.output[0].summary
    assert final.output_text == whole.output_text


def test_reasoning_can_be_sent_back(client):
    thought = create(client, THINK).output
    answer = create(client, [*THINK, *thought, *HELLO])

    assert answer.output_text == create(client, HELLO).output_text


def test_a_failure_before_the_first_word_has_its_status(client, stream):
    with pytest.raises(openai.InternalServerError) as failed:
        create(client, FAIL, stream=stream)

    assert failed.value.status_code == 503
    assert set(failed.value.body) == {"message", "type", "param", "code"}
    assert failed.value.body["message"]


def test_a_broken_body_has_status_failed(client):
    answer = create(client, BREAK)

    assert answer.status == "failed"
    assert answer.error.code == "server_error"
    assert answer.output_text, "what came before the break is kept"


def test_a_broken_stream_ends_with_failed(client):
    events = events_of(client, BREAK)
    response = events[-1].response

    assert joined(events, "output_text")
    assert events[-1].type == "response.failed"
    assert response.status == "failed"
    assert response.error.code == "server_error"
    assert response.error.message
    assert response.output_text == joined(events, "output_text")


def test_the_stream_helper_reports_the_failure(client):
    with client.responses.stream(model=MODEL, input=BREAK) as stream:
        events = list(stream)

    assert events[-1].type == "response.failed"
    assert events[-1].response.error.message


def test_an_earlier_response_is_not_found(client, stream):
    with pytest.raises(openai.BadRequestError) as raised:
        create(client, HELLO, previous_response_id="resp_unknown", stream=stream)

    assert raised.value.body == {
        "message": raised.value.body["message"],
        "type": "invalid_request_error",
        "param": "previous_response_id",
        "code": "previous_response_not_found",
    }


def test_an_unknown_model_is_not_found(client, stream):
    with pytest.raises(openai.NotFoundError) as raised:
        client.responses.create(model="nope", input=HELLO, stream=stream)

    assert set(raised.value.body) == {"message", "type", "param", "code"}
    assert raised.value.code == "model_not_found"
    assert "nope" in raised.value.body["message"]
