#!/usr/bin/env python3
"""A worker that speaks the older protocol of Codex (newConversation, sendUserTurn, sendUserMessage), for the tests of the
profile codex-completions-api. Like the worker that they replace, it handles one line at a time, writes lines that are no
messages, and does not end with its input.

FAKE_MODE: what a turn does. FAKE_START: ready, silent, refuse, exit. FAKE_PIDS, FAKE_LOG: files for process ids and for
every message received. FAKE_EXIT_AFTER_MS: it ends by itself. FAKE_RELEASE: `held` streams until this file exists.
FAKE_CALLS, FAKE_ARGUMENTS, FAKE_DELTA: how many calls, their arguments, and the characters of a delta (0: all).
FAKE_TEXT: text before calls. FAKE_STDERR: a line. FAKE_CALL_CHOICES: the choices with calls, of `choices`.
FAKE_FINISH: the finish of a turn with calls."""
import json, os, signal, sys, threading, time

ENV = os.environ
MODE, START = ENV.get("FAKE_MODE", "text"), ENV.get("FAKE_START", "ready")
COUNT = [0]


def send(message):
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def number():
    COUNT[0] += 1
    return COUNT[0]


def arguments_of(position):
    return ENV.get("FAKE_ARGUMENTS", json.dumps({"id": str(42 + position)}, separators=(",", ":")))


def cut(text):
    size = int(ENV.get("FAKE_DELTA", "0")) or len(text)
    return [text[start:start + size] for start in range(0, len(text), size)]


def block(name="lookup_user", value="42"):
    return f"<use_tool>\n  <name>{name}</name>\n  <id>{value}</id>\n</use_tool>"


def turn(request, params):
    conversation = params["conversationId"]

    def event(method, **members):
        send({"jsonrpc": "2.0", "method": method,
              "params": {"conversation_id": conversation, "request_id": conversation, **members}})

    def delta(value, **members):
        event("agentMessageDelta", delta=value, **members)

    def end(reason, prompt=8, completion=6, **members):
        event(ENV.get("FAKE_USAGE", "tokenCount"), prompt_tokens=prompt, completion_tokens=completion, **members)
        send({"jsonrpc": "2.0", "id": request["id"], "result": {"finish_reason": reason}})

    def message(content, **members):
        event("agentMessage", message={"role": "assistant", "content": content, **members})

    if MODE == "silent":
        return
    if MODE == "crash":
        os._exit(1)
    if MODE == "unauthorized":
        return event("error", codexErrorInfo="unauthorized", willRetry=False)
    if MODE == "error":
        error = {"code": "worker_error", "message": "synthetic worker error", "data": {"retryable": False}}
        return send({"jsonrpc": "2.0", "id": request["id"], "error": error})
    if MODE == "pause":
        delta("Hello (before the pause)")
        return time.sleep(10)
    if MODE == "held":
        tick = 0
        while not os.path.exists(ENV["FAKE_RELEASE"]):
            delta(f"tick-{tick} ")
            tick += 1
            time.sleep(0.05)
        message("Long stream complete.")
        return end("stop", 8, 12)
    if MODE == "filtered":
        message(None)
        return end("content_filter", 8, 0, finish_reason="content_filter")
    if MODE == "function_call":
        message(None, function_call={"name": "lookup_user", "arguments": arguments_of(0)})
        return end("function_call", 8, 0)
    if MODE in ("tools", "function_then_tools"):
        calls = []
        if ENV.get("FAKE_TEXT"):
            delta(ENV["FAKE_TEXT"])
        if MODE == "function_then_tools":
            message(None, function_call={"name": "lookup_user", "arguments": arguments_of(0)})
        for position in range(int(ENV.get("FAKE_CALLS", "1"))):
            name = ["lookup_user", "send_email"][position % 2]
            call = {"index": position, "id": f"tool_fake_{position + 1}", "type": "function"}
            text = arguments_of(position)
            if ENV.get("FAKE_DELTA") == "0":
                delta({"tool_calls": [{**call, "function": {"name": name, "arguments": text}}]})
            else:
                delta({"tool_calls": [{**call, "function": {"name": name}}]})
                for part in cut(text) if "FAKE_DELTA" in ENV else (text[:7], text[7:-2], text[-2:]):
                    delta({"tool_calls": [{"index": position, "function": {"arguments": part}}]})
            calls.append({**call, "function": {"name": name, "arguments": text}})
        time.sleep(0.01)
        delta(block())
        message(ENV.get("FAKE_TEXT", "") + block(), tool_calls=calls)
        end(ENV.get("FAKE_FINISH", "tool_calls"), 8, 16)
        if ENV.get("FAKE_EXIT_AFTER_TURN"):
            os._exit(1)
        return
    if MODE in ("textual", "textual_tail"):
        text = block(value="ユーザー-12345") + (" AFTER_TOOL_TEXT" if MODE == "textual_tail" else "")
        for part in cut(text):
            delta(part)
        message(text)
        return end("tool_calls", 8, 20)
    if MODE == "choices":
        with_calls = ENV.get("FAKE_CALL_CHOICES", "0").split(",")
        for choice in range(2):
            of, content, calls = {"choice_index": choice}, f"Choice {choice}", []
            if str(choice) in with_calls:
                call = {"index": 0, "id": f"multi_tool_{choice}", "type": "function"}
                function = {"name": ["lookup_user", "send_email"][choice], "arguments": arguments_of(choice)}
                calls, content = [{**call, "function": function}], None
                delta({"tool_calls": [{**call, "function": {"name": function["name"]}}], **of}, **of)
                for part in (function["arguments"][:7], function["arguments"][7:]):
                    delta({"tool_calls": [{"index": 0, "function": {"arguments": part}}], **of}, **of)
            else:
                delta({"content": content, **of}, **of)
            whole = {"role": "assistant", "content": content, "tool_calls": calls, **of}
            event("agentMessage", message=whole, **of)
        return end("tool_calls", 5, 5, finish_reason="tool_calls")
    text = {"truncated": "Hello (truncated) from the worker."}.get(MODE, "Hello from the worker.")
    if MODE == "metadata":
        text += "\nrollout_path: /home/sessions/rollout\nsession_id: session-123"
    delta(text)
    message(text, **({"metadata": {"rollout_path": "r", "session_id": "s"}} if MODE == "metadata" else {}))
    end("length", 5, 9, finish_reason="length") if MODE == "truncated" else end("stop")


def answer(request):
    method, params = request.get("method"), request.get("params") or {}
    results = {
        "initialize": lambda: {"advertised_models": ["codex-5"]},
        "newConversation": lambda: {"conversation_id": f"conv-{number()}", "conversationId": f"conv-{COUNT[0]}"},
        "addConversationListener": lambda: {"subscriptionId": f"sub-{number()}"},
        "removeConversationListener": dict,
        "sendUserTurn": lambda: {"conversation_id": params["conversationId"]},
        "account/login/start": lambda: {"type": "chatgpt", "authUrl": "https://example.com/login", "loginId": "login-1"},
    }
    if method == "sendUserMessage":
        turn(request, params)
    elif method in results:
        send({"jsonrpc": "2.0", "id": request["id"], "result": results[method]()})
    elif "id" in request:
        error = {"code": -32601, "message": f"Unknown method: {method}"}
        send({"jsonrpc": "2.0", "id": request["id"], "error": error})


def main():
    if ENV.get("FAKE_PIDS"):
        with open(ENV["FAKE_PIDS"], "a") as pids:
            pids.write(f"{os.getpid()} {json.dumps([sys.argv[1:], os.getcwd(), dict(ENV)])}\n")
    if ENV.get("FAKE_STDERR"):
        print(ENV["FAKE_STDERR"], file=sys.stderr, flush=True)
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    if START == "exit":
        sys.exit(1)
    send({"event": "starting"})
    if ENV.get("FAKE_EXIT_AFTER_MS"):
        threading.Timer(int(ENV["FAKE_EXIT_AFTER_MS"]) / 1000, os._exit, [1]).start()
    send({"event": "ready", "ready": True})
    for line in sys.stdin:
        if ENV.get("FAKE_LOG"):
            with open(ENV["FAKE_LOG"], "a") as log:
                log.write(line)
        if START != "silent":
            answer(json.loads(line))
    while True:
        time.sleep(60)


main()
