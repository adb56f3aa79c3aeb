// Events of sessions.

import { makeContext, promptOptions } from "./context.mjs";
import { bind, handlers } from "./registrations.mjs";

// Merges the answers of several handlers of an event. For events not listed, the last answer wins.
function merge(event, payload, answers, answer) {
  if (answer === undefined || answer === null) return false;
  answers.push(answer);
  switch (event) {
    case "tool_call":
      return answer.block === true;
    case "project_trust":
      return answer.trusted !== "undecided";
    case "input":
      if (answer.action === "transform") Object.assign(payload, { text: answer.text, images: answer.images ?? payload.images });
      return answer.action === "handled";
    case "session_before_switch":
    case "session_before_fork":
    case "session_before_compact":
    case "session_before_tree":
      return answer.cancel === true;
    case "before_provider_request":
      payload.payload = answer;
      return false;
    case "before_agent_start":
      payload.systemPrompt = answer.systemPrompt ?? payload.systemPrompt;
      return false;
    default:
      Object.assign(payload, answer);
      return false;
  }
}

export async function runEvent({ name, payload, ctx }, signal) {
  const event = { type: name, ...payload };
  if (name === "session_start") await bind();
  if (name === "before_agent_start") event.systemPromptOptions = promptOptions(event.systemPromptOptions);
  if (name === "turn_end" || name === "agent_before_settle") {
    const { sessionManager } = makeContext(ctx, signal);
    Object.defineProperty(event, "context", { enumerable: true, get: () => sessionManager.previewContext() });
  }
  const input = name === "tool_call" ? JSON.stringify(event.input) : undefined;
  const answers = [];
  for (const handler of handlers.get(name) ?? []) {
    if (merge(name, event, answers, await handler(event, makeContext(ctx, signal)))) break;
  }
  const last = answers.at(-1);
  if (name === "tool_call") {
    // Handlers may modify the arguments in place.
    return JSON.stringify(event.input) === input ? last : { ...last, input: event.input };
  }
  if (name === "input" && last?.action !== "handled" && answers.some((answer) => answer.action === "transform")) {
    return { action: "transform", text: event.text, images: event.images };
  }
  if (name === "before_provider_request") return last;
  if (name === "before_agent_start") {
    const { sections } = event.systemPromptOptions;
    if (answers.length === 0 && Object.keys(sections).length === 0) return undefined;
    // All messages are added; the last system prompt wins, since its handler saw the others.
    const messages = answers.flatMap((answer) => answer.messages ?? answer.message ?? []);
    return { messages, systemPrompt: answers.findLast((answer) => answer.systemPrompt !== undefined)?.systemPrompt, sections };
  }
  return answers.length > 1 ? Object.assign({}, ...answers) : last;
}
