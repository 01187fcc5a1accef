"""A scripted Responses API on loopback: what it answers depends on marks such as [[tools]] in the last user message.

GET /requests lists the bodies it received, GET /open the number of streams that are still open."""
import http.server, json, re, select, socket, sys, threading, time

REQUESTS, OPEN, LOCK = [], [0], threading.Lock()
USAGE = {"input_tokens": 100, "input_tokens_details": {"cached_tokens": 40}, "output_tokens": 20,
         "output_tokens_details": {"reasoning_tokens": 5}, "total_tokens": 120}


def texts(item):
    content = item.get("content") or []
    return content if isinstance(content, str) else " ".join(p.get("text", "") for p in content)


def mark_of(body):
    """The mark of the last user message, unless a tool result follows it."""
    items = body.get("input", [])
    if items and items[-1].get("type") == "function_call_output":
        return "results"
    users = [i for i in items if i.get("role") == "user"]
    found = re.findall(r"\[\[([a-z0-9_]+)\]\]", texts(users[-1]) if users else "")
    return found[-1] if found else "text"


def message(number, deltas):
    item = {"type": "message", "id": f"msg_{number}", "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": "".join(deltas), "annotations": []}]}
    yield {"type": "response.output_item.added", "output_index": 0,
           "item": {**item, "status": "in_progress", "content": []}}
    for delta in deltas:
        yield {"type": "response.output_text.delta", "item_id": item["id"], "output_index": 0, "content_index": 0,
               "delta": delta}
    yield {"type": "response.output_item.done", "output_index": 0, "item": item}


def reasoning(number, text):
    item = {"type": "reasoning", "id": f"rs_{number}", "summary": [{"type": "summary_text", "text": text}]}
    yield {"type": "response.output_item.added", "output_index": 0, "item": {**item, "summary": []}}
    yield {"type": "response.reasoning_summary_part.added", "item_id": item["id"], "output_index": 0,
           "summary_index": 0, "part": {"type": "summary_text", "text": ""}}
    yield {"type": "response.reasoning_summary_text.delta", "item_id": item["id"], "output_index": 0,
           "summary_index": 0, "delta": text}
    yield {"type": "response.output_item.done", "output_index": 0, "item": item}


def call(number, name, arguments):
    item = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}", "name": name,
            "arguments": arguments, "status": "completed"}
    yield {"type": "response.output_item.done", "output_index": number, "item": item}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def reply(self, status, value):
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        if self.path == "/requests":
            return self.reply(200, REQUESTS)
        if self.path == "/open":
            return self.reply(200, OPEN[0])
        return self.reply(200, {"object": "list", "data": [], "models": []})

    def event(self, data):
        text = f"event: {data['type']}\ndata: {json.dumps(data)}\n\n".encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(text), text))
        self.wfile.flush()

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
        with LOCK:
            number = len(REQUESTS) + 1
            REQUESTS.append(body)
            OPEN[0] += 1
        try:
            self.respond(mark_of(body), number, body)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True
        finally:
            with LOCK:
                OPEN[0] -= 1

    def respond(self, mark, number, body):
        errors = {"e429": (429, "rate_limit_exceeded"), "e500": (500, "server_error"), "e400": (400, "bad_request"),
                  "e401": (401, "invalid_api_key")}
        if mark in errors:
            status, code = errors[mark]
            return self.reply(status, {"error": {"message": f"scripted {status}", "type": code, "code": code}})
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        created = {"id": f"resp_{number}", "object": "response", "status": "in_progress", "output": []}
        self.event({"type": "response.created", "response": created})
        if mark == "silent":
            deadline = time.time() + 60
            while time.time() < deadline:
                readable = select.select([self.connection], [], [], 0.1)[0]
                if readable and not self.connection.recv(1, socket.MSG_PEEK):
                    break
            self.close_connection = True
            return
        if mark == "slow":
            for event in message(number, ["start "]):
                if event["type"].endswith("item.done"):
                    break
                self.event(event)
            for tick in range(600):
                time.sleep(0.1)
                self.event({"type": "response.output_text.delta", "item_id": f"msg_{number}", "output_index": 0,
                            "content_index": 0, "delta": f"{tick} "})
            return
        if mark == "cut":
            for event in message(number, ["half "]):
                if event["type"].endswith("item.done"):
                    break
                self.event(event)
            self.close_connection = True
            return self.connection.close()
        events = {
            "text": lambda: message(number, ["Hello ", "from ", "the ", "model."]),
            "reasoning": lambda: [*reasoning(number, "Thinking about it."), *message(number, ["Done."])],
            "tools": lambda: [*message(number, ["Let me check."]), *call(1, "get_weather", '{"city": "Paris"}'),
                              *call(2, "get_weather", '{"city":"Rome"}')],
            "results": lambda: message(number, [o["output"] + ";" if isinstance(o["output"], str) else "?"
                                                for o in body["input"] if o.get("type") == "function_call_output"]),
            "length": lambda: message(number, ["partial "]),
        }.get(mark, lambda: message(number, ["unknown mark"]))()
        for event in events:
            self.event(event)
        done = {**created, "status": "completed", "usage": USAGE}
        if mark == "length":
            incomplete = {**done, "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
            self.event({"type": "response.incomplete", "response": incomplete})
        else:
            self.event({"type": "response.completed", "response": done})
        self.wfile.write(b"0\r\n\r\n")


if __name__ == "__main__":
    http.server.ThreadingHTTPServer.request_queue_size = 256
    http.server.ThreadingHTTPServer.daemon_threads = True
    server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 0), Handler)
    print(server.server_address[1], flush=True)
    server.serve_forever()
