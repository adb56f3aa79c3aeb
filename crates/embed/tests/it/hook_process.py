"""A plugin that subscribes to all hooks and misbehaves in one of them. Standard library only.

Arguments: the file for the names of called hooks, the bad hook, how it misbehaves, what its failure means, its time limit.
"""

import json
import sys

LOG, BAD, MOOD, ON_ERROR, LIMIT = sys.argv[1:6]
HOOKS = (
    "before_model_resolve before_agent_start before_agent_run before_prompt_build agent:bootstrap llm_input llm_output agent_end "
    "before_compaction after_compaction before_reset before_tool_call approval_resolved after_tool_call tool_result_persist before_message_write message_received "
    "message_sending message_sent session_start session_end gateway_start gateway_stop"
).split()


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def subscription(name):
    if name != BAD:
        return name
    rules = {"name": name, "timeoutMs": int(LIMIT)}
    return rules if ON_ERROR == "default" else {**rules, "onError": ON_ERROR}


def note(text):
    with open(LOG, "a") as log:
        log.write(text + "\n")


for line in sys.stdin:
    message = json.loads(line)
    method, ident, params = message.get("method"), message.get("id"), message.get("params") or {}
    if method == "initialize":
        send({"id": ident, "result": {"hooks": [subscription(name) for name in HOOKS]}})
    elif method == "$/cancel":
        note("cancelled")
    elif method == "hook":
        name, event = params["name"], params["event"]
        facts = {
            "agent_end": ("final", "outcome"),
            "before_compaction": ("messageCount",),
            "after_compaction": ("messageCount",),
        }
        note(" ".join([name, *(str(event[fact]) for fact in facts.get(name, ()))]))
        mood = MOOD if name == BAD else "fine"
        if mood == "fine":
            send({"id": ident, "result": None})
        elif mood == "fails":
            send({"id": ident, "error": {"code": -32000, "message": "no"}})
        elif mood == "exits":
            sys.exit(3)
        elif mood == "rubbish":
            send({"id": ident, "result": ["rubbish"]})
        elif mood == "noise":
            sys.stdout.write("rubbish\n")
            sys.stdout.flush()
    elif ident is not None and method is not None:
        send({"id": ident, "result": None})
