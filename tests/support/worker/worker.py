#!/usr/bin/env python3
"""A worker for the tests of child processes. WORKER_PROTOCOL: `legacy` (conversations) or `jobs`, an invented protocol.

WORKER_MODE is what a turn does: text, tools, length, hang, error, leak, unauthorized, crash, slow, garbage, huge,
stderr, echo, held (its process id, and no end), deaf (closes its input after the turn has begun).
WORKER_CLOSE: how many seconds a job takes to close, one after the other. More than 40 at once are refused.
WORKER_START: ready (default), silent (never answers), refuse (answers with an error), exit (ends at once), slow.
Every message that it receives is appended to WORKER_LOG, and its process id to WORKER_PIDS. Like other workers, it writes
lines that are no messages and does not end with its input."""
import json, os, queue, signal, sys, threading, time

PROTOCOL, MODE = os.environ.get("WORKER_PROTOCOL", "legacy"), os.environ.get("WORKER_MODE", "text")
CLOSE, CLOSING = float(os.environ.get("WORKER_CLOSE", "0")), queue.Queue()
START, LOG = os.environ.get("WORKER_START", "ready"), os.environ.get("WORKER_LOG")
WRITE, COUNT, CANCELLED, LOCKED = threading.Lock(), [0], set(), []
# Jobs that cannot be stopped before they have begun, and those that somebody tried to stop too early.
LATE, TOO_EARLY = set(), set()


def send(message):
    with WRITE:
        sys.stdout.write(message if isinstance(message, str) else json.dumps(message) + "\n")
        sys.stdout.flush()


def number():
    with WRITE:
        COUNT[0] += 1
        return COUNT[0]


def mode_of(text):
    """A turn may choose its own mode: `mode:slow …`."""
    return text.split("mode:")[1].split()[0] if "mode:" in text else MODE


def legacy_turn(request, params):
    conversation, answer = params["conversationId"], {"finish_reason": "stop"}
    text = " ".join(item["data"]["text"] for item in params["items"])
    mode = mode_of(text)

    def event(method, **members):
        send({"jsonrpc": "2.0", "method": method,
              "params": {"conversation_id": conversation, "request_id": conversation, **members}})

    def delta(value):
        event("agentMessageDelta", delta=value)

    if mode == "hang":
        return
    if mode == "crash":
        delta("Hello ")
        os._exit(1)
    if mode == "unauthorized":
        return event("error", codexErrorInfo="unauthorized", willRetry=False)
    if mode in ("error", "leak"):
        secret = os.environ.get("WORKER_SECRET_KEY") if mode == "leak" else "synthetic"
        error = {"code": "worker_error", "message": f"{secret} worker error"}
        return send({"jsonrpc": "2.0", "id": request["id"], "error": error})
    if mode == "garbage":
        send("this is no JSON\n[1, 2]\n{\"event\": \"heartbeat\"}\n\n")
    if mode == "huge":
        return send("{\"method\": \"" + "x" * (2 << 20) + "\n")
    if mode == "stderr":
        sys.stderr.write(f"\x1b[31mwarning\x1b[0m with {os.environ.get('WORKER_SECRET_KEY')}\n" * 200)
        sys.stderr.flush()
    if mode == "held":
        return delta(str(os.getpid()))
    if mode == "slow":
        for tick in range(3000):
            delta(f"{tick} ")
            time.sleep(0.02)
    calls = [{"index": i, "id": f"tool_{i}", "type": "function",
              "function": {"name": "lookup_user", "arguments": json.dumps({"id": str(42 + i)})}} for i in range(2)]
    if mode == "tools":
        answer["finish_reason"] = "tool_calls"
        for call in calls:
            function = call["function"]
            delta({"tool_calls": [{**call, "function": {"name": function["name"]}}]})
            for at in range(0, len(function["arguments"]), 4):
                part = function["arguments"][at:at + 4]
                delta({"tool_calls": [{"index": call["index"], "function": {"arguments": part}}]})
        event("agentMessage", message={"role": "assistant", "content": None, "tool_calls": calls})
    else:
        words = [f"echo {text}"] if mode == "echo" else ["Hello ", "from ", "the ", "worker."]
        for word in words:
            delta(word)
        event("agentMessage", message={"role": "assistant", "content": "".join(words)})
    if mode == "length":
        answer["finish_reason"] = "length"
    event("tokenCount", prompt_tokens=8, completion_tokens=6)
    send({"jsonrpc": "2.0", "id": request["id"], "result": answer})


def legacy(request):
    method, params = request.get("method"), request.get("params") or {}
    results = {
        "newConversation": lambda: {"conversationId": f"conv-{number()}"},
        "addConversationListener": lambda: {"subscriptionId": f"sub-{number()}"},
        "removeConversationListener": dict,
        "sendUserTurn": dict,
        "initialize": lambda: {"advertised_models": ["codex-5"]},
    }
    if method == "sendUserMessage":
        return threading.Thread(target=legacy_turn, args=(request, params), daemon=True).start()
    if method in results:
        send({"jsonrpc": "2.0", "id": request["id"], "result": results[method]()})
    elif "id" in request and method:
        send({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32601, "message": f"Unknown: {method}"}})


def job(ticket, text):
    mode = mode_of(text)
    send({"id": 7, "method": "may_i", "params": {"ticket": ticket}})
    send({"method": "progress", "params": {"job": ticket, "words": "Working. "}})
    if mode.startswith("locked"):
        LOCKED.append(mode)
        return send({"method": "locked", "params": {"job": ticket, "why": "the door is locked"}})
    if mode == "lost":
        return
    if mode == "late":
        LATE.add(ticket)
        while ticket not in TOO_EARLY:
            time.sleep(0.01)
        time.sleep(0.05)
        LATE.remove(ticket)
        send({"method": "progress", "params": {"job": ticket, "words": "Begun. "}})
    while mode in ("slow", "late") and ticket not in CANCELLED:
        time.sleep(0.01)
    ended = "stopped" if ticket in CANCELLED else "finished"
    send({"method": "over", "params": {"job": ticket, "how": ended, "cost": {"in": 3, "out": 4}}})


def close_jobs():
    while True:
        closed = CLOSING.get()
        time.sleep(CLOSE)
        send({"id": closed, "result": {}})


def jobs(request):
    method, params = request.get("method"), request.get("params") or {}
    result = {}
    if method == "hello":
        result = {"greeting": "welcome"}
    elif method == "job/open" and CLOSING.qsize() > 40:
        return send({"id": request["id"], "error": {"code": 3, "message": "too many jobs are being closed"}})
    elif method == "job/close" and CLOSE:
        return CLOSING.put(request["id"])
    elif method == "job/open":
        result = {"ticket": f"job-{number()}"}
    elif method == "job/run":
        threading.Thread(target=job, args=(params["job"], params["text"]), daemon=True).start()
    elif method == "job/stop" and params["job"] in LATE:
        TOO_EARLY.add(params["job"])
        return send({"id": request["id"], "error": {"code": 2, "message": "not begun"}})
    elif method == "job/stop":
        CANCELLED.add(params["job"])
    elif method == "job/state":
        result = {"state": "finished"}
    elif method == "key/find":
        mode = LOCKED[-1]
        if mode == "locked_in_silence":
            return
        if mode == "locked_without_key":
            return send({"id": request["id"], "error": {"code": 1, "message": "no key"}})
        result = {"key": "below the mat"}
    if "id" in request and method:
        send({"id": request["id"], "result": result})


def main():
    if os.environ.get("WORKER_PIDS"):
        with open(os.environ["WORKER_PIDS"], "a") as pids:
            pids.write(f"{os.getpid()}\n")
    if START == "exit":
        sys.exit(3)
    if START == "slow":
        time.sleep(1)
    send({"event": "starting"})
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    threading.Thread(target=close_jobs, daemon=True).start()
    for line in sys.stdin:
        if LOG:
            with open(LOG, "a") as log:
                log.write(line)
        request = json.loads(line)
        if START == "silent":
            continue
        if START == "refuse":
            send({"id": request["id"], "error": {"code": 1, "message": "no session today"}})
            continue
        is_deaf = request.get("method") == "sendUserMessage" and "mode:deaf" in line
        if is_deaf:
            # Before the turn ends: the gateway writes once more then.
            os.close(0)
        (legacy if PROTOCOL == "legacy" else jobs)(request)
        if is_deaf:
            break
    while True:
        time.sleep(60)


main()
