"""An extension that behaves as its first argument says. Standard library only."""

import json
import os
import subprocess
import sys
import time

MOOD = sys.argv[1]
NEXT = [0]
SETTLED = []


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def request(method, **params):
    NEXT[0] += 1
    ident = f"r{NEXT[0]}"
    send({"id": ident, "method": method, "params": params})
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("id") == ident:
            return message.get("result", message.get("error"))


def act(params):
    ctx = params["ctx"]
    seen = {
        "idle": request("isIdle"),
        "entries": len(request("getEntries")),
        "usage": request("getContextUsage")["contextWindow"],
        "level": request("getThinkingLevel"),
        "flag": request("getFlag", name="plan"),
        "confirmed": request("ui/confirm", title="T", message="M"),
        "unknown": request("frob")["message"],
        "exec": request("exec", command="/bin/sh", args=["-c", "echo out; exit 4"], cwd="/"),
    }
    request("sendMessage", message={"customType": "c", "content": "note", "display": True})
    request("setSessionName", name="named")
    request("registerTool", tool={"name": "late", "description": "late"})
    left = request("session/new", generation=ctx["generation"])
    seen["stale"] = request("isIdle", generation=ctx["generation"])["code"]
    seen["fresh"] = request("isIdle", generation=left["generation"])
    request("appendEntry", customType="seen", data=seen)
    return None


def event(params):
    name, payload = params["name"], params["payload"]
    if MOOD == "slow" and name == "tool_call":
        time.sleep(600)
    if name == "tool_call" and MOOD == "dies":
        sys.stderr.write("my last words\n")
        sys.exit(9)
    if name == "tool_call" and MOOD == "command_only":
        return {"block": True, "reason": request("session/new")["message"]}
    if name == "tool_call" and MOOD == "dialog":
        return {"block": not request("ui/confirm", title="T"), "reason": "refused"}
    if name == "agent_end" and NEXT[0] == 0:
        request("appendEntry", customType="kept", data=1)
        request("sendUserMessage", content="go on", deliverAs="followUp")
    if name == "input":
        return {"action": "transform", "text": payload["text"] + "+py"}
    if name == "context":
        return {"messages": payload["messages"] + [{"role": "user", "content": "more", "timestamp": 0}]}
    if name == "context_with_system":
        assert payload["messages"][0]["role"] == "system"
        return {"messages": payload["messages"] + [{"role": "user", "content": "most", "timestamp": 0}]}
    if name == "agent_before_settle" and not SETTLED:
        SETTLED.append(payload)
        entry = {"type": "custom_message", "customType": "c", "content": "one more", "display": True}
        return {"entries": payload["entries"] + [entry], "continue": payload["outcome"] == "completed"}
    if name == "before_agent_start":
        return {"message": {"customType": "c", "content": "behind"}, "systemPrompt": payload["systemPrompt"] + "+py"}
    if name == "tool_result":
        return {"content": [{"type": "text", "text": "changed"}]}
    if name == "message_end" and payload["message"]["role"] == "assistant":
        return {"message": {**payload["message"], "content": [{"type": "text", "text": "mine"}]}}
    return None


def execute(params):
    if MOOD == "garbage":
        for _ in range(200):
            print("no message")
        sys.stdout.flush()
        time.sleep(600)
    if MOOD == "chatty":
        print("one line too many", flush=True)
    if MOOD == "huge":
        sys.stdout.write("x" * (17 << 20))
        sys.stdout.flush()
        time.sleep(600)
    if MOOD == "waits":
        for line in sys.stdin:
            if json.loads(line).get("method") == "$/cancel":
                with open(os.environ["NOTES"], "a") as notes:
                    notes.write("cancelled\n")
                return None
    if MOOD == "tree":
        child = subprocess.Popen(["sleep", "600"])
        return {"content": f"{child.pid} {os.getpid()}"}
    send({"method": "tool/update", "params": {"toolCallId": params["toolCallId"], "partialResult": {"content": "half"}}})
    return {"content": "ran " + json.dumps(params["params"]), "details": {"d": 1}}


for line in sys.stdin:
    message = json.loads(line)
    method, params = message.get("method"), message.get("params") or {}
    if method == "$/cancel":
        with open(os.environ["NOTES"], "a") as notes:
            notes.write("cancelled\n")
    if method == "event" and "id" not in message:
        with open(os.environ["NOTES"], "a") as notes:
            notes.write(json.dumps(params["payload"]) + "\n")
    if method is None or "id" not in message:
        continue
    result = None
    if method == "initialize":
        result = {
            "tools": [{"name": "bash", "description": "a tool", "parameters": {"type": "object"}}],
            "commands": [{"name": "act", "description": "acts", "completes": True}],
            "flags": [{"name": "plan", "type": "boolean", "default": True}],
            "shortcuts": [{"key": "ctrl+x", "description": "runs"}],
            "providers": [{"name": "mine", "config": {"baseUrl": "http://x"}}],
            "subscriptions": [name for name in sys.argv[2].split(",") if name],
        }
    elif method == "event":
        result = event(params)
    elif method == "tool/execute":
        result = execute(params)
    elif method == "command/run":
        result = act(params)
    elif method == "command/complete":
        result = [{"value": params["prefix"] + "1", "label": "one"}]
    send({"id": message["id"], "result": result})
if MOOD == "stubborn":
    import signal

    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(600)
