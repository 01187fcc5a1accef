"""Checks a gateway behind nginx: nginx.py PORT LOG-OF-THE-GATEWAY"""

import http.client
import json
import pathlib
import sys
import time

port, log = int(sys.argv[1]), pathlib.Path(sys.argv[2])
LIMIT = 60


def request(text):
    """The response to a streamed question, when its headers are there. The demo pauses between events."""
    for _ in range(LIMIT * 10):
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT)
            body = {"model": "demo", "stream": True, "messages": [{"role": "user", "content": text}]}
            connection.request("POST", "/v1/chat/completions", json.dumps(body), {"content-type": "application/json"})
            return connection, connection.getresponse()
        except ConnectionRefusedError:
            time.sleep(0.1)
    sys.exit("nginx does not listen")


connection, response = request("A story, please.")
assert response.status == 200, response.status
assert response.getheader("content-type", "").startswith("text/event-stream"), response.getheaders()
assert response.getheader("content-encoding") is None, response.getheaders()
arrivals = []
while line := response.readline():
    if line.startswith(b"data: "):
        arrivals.append(time.monotonic())
assert len(arrivals) > 10, f"only {len(arrivals)} frames"
# Buffered frames would arrive together. Half of them must be apart, whatever the machine does.
apart = sum(1 for before, after in zip(arrivals, arrivals[1:]) if after - before > 0.001)
assert apart > len(arrivals) / 2, f"{apart} of {len(arrivals)} frames arrived one by one"

connection, response = request("A story, please.")
response.readline()
response.close()
connection.close()
for _ in range(LIMIT * 10):
    if "client disconnected" in log.read_text():
        print(f"{len(arrivals)} frames through nginx, {apart} of them one by one; a disconnect cancels its turn")
        sys.exit()
    time.sleep(0.1)
sys.exit("the gateway did not notice that the client of nginx disconnected")
