// Calls a loopback server with the official clients, as their documentation shows. Each call has a separate path so that the server can
// distinguish them; what a client read from the answer is printed as one line of JSON.

import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { GoogleGenAI } from "@google/genai";

const [base] = process.argv.slice(2);
const image = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const schema = { type: "object", properties: { path: { type: "string" } }, required: ["path"] };
const args = { path: "a.txt" };

const at = (api, conversation) => `${base}/${api}/${conversation}`;

const anthropic = {
  text: { messages: [{ role: "user", content: [{ type: "text", text: "hi" }] }], temperature: 0.5 },
  image: {
    messages: [{ role: "user", content: [
      { type: "text", text: "look" },
      { type: "image", source: { type: "base64", media_type: "image/png", data: image } },
    ] }],
  },
  tools: {
    tools: [{ name: "read", description: "Reads a file.", input_schema: schema, eager_input_streaming: true }],
    tool_choice: { type: "any" },
    messages: [
      { role: "user", content: [{ type: "text", text: "read a.txt" }] },
      { role: "assistant", content: [
        { type: "text", text: "ok" },
        { type: "tool_use", id: "call_1", name: "read", input: args },
      ] },
      { role: "user", content: [
        { type: "tool_result", tool_use_id: "call_1", content: "one two", is_error: false },
      ] },
      { role: "assistant", content: [{ type: "text", text: "done" }] },
      { role: "user", content: [{ type: "text", text: "again" }] },
    ],
  },
  thinking: {
    thinking: { type: "enabled", budget_tokens: 2048, display: "summarized" },
    betas: ["interleaved-thinking-2025-05-14"],
    max_tokens: 8000,
    messages: [{ role: "user", content: [{ type: "text", text: "hi" }] }],
  },
};

const completions = {
  text: { messages: [{ role: "user", content: [{ type: "text", text: "hi" }] }], temperature: 0.5 },
  image: {
    messages: [{ role: "user", content: [
      { type: "text", text: "look" },
      { type: "image_url", image_url: { url: `data:image/png;base64,${image}` } },
    ] }],
  },
  tools: {
    tools: [{ type: "function", function: { name: "read", description: "Reads a file.", parameters: schema } }],
    tool_choice: "required",
    messages: [
      { role: "user", content: [{ type: "text", text: "read a.txt" }] },
      { role: "assistant", content: "ok", tool_calls: [
        { id: "call_1", type: "function", function: { name: "read", arguments: JSON.stringify(args) } },
      ] },
      { role: "tool", tool_call_id: "call_1", content: "one two" },
      { role: "assistant", content: "done" },
      { role: "user", content: [{ type: "text", text: "again" }] },
    ],
  },
  thinking: { reasoning_effort: "low", max_completion_tokens: 8000, messages: [{ role: "user", content: [{ type: "text", text: "hi" }] }] },
};

const inputText = (text) => [{ type: "input_text", text }];
const said = (id, text) => ({
  type: "message", role: "assistant", id, status: "completed", content: [{ type: "output_text", text, annotations: [] }],
});

const responses = {
  text: { input: [{ role: "user", content: inputText("hi") }], temperature: 0.5 },
  image: {
    input: [{ role: "user", content: [
      ...inputText("look"),
      { type: "input_image", detail: "auto", image_url: `data:image/png;base64,${image}` },
    ] }],
  },
  tools: {
    tools: [{ type: "function", name: "read", description: "Reads a file.", parameters: schema }],
    tool_choice: "required",
    input: [
      { role: "user", content: inputText("read a.txt") },
      said("msg_pi_1", "ok"),
      { type: "function_call", call_id: "call_1", name: "read", arguments: JSON.stringify(args) },
      { type: "function_call_output", call_id: "call_1", output: "one two" },
      said("msg_pi_3", "done"),
      { role: "user", content: inputText("again") },
    ],
  },
  thinking: {
    reasoning: { effort: "low", summary: "auto" },
    include: ["reasoning.encrypted_content"],
    max_output_tokens: 8000,
    input: [{ role: "user", content: inputText("hi") }],
  },
};

const google = {
  text: { contents: "hi", config: { temperature: 0.5 } },
  image: {
    contents: [{ role: "user", parts: [{ text: "look" }, { inlineData: { mimeType: "image/png", data: image } }] }],
  },
  tools: {
    config: {
      tools: [{ functionDeclarations: [{ name: "read", description: "Reads a file.", parametersJsonSchema: schema }] }],
      toolConfig: { functionCallingConfig: { mode: "ANY" } },
    },
    contents: [
      { role: "user", parts: [{ text: "read a.txt" }] },
      { role: "model", parts: [{ text: "ok" }, { functionCall: { name: "read", args } }] },
      { role: "user", parts: [{ functionResponse: { name: "read", response: { output: "one two" } } }] },
      { role: "model", parts: [{ text: "done" }] },
      { role: "user", parts: [{ text: "again" }] },
    ],
  },
  thinking: {
    contents: "hi",
    config: { maxOutputTokens: 8000, thinkingConfig: { includeThoughts: true, thinkingBudget: 2048 } },
  },
};

function tell(api, conversation, text) {
  console.log(JSON.stringify({ api, conversation, text }));
}

for (const [conversation, body] of Object.entries(anthropic)) {
  const client = new Anthropic({ apiKey: "key", baseURL: at("anthropic-messages", conversation), maxRetries: 0 });
  const stream = client.beta.messages.stream({
    model: "m", max_tokens: 100, system: [{ type: "text", text: "Be brief." }], ...body,
  });
  tell("anthropic-messages", conversation, await stream.finalText());
}

for (const [conversation, body] of Object.entries(completions)) {
  const client = new OpenAI({ apiKey: "key", baseURL: at("openai-completions", conversation), maxRetries: 0 });
  const { messages, ...more } = body;
  const role = conversation === "thinking" ? "developer" : "system";
  const chunks = await client.chat.completions.create({
    model: "m", max_completion_tokens: 100, store: false, stream: true, stream_options: { include_usage: true },
    messages: [{ role, content: "Be brief." }, ...messages], ...more,
  });
  let text = "";
  for await (const chunk of chunks) text += chunk.choices[0]?.delta.content ?? "";
  tell("openai-completions", conversation, text);
}

for (const [conversation, body] of Object.entries(responses)) {
  const client = new OpenAI({ apiKey: "key", baseURL: at("openai-responses", conversation), maxRetries: 0 });
  const { input, ...more } = body;
  const role = conversation === "thinking" ? "developer" : "system";
  const events = await client.responses.create({
    model: "m", max_output_tokens: 100, store: false, stream: true,
    input: [{ role, content: "Be brief." }, ...input], ...more,
  });
  let text = "";
  for await (const event of events) {
    if (event.type === "response.output_text.delta") text += event.delta;
  }
  tell("openai-responses", conversation, text);
}

for (const [conversation, { contents, config }] of Object.entries(google)) {
  const httpOptions = { baseUrl: at("google-generative-ai", conversation), apiVersion: "v1beta" };
  const client = new GoogleGenAI({ apiKey: "key", httpOptions });
  const chunks = await client.models.generateContentStream({
    model: "m", contents, config: { systemInstruction: "Be brief.", maxOutputTokens: 100, ...config },
  });
  let text = "";
  for await (const chunk of chunks) text += chunk.text ?? "";
  tell("google-generative-ai", conversation, text);
}
