// Answers for the models of providers that an extension has registered.

import { send } from "./link.mjs";
import { streamers } from "./registrations.mjs";

const contentText = (content) =>
  typeof content === "string" ? content : (content ?? []).map((block) => block.text ?? "").join("\n");

/**
 * Returns the conversation as pi passes it: its system messages have the prompt and the tools. Extensions for older versions of pi find both
 * beside the messages.
 */
function transcript({ systemPrompt = "", messages, tools = [] }) {
  if (!messages.some((message) => message.role === "system") && (systemPrompt || tools.length > 0)) {
    messages = [{ role: "system", content: systemPrompt, toolsAdded: tools, timestamp: 0 }, ...messages];
  }
  const texts = [];
  const sections = new Map();
  const current = new Map();
  for (const message of messages) {
    if (message.role !== "system") continue;
    texts.push(contentText(message.content));
    for (const [name, text] of Object.entries(message.sections ?? {})) sections.set(name, text);
    for (const { name } of message.toolsRemoved ?? []) current.delete(name);
    for (const tool of message.toolsAdded ?? []) current.set(tool.name, tool);
  }
  const prompt = [...texts, ...sections.values()].filter(Boolean).join("\n\n");
  return { systemPrompt: prompt, messages, tools: [...current.values()] };
}

/** Returns one of pi's events without the message so far, but with what cannot be told from the events before. */
function lean({ partial, ...event }) {
  const block = partial?.content?.[event.contentIndex];
  switch (event.type) {
    case "start":
      return { type: "start", message: { ...partial, content: undefined } };
    case "text_end":
    case "thinking_end":
      return { type: event.type, contentIndex: event.contentIndex, block };
    case "toolcall_start":
      return { type: event.type, contentIndex: event.contentIndex, id: block?.id ?? "", toolName: block?.name ?? "" };
    case "toolcall_end":
      return { type: event.type, contentIndex: event.contentIndex, block: event.toolCall ?? block };
    case "done":
      return { type: "done", reason: event.reason, usage: event.message.usage, message: event.message };
    case "error": {
      const { usage, errorMessage } = event.error;
      return { type: "error", reason: event.reason, usage, errorMessage, message: event.error };
    }
    default:
      return event;
  }
}

/** Asks the function of a provider for an answer, and passes its events on. */
export async function answerFor({ stream, provider, model, context, options, auth }, signal) {
  const { apiKey, headers, baseUrl, env } = auth ?? {};
  const called = baseUrl ? { ...model, baseUrl } : model;
  const all = { ...options, apiKey, env, signal, headers: { ...headers, ...options.headers } };
  for await (const event of await streamers.get(provider)(called, transcript(context), all)) {
    send({ method: "provider/event", params: { stream, event: lean(event) } });
  }
}
