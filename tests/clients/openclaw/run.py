"""Runs the agent of OpenClaw against the gateway, with both of its OpenAI APIs, and checks what user and log show.

OpenClaw always streams, and its chat client can read nothing but a stream. With `extra_body` its chat requests get
`stream: false` and `stream: null`, as if it were omitted: the gateway must answer these as JSON. What OpenClaw makes of
them is its own affair.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

GREETING = "Hello! I am a recorded turn"
APIS = {"openai-completions": "chat", "openai-responses": "responses"}
# OpenClaw prepares an agent for several seconds, on a busy machine for many.
LIMIT = 240


class Gateway:
    def __init__(self, binary, folder):
        self.log = folder / "gateway.log"
        command = [pathlib.Path(binary).resolve(), "serve", "--listen", "127.0.0.1:0"]
        # In an empty folder, so that it serves its embedded set.
        self.process = subprocess.Popen(command, cwd=folder, stdout=self.log.open("w"), stderr=subprocess.STDOUT)
        while (found := re.search(r"listening on (\S+/v1)", self.log.read_text())) is None:
            assert self.process.poll() is None, self.log.read_text()
        self.url = found[1]

    def turns(self):
        """The summaries of the turns in the log: dialect, whether it was streamed, status, outcome."""
        summary = re.compile(r'turn ended .*dialect="(\w+)".* stream=(\w+) status=(\d+) outcome="(\w+)"')
        return summary.findall(self.log.read_text())


def ask(openclaw, url, home, api, **params):
    provider = {
        "baseUrl": url,
        "apiKey": "any-key-here",
        "api": api,
        "models": [{"id": "demo", "name": "demo", "contextWindow": 200000, "maxTokens": 4096}],
    }
    defaults = {
        "model": {"primary": "gateway/demo"},
        "models": {"gateway/demo": {"params": params}},
        "workspace": str(home / "workspace"),
    }
    config = {"models": {"mode": "merge", "providers": {"gateway": provider}}, "agents": {"defaults": defaults}}
    (home / ".openclaw").mkdir(parents=True)
    (home / ".openclaw" / "openclaw.json").write_text(json.dumps(config))
    command = [*openclaw, "agent", "--local", "--agent", "main", "--message", "hello", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, env={**os.environ, "HOME": str(home)})
    return done.stdout + done.stderr


def main(binary, node, program):
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        gateway = Gateway(binary, folder)
        try:
            for api, dialect in APIS.items():
                printed = ask([node, program], gateway.url, folder / api, api)
                assert GREETING in printed, printed
                assert gateway.turns()[-1] == (dialect, "true", "200", "completed"), gateway.turns()
                print(f"{api}, stream: true: the agent printed the response")
            for stream in (False, None):
                before = len(gateway.turns())
                home, body = folder / f"chat-{stream}", {"stream": stream}
                ask([node, program], gateway.url, home, "openai-completions", extra_body=body)
                turns = gateway.turns()[before:]
                assert turns and set(turns) == {("chat", "false", "200", "completed")}, turns
                print(f"openai-completions, stream: {json.dumps(stream)}: {len(turns)} requests answered as JSON")
        finally:
            gateway.process.kill()


if __name__ == "__main__":
    main(*sys.argv[1:])
