// The contexts of handlers, tools and commands.

import { progress, reportFailure, request, requestNow } from "./link.mjs";
import { makeModelRegistry } from "./models.mjs";
import { registerProvider, unregisterProvider } from "./registrations.mjs";
import { screen } from "./screen.mjs";
import { makeSessionDraft, makeSessionManager } from "./session.mjs";
import { makeUi } from "./ui.mjs";

/** What the system prompt is made of, as far as pinch says it. Only sections may be changed: each other change would be lost. */
export function promptOptions({ cwd, selectedTools }) {
  const none = () => Object.freeze([]);
  return Object.freeze({
    cwd,
    selectedTools: Object.freeze(selectedTools),
    hiddenTools: none(),
    toolSnippets: Object.freeze({}),
    toolGuidelines: Object.freeze({}),
    promptGuidelines: none(),
    appendSystemPrompt: "",
    sections: {},
    contextFiles: none(),
    skills: none(),
  });
}

/** The context of a handler, tool or command. What it asks for goes to the session it was made for, or fails. */
export function makeContext(facts = {}, signal) {
  const own = () => (facts.generation === undefined ? {} : { generation: facts.generation });
  const ask = (method, params, signal) => request(method, { ...own(), ...params }, signal);
  const askNow = (method, params) => requestNow(method, { ...own(), ...params });
  return {
    ...facts,
    get model() {
      return askNow("getModel");
    },
    signal,
    cwd: facts.cwd ?? progress.start.cwd,
    hasUI: facts.hasUI ?? progress.start.hasUI,
    // Only a terminal has themes.
    mode: !(facts.hasUI ?? progress.start.hasUI) ? "print" : screen.themes.length > 0 ? "tui" : "rpc",
    ui: makeUi(own),
    isIdle: () => askNow("isIdle"),
    abort: () => ask("abort"),
    hasPendingMessages: () => askNow("hasPendingMessages"),
    shutdown: () => ask("shutdown"),
    getContextUsage: () => askNow("getContextUsage"),
    compact({ customInstructions, onComplete, onError } = {}) {
      if (!onComplete && !onError) return ask("compact", { customInstructions });
      // The session compacts once it is idle, which it would never be if the handler waited.
      ask("compact", { customInstructions, wait: true }).then(onComplete, (error) => onError?.(error)).catch(reportFailure);
    },
    getSystemPrompt: () => askNow("getSystemPrompt"),
    get thinkingLevel() {
      return askNow("getThinkingLevel");
    },
    getModel: () => askNow("getModel"),
    sessionManager: makeSessionManager(facts, askNow),
    modelRegistry: { ...makeModelRegistry(ask, askNow), registerProvider, unregisterProvider },
    get scopedModels() {
      return askNow("models/scoped");
    },
    isProjectTrusted: () => facts.isProjectTrusted ?? false,
  };
}

/** The context of the session that a command has changed to. It also has what `pi` could only do for the session that was left. */
function makeReplacedContext(facts, signal) {
  const ask = (method, params) => request(method, { generation: facts.generation, ...params });
  return Object.assign(makeCommandContext(facts, signal), {
    sendMessage: (message, options = {}) => ask("sendMessage", { message, ...options }),
    sendUserMessage: (content, options = {}) => ask("sendUserMessage", { content, ...options }),
  });
}

/** The context of a command: it may also replace the session. */
export function makeCommandContext(facts, signal) {
  const ask = (method, params) => request(`session/${method}`, { generation: facts.generation, ...params });
  const leave = async (method, params, options = {}) => {
    const left = await ask(method, params);
    if (!left.cancelled && options.withSession) {
      await options.withSession(makeReplacedContext({ ...facts, ...left.session, generation: left.generation }, signal));
    }
    return { cancelled: left.cancelled, selectedText: left.text, editorText: left.text };
  };
  // A copy would look up what the context looks up only when asked.
  return Object.assign(makeContext(facts, signal), {
    getSystemPromptOptions: () =>
      promptOptions(requestNow("getSystemPromptOptions", facts.generation === undefined ? {} : { generation: facts.generation })),
    waitForIdle: () => ask("waitForIdle"),
    async compact({ customInstructions, onComplete, onError } = {}) {
      const done = ask("compact", { customInstructions });
      if (!onComplete && !onError) return done;
      await done.then(onComplete, (error) => onError?.(error));
    },
    async newSession(options = {}) {
      const { log, entries } = makeSessionDraft();
      await options.setup?.(log);
      return leave("new", { parentSession: options.parentSession, entries }, options);
    },
    fork: (entryId, options = {}) => leave("fork", { entryId, position: options.position }, options),
    navigateTree: (targetId, options = {}) =>
      leave("navigate", {
        targetId,
        summarize: options.summarize,
        customInstructions: options.customInstructions,
        replaceInstructions: options.replaceInstructions,
        label: options.label,
      }),
    switchSession: (path, options = {}) => leave("switch", { path }, options),
    reload: () => ask("reload"),
  });
}
