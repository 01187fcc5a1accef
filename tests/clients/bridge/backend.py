#!/usr/bin/env python3
"""A mock backend that supports only one response form, whatever form is requested.

    backend.py --mode sse         answers every request with a stream
    backend.py --mode json        answers every request with one JSON document
    backend.py --mode requested   answers in the requested form, as a correct backend does

It serves chat and responses, and rejects with 400 what OpenAI would reject. The answer depends only on the question:
a tool call if there is a tool, then the result of the tool; JSON that fits the schema if there is one; else the question.
"both" makes two calls, "break" ends the connection half way, "rate limit" is rejected with 429.
"""

import argparse
import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import accept
import shapes

ENDPOINTS = {
    "/v1/chat/completions": (accept.chat, shapes.Chat),
    "/v1/responses": (accept.responses, shapes.Responses),
}
MODEL = {"id": "gpt-5.2", "object": "model", "created": 1765313051, "owned_by": "system"}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self):
        path = self.path.partition("?")[0]
        if path == "/v1/models":
            self.reply(200, {"object": "list", "data": [MODEL]})
        elif path == "/v1/models/" + MODEL["id"]:
            self.reply(200, MODEL)
        else:
            self.reject(accept.RequestError(f"Invalid URL (GET {path})", None, "unknown_url", 404))

    def do_POST(self):
        body = self.body()
        path = self.path.partition("?")[0]
        try:
            if path not in ENDPOINTS:
                raise accept.RequestError(f"Invalid URL (POST {path})", None, "unknown_url", 404)
            read, shape = ENDPOINTS[path]
            request = read(self.parsed(body))
            answer = shape(request, shapes.answer(request))
        except accept.RequestError as error:
            return self.reject(error, body)
        broken = "break" in request.question
        as_requested = self.server.mode == "requested"
        if self.server.mode == "sse" or as_requested and request.body.get("stream"):
            self.stream(list(answer.frames()), broken)
        elif as_requested and broken:
            self.reject(accept.RequestError("The answer broke off.", None, None, 502, "server_error"), body)
        else:
            self.reply(200, answer.json(), broken)

    # ---- requests

    def body(self):
        if "chunked" not in self.headers.get("transfer-encoding", ""):
            return self.rfile.read(int(self.headers.get("content-length", 0)))
        body = b""
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass
        return body

    def parsed(self, body):
        if "application/json" not in self.headers.get("content-type", ""):
            raise accept.RequestError("Unsupported content type: expected application/json.", None, "unsupported_content_type")
        try:
            return json.loads(body)
        except ValueError as error:
            raise accept.RequestError(f"We could not parse the JSON body of your request: {error}", None, None) from None

    # ---- responses

    def reject(self, error, body=b""):
        print(f"{self.command} {self.path}: {error.status} {error}", body.decode(errors="replace"), file=sys.stderr, flush=True)
        self.reply(error.status, error.body)

    def reply(self, status, document, broken=False):
        body = json.dumps(document, ensure_ascii=False).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if broken else body)
        self.close_connection = self.close_connection or broken

    def stream(self, frames, broken):
        self.send_response(200)
        self.send_header("content-type", "text/event-stream; charset=utf-8")
        self.send_header("cache-control", "no-cache")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for event, data in frames[: len(frames) // 2] if broken else frames:
            frame = (f"event: {event}\n" if event else "") + f"data: {data}\n\n"
            self.chunk(frame.encode())
        if broken:
            self.close_connection = True
        else:
            self.chunk(b"")

    def chunk(self, data):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        # Ignores client disconnects.
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mode", choices=["sse", "json", "requested"], required=True)
    server = Server(("127.0.0.1", 0), Handler)
    server.mode = parser.parse_args().mode
    print(f"listening on http://127.0.0.1:{server.server_port}/v1", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
