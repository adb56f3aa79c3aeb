#!/usr/bin/env python3
"""An extension without any host: `python3 extensions/examples/guard.py`.

It blocks commands that remove everything, and brings a tool along that counts words. Messages are JSON-RPC 2.0, one a line: requests
of pinch come on standard input, answers and requests of our own go to standard output. What is printed elsewhere goes to standard error.
"""

import json
import re
import sys

DANGEROUS = re.compile(r"\brm\s+(-\w+\s+)*-\w*[rf]\w*\s+(/|~)(\s|$)")

TOOL = {
    "name": "count_words_py",
    "label": "Count words",
    "description": "Counts the words of a text.",
    "parameters": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
}


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def initialize(params):
    return {
        "tools": [TOOL],
        "commands": [{"name": "guard-py", "description": "Says that the guard is there"}],
        "subscriptions": ["tool_call"],
    }


def event(params):
    payload = params["payload"]
    command = payload.get("input", {}).get("command") or ""
    if params["name"] == "tool_call" and payload["toolName"] == "bash" and DANGEROUS.search(command):
        return {"block": True, "reason": f'guard: "{command}" removes too much'}
    return None


def execute(params):
    call = params["toolCallId"]
    so_far = {"content": [{"type": "text", "text": "counting"}]}
    send({"method": "tool/update", "params": {"toolCallId": call, "partialResult": so_far}})
    count = len(params["params"]["text"].split())
    return {"content": [{"type": "text", "text": f"{count} words"}], "details": {"count": count}}


def command(params):
    # A request without waiting for its answer: the answer is passed over below.
    send({"id": "note", "method": "ui/notify", "params": {"message": "the guard is there", "type": "info"}})
    return None


METHODS = {"initialize": initialize, "event": event, "tool/execute": execute, "command/run": command}


def main():
    for line in sys.stdin:
        message = json.loads(line)
        method = message.get("method")
        if method is None or "id" not in message:
            continue
        try:
            if method not in METHODS:
                raise ValueError(f"Unknown method: {method}")
            send({"id": message["id"], "result": METHODS[method](message.get("params") or {})})
        except Exception as error:  # pinch is told, and goes on
            send({"id": message["id"], "error": {"code": -32000, "message": str(error)}})


main()
