// `ctx.modelRegistry`: what pinch knows about models, and calls of them.

import { forTheMoment } from "./link.mjs";

/** Answers that are being streamed, by the id of the stream. */
export const streams = new Map();
let nextStream = 1;

/** An answer as it arrives: an iterator of pi's events, and `result`. */
function makeAnswerStream(finished) {
  const events = [];
  const readers = [];
  let partial;
  let isOver = false;
  const push = (event) => {
    const reader = readers.shift();
    if (reader) reader({ value: event, done: false });
    else events.push(event);
  };
  const end = () => {
    isOver = true;
    for (const reader of readers.splice(0)) reader({ value: undefined, done: true });
  };
  const result = finished.then((message) => {
    const isFailure = message.stopReason === "error" || message.stopReason === "aborted";
    push({ type: isFailure ? "error" : "done", reason: message.stopReason, [isFailure ? "error" : "message"]: message });
    end();
    return message;
  });
  result.catch(end);
  return {
    /** Takes in an event of pinch, which has no message so far. */
    feed({ block, message, ...event }) {
      if (message) partial = message;
      const { type, contentIndex, delta } = event;
      if (block) partial.content[contentIndex] = block;
      const open = partial.content[contentIndex];
      if (type === "text_delta") open.text += delta;
      if (type === "thinking_delta") open.thinking += delta;
      if (type === "toolcall_end") event.toolCall = open;
      if (type === "text_end") event.content = open.text;
      if (type === "thinking_end") event.content = open.thinking;
      push({ ...event, partial });
    },
    result: () => result,
    [Symbol.asyncIterator]: () => ({
      next: async () => {
        if (events.length > 0) return { value: events.shift(), done: false };
        if (isOver) return { value: undefined, done: true };
        return new Promise((done) => void readers.push(done));
      },
    }),
  };
}

/** The models that pinch knows, and calls of them with its credentials. */
export function makeModelRegistry(ask, askNow) {
  const all = forTheMoment(() => askNow("models/list"));
  const byProvider = forTheMoment(() => new Map());
  const provider = (name) => {
    const known = byProvider();
    if (!known.has(name)) known.set(name, askNow("models/provider", { provider: name }));
    return known.get(name);
  };
  const credentials = async (model) => (await ask("models/credentials", { model })) ?? undefined;
  const call = (model, context, { signal, apiKey, ...options } = {}, params = {}) => {
    if (apiKey !== undefined) throw new Error("Calls use the credentials of pinch; apiKey is not supported");
    const { systemPrompt, messages, tools } = context;
    const declared = tools?.map(({ name, description, parameters }) => ({ name, description, parameters }));
    return ask("models/complete", { model, context: { systemPrompt, messages, tools: declared }, options, ...params }, signal);
  };
  const stream = (model, context, options) => {
    const id = `s${nextStream++}`;
    const finished = call(model, context, options, { stream: id }).finally(() => streams.delete(id));
    const answer = makeAnswerStream(finished);
    streams.set(id, answer);
    return answer;
  };
  return {
    getAll: () => [...all()],
    getAvailable: () => all().filter((model) => provider(model.provider).configured),
    find: (provider, id) => askNow("models/find", { provider, id }),
    hasConfiguredAuth: (model) => provider(model.provider).configured,
    isUsingOAuth: (model) => provider(model.provider).oauth,
    getProviderAuthStatus: (name) => ({ configured: provider(name).configured }),
    getProviderDisplayName: (name) => provider(name).name,
    async getApiKeyAndHeaders(model) {
      try {
        return { ok: true, ...(await credentials(model)) };
      } catch (error) {
        return { ok: false, error: error.message };
      }
    },
    async getApiKeyForProvider(name) {
      const model = all().find((model) => model.provider === name);
      return model && (await credentials(model))?.apiKey;
    },
    complete: (model, context, options) => call(model, context, options),
    stream,
    streamSimple: stream,
    // Nothing is kept for longer than a moment.
    refresh: async () => ({ errors: new Map() }),
    getError: () => undefined,
  };
}
