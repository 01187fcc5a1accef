"""Starts a gateway with the real codex app-server and a scripted Responses API, and tests what clients get.

Usage: run.py REFRAME CODEX. Prints a line for each test and stops at the first failure."""
import concurrent.futures, ctypes, http.client, json, os, pathlib, signal, socket, subprocess, sys, tempfile, time

REFRAME, CODEX = sys.argv[1:3]
HERE = pathlib.Path(__file__).parent
WEATHER = {"name": "get_weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}
# Orphans become children of this process, which can then reap them: what is left is a failure.
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)

CONFIG = """model = "scripted"
model_provider = "scripted"
[model_providers.scripted]
name = "scripted"
base_url = "http://127.0.0.1:{port}/v1"
wire_api = "responses"
env_key = "SCRIPTED_KEY"
request_max_retries = 0
stream_max_retries = 0
"""


def eventually(what, attempt, seconds=30):
    deadline = time.time() + seconds
    while time.time() < deadline:
        found = attempt()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError(f"never: {what}")


def is_running(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def descendants(pid):
    """The process ids below a process."""
    found = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rsplit(")", 1)[1].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if fields[1] == str(pid):
            child = int(stat.parent.name)
            found += [child, *descendants(child)]
    return found


class Gateway:
    def __init__(self, home, log, options=()):
        variables = {**os.environ, "CODEX_BIN": CODEX, "CODEX_HOME": home, "SCRIPTED_KEY": "no-key-at-all",
                     "REFRAME_LOG": "debug", "PORT": "0"}
        self.log = log
        self.process = subprocess.Popen([REFRAME, "serve", "--backend", "codex-app-server", *options], env=variables, cwd=home,
                                        stdout=subprocess.PIPE, stderr=open(log, "w"), text=True)
        for line in self.process.stdout:
            if "listening on" in line:
                self.port = int(line.split("127.0.0.1:")[1].split("/")[0])
                break

    def post(self, path, body):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request("POST", path, json.dumps(body), {"content-type": "application/json"})
        return connection.getresponse()

    def get(self, path):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request("GET", path)
        return connection.getresponse().status

    def codex(self):
        """The process of the app-server."""
        return eventually("codex runs", lambda: [p for p in descendants(self.process.pid) if is_running(p)])[0]

    def chat(self, text, stream=False, messages=None, **members):
        body = {"model": "scripted", "messages": messages or [{"role": "user", "content": text}], **members}
        if stream:
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        response = self.post("/v1/chat/completions", body)
        data = response.read().decode()
        if not stream:
            return response.status, json.loads(data)
        frames = [line[6:] for line in data.splitlines() if line.startswith("data: ")]
        assert response.status != 200 or frames[-1] == "[DONE]" or "error" in frames[-1], data
        return response.status, [json.loads(frame) for frame in frames if frame != "[DONE]"]

    def responses(self, text, stream=False, **members):
        body = {"model": "scripted", "input": text, "stream": stream, **members}
        response = self.post("/v1/responses", body)
        data = response.read().decode()
        if not stream:
            return response.status, json.loads(data)
        return response.status, [json.loads(line[6:]) for line in data.splitlines() if line.startswith("data: {")]


def upstream(port, path):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", path)
    return json.loads(connection.getresponse().read())


def fold(frames):
    """The message that the deltas of a chat stream make."""
    text, calls, finish, usage = "", {}, None, None
    for frame in frames:
        usage = frame.get("usage") or usage
        for choice in frame["choices"]:
            delta = choice["delta"]
            text += delta.get("content") or ""
            finish = choice["finish_reason"] or finish
            for call in delta.get("tool_calls", []):
                kept = calls.setdefault(call["index"], {"id": call.get("id"), "name": None, "arguments": ""})
                kept["name"] = call["function"].get("name") or kept["name"]
                kept["arguments"] += call["function"].get("arguments") or ""
    return text, [calls[index] for index in sorted(calls)], finish, usage


def test_text(gateway, port):
    status, body = gateway.chat("[[text]] Hi", messages=[{"role": "system", "content": "Be brief."},
                                                         {"role": "user", "content": "[[text]] Hi"}])
    assert status == 200, body
    assert body["choices"][0]["message"]["content"] == "Hello from the model."
    assert (body["usage"]["prompt_tokens"], body["usage"]["completion_tokens"]) == (100, 20)
    assert body["usage"]["prompt_tokens_details"]["cached_tokens"] == 40
    text, _, finish, usage = fold(gateway.chat("[[text]] Hi", stream=True)[1])
    assert (text, finish, usage["total_tokens"]) == ("Hello from the model.", "stop", 120)
    status, body = gateway.responses("[[text]] Hi")
    assert body["output"][-1]["content"][0]["text"] == "Hello from the model.", body
    assert body["usage"]["output_tokens_details"]["reasoning_tokens"] == 5
    events = gateway.responses("[[text]] Hi", stream=True)[1]
    assert events[-1]["type"] == "response.completed", events[-1]
    sent = upstream(port, "/requests")[0]
    assert not sent.get("tools"), "the tools of the agent are off"
    assert "Be brief." in json.dumps(sent) and len(json.dumps(sent)) < 6000


def test_reasoning(gateway, port):
    body = gateway.responses("[[reasoning]] Hi", reasoning={"effort": "low"})[1]
    assert body["output"][0]["type"] == "reasoning", body
    assert body["output"][0]["summary"][0]["text"] == "Thinking about it."
    assert upstream(port, "/requests")[-1]["reasoning"]["effort"] == "low"
    events = gateway.responses("[[reasoning]] Hi", stream=True)[1]
    assert any(event["type"] == "response.reasoning_summary_text.delta" for event in events)


def test_tools_over_two_requests(gateway, port):
    tools = [{"type": "function", "function": WEATHER}]
    expected = [{"id": "call_1", "name": "get_weather", "arguments": '{"city": "Paris"}'},
                {"id": "call_2", "name": "get_weather", "arguments": '{"city":"Rome"}'}]
    for _ in range(5):
        text, calls, finish, usage = fold(gateway.chat("[[tools]] Weather?", stream=True, tools=tools)[1])
        assert (text, calls, finish, usage["total_tokens"]) == ("Let me check.", expected, "tool_calls", 120), calls
    message = gateway.chat("[[tools]] Weather?", tools=tools)[1]["choices"][0]["message"]
    results = [{"role": "tool", "tool_call_id": call["id"], "content": f"result of {call['id']}"}
               for call in message["tool_calls"]]
    history = [{"role": "user", "content": "[[tools]] Weather?"}, message, *results]
    for stream in (False, True):
        answer = gateway.chat("", stream=stream, messages=history, tools=tools)[1]
        text = fold(answer)[0] if stream else answer["choices"][0]["message"]["content"]
        assert text == "result of call_1;result of call_2;", answer
    sent = [item for item in upstream(port, "/requests")[-1]["input"] if item.get("type") != "message"]
    assert [item["type"] for item in sent] == ["function_call"] * 2 + ["function_call_output"] * 2
    assert sent[0]["arguments"] == '{"city": "Paris"}', "arguments are exact"
    output = gateway.responses("[[tools]] Weather?", tools=[{"type": "function", **WEATHER}])[1]["output"]
    assert [item["call_id"] for item in output if item["type"] == "function_call"] == ["call_1", "call_2"], output


def test_faults(gateway, port):
    for mark, status in (("e429", 429), ("e500", 500), ("e401", 401), ("cut", 502)):
        got, body = gateway.chat(f"[[{mark}]] Hi")
        assert (got, "error" in body) == (status, True), (mark, got, body)
    for mark, status in (("e429", 429), ("e500", 500)):
        # Before the first frame an error has a status, in streams too.
        assert gateway.chat(f"[[{mark}]] Hi", stream=True)[0] == status, mark
        assert gateway.responses(f"[[{mark}]] Hi", stream=True)[0] == status, mark
        got, body = gateway.responses(f"[[{mark}]] Hi")
        assert (got, sorted(body["error"])) == (status, ["code", "message", "param", "type"]), (mark, got, body)
        assert body["error"]["type"] == ("rate_limit_error" if status == 429 else "server_error"), body
    got, body = gateway.responses("[[cut]] Hi")
    assert (got, body["status"]) == (200, "failed") and body["error"], (got, body)
    frames = gateway.chat("[[cut]] Hi", stream=True)[1]
    assert "error" in frames[-1], frames[-1]
    failed = gateway.responses("[[cut]] Hi", stream=True)[1][-1]
    assert failed["type"] in ("response.failed", "error"), failed
    assert gateway.chat("[[length]] Hi")[1]["choices"][0]["finish_reason"] == "length"


def test_rejections(gateway, port):
    """What Codex rejects, or has no place for, is an error of the client."""
    def rejected(**members):
        status, body = gateway.chat("[[text]] Hi", **members)
        assert (status, body.get("error", {}).get("type")) == (400, "invalid_request_error"), (members, status, body)

    tool = {"type": "function", "function": WEATHER}
    rejected(tools=[{"type": "function", "function": {"name": "a b c"}}])
    rejected(tools=[tool, tool])
    rejected(response_format={"type": "json_object"})
    image = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://example.test/a.png"}}]}
    rejected(messages=[image])
    rejected(messages=[image, {"role": "assistant", "content": "A cat."}, {"role": "user", "content": "Sure?"}])
    # The tool of the client, not the one of the agent with the same name.
    view = {"name": "view_image", "description": "of the client", "parameters": {"type": "object", "properties": {}}}
    assert gateway.chat("[[text]] Hi", tools=[{"type": "function", "function": view}])[0] == 200
    tools = upstream(port, "/requests")[-1]["tools"]
    assert [(tool["name"], tool["description"]) for tool in tools] == [("view_image", "of the client")], tools


def test_format(gateway, port):
    """The schema is sent; what Codex has no place for is listed."""
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}
    response = gateway.post("/v1/chat/completions", {
        "model": "scripted", "messages": [{"role": "user", "content": "[[text]] Hi"}],
        "response_format": {"type": "json_schema", "json_schema": {"name": "mine", "strict": False, "schema": schema}}})
    assert response.status == 200, response.read()
    dropped = response.headers["x-reframe-dropped"]
    assert "response_format.json_schema.name" in dropped and "response_format.json_schema.strict" in dropped, dropped
    sent = upstream(port, "/requests")[-1]["text"]["format"]
    assert (sent["schema"], sent["strict"]) == (schema, True), sent


def test_disconnect_before_the_first_frame(gateway, port):
    """The model is silent, so that the client has no response yet."""
    chat = {"messages": [{"role": "user", "content": "[[silent]] Hi"}]}
    for path, body in (("/v1/chat/completions", chat), ("/v1/responses", {"input": "[[silent]] Hi"})):
        for stream in (True, False):
            data = json.dumps({"model": "scripted", "stream": stream, **body}).encode()
            client = socket.create_connection(("127.0.0.1", gateway.port))
            client.sendall(b"POST %s HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
                           b"content-length: %d\r\n\r\n%s" % (path.encode(), len(data), data))
            eventually("the turn runs", lambda: upstream(port, "/open") == 1, 10)
            client.close()
            eventually("the turn is interrupted", lambda: upstream(port, "/open") == 0, 10)
    assert gateway.chat("[[text]] again")[0] == 200


def test_disconnect(gateway, port):
    response = gateway.post("/v1/chat/completions", {"model": "scripted", "stream": True, "messages": [
        {"role": "user", "content": "[[slow]] Hi"}]})
    assert response.readline()
    eventually("the turn runs", lambda: upstream(port, "/open") >= 1, 10)
    response.close()
    eventually("the turn is interrupted", lambda: upstream(port, "/open") == 0, 10)


def test_50_turns_at_once(gateway, port):
    began = time.time()
    with concurrent.futures.ThreadPoolExecutor(50) as pool:
        done = list(pool.map(lambda n: gateway.chat(f"[[text]] {n}", stream=n % 2 == 0), range(50)))
    assert all(status == 200 for status, _ in done), [body for status, body in done if status != 200][:1]
    took = time.time() - began
    print(f"   50 turns at once: {took:.1f} s")
    load = max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
    assert took < 20 * load, "50 turns take at most 20 s on an idle machine"


def rss(pid):
    """Kilobytes of anonymous memory."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(status.split("RssAnon:")[1].split()[0])


def test_memory(gateway, port):
    turns = int(os.environ.get("CODEX_TURNS", "500"))
    largest, first = 0, gateway.codex()
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for _ in range(0, turns, 50):
            done = list(pool.map(lambda n: gateway.chat(f"[[text]] {n}"), range(50)))
            assert all(status == 200 for status, _ in done), [body for status, body in done if status != 200]
            running = [pid for pid in descendants(gateway.process.pid) if is_running(pid)]
            largest = max(largest, sum(rss(pid) for pid in running))
    print(f"   memory of codex: at most {largest // 1024} MB during {turns} turns")
    assert largest < 600 * 1024
    assert turns < 500 or not is_running(first), "the process was replaced"


def test_kill_of_codex_under_load(gateway, port):
    def slow(number):
        return gateway.chat(f"[[slow]] {number}", stream=True)

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        turns = [pool.submit(slow, number) for number in range(8)]
        eventually("all turns run", lambda: upstream(port, "/open") >= 8)
        killed = gateway.codex()
        os.kill(killed, signal.SIGKILL)
        began = time.time()
        for turn in turns:
            frames = turn.result(timeout=10)[1]
            assert "error" in json.dumps(frames[-1]), frames[-1]
        print(f"   8 turns failed {1000 * (time.time() - began):.0f} ms after the death of codex")
    assert gateway.chat("[[text]] again")[0] == 200
    assert gateway.codex() != killed
    assert not pathlib.Path(f"/proc/{killed}").exists(), "no zombie"


def test_kill_of_the_gateway(gateway, port):
    below = descendants(gateway.process.pid)
    assert below
    gateway.process.kill()
    gateway.process.wait()
    eventually("codex ends with the gateway", lambda: not any(is_running(pid) for pid in below), 10)


def test_drop_in(home, port):
    """The profile of the proxy that Reframe replaces, over the real binary."""
    os.environ["PROXY_KILL_ON_DISCONNECT"] = "true"  # otherwise the proxy reads a turn to its end
    gateway = Gateway(home, pathlib.Path(home, "drop-in.log"), ["--profile", "codex-completions-api"])
    try:
        eventually("it is ready", lambda: gateway.get("/readyz") == 200)
        status, body = gateway.chat("[[text]] Hi")
        assert (status, body["choices"][0]["message"]["content"]) == (200, "Hello from the model."), body
        assert sorted(body["usage"]) == ["completion_tokens", "prompt_tokens", "total_tokens"], body
        calls = gateway.chat("[[tools]] Weather?", tools=[{"type": "function", "function": WEATHER}])[1]
        assert calls["choices"][0]["finish_reason"] == "tool_calls", calls
        assert calls["choices"][0]["message"]["tool_calls"][0]["function"]["name"] == "get_weather", calls
        test_disconnect(gateway, port)
        assert gateway.get("/readyz") == 200
    finally:
        gateway.process.kill()


def main():
    with tempfile.TemporaryDirectory() as home:
        server = subprocess.Popen([sys.executable, HERE / "responses_server.py"], stdout=subprocess.PIPE, text=True)
        port = int(server.stdout.readline())
        pathlib.Path(home, "config.toml").write_text(CONFIG.format(port=port))
        log = pathlib.Path(home, "gateway.log")
        gateway = Gateway(home, log)
        tests = [test_text, test_reasoning, test_tools_over_two_requests, test_faults, test_rejections,
                 test_format, test_disconnect_before_the_first_frame, test_disconnect, test_50_turns_at_once, test_memory, test_kill_of_codex_under_load, test_kill_of_the_gateway]
        try:
            for test in tests:
                began = time.time()
                test(gateway, port)
                print(f"ok {test.__name__[5:].replace('_', ' ')} ({time.time() - began:.1f} s)", flush=True)
            test_drop_in(home, port)
            print("ok drop in")
            unknown = [line for line in log.read_text().splitlines() if "matched no rule" in line or "no rule reads" in line]
            assert not unknown, unknown
        except BaseException:
            print(log.read_text()[-6000:], file=sys.stderr)
            raise
        finally:
            server.kill()
            gateway.process.kill()


main()
