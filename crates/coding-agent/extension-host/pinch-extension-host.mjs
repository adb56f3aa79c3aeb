#!/usr/bin/env node
// Runs a JavaScript or TypeScript extension as a process of pinch: `node pinch-extension-host.mjs FILE`.
//
// It speaks JSON-RPC 2.0 over standard input and output, one message per line, and calls the extension's default export with a `pi` object.
// Everything the extension prints goes to standard error. Requires Node 20 or newer; TypeScript requires type stripping (22.18 or newer).

import { AsyncLocalStorage } from "node:async_hooks";
import { readFileSync, readSync } from "node:fs";
import nodeModule from "node:module";
import { dirname, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const [file] = process.argv.slice(2);
if (!file) {
  console.error("usage: pinch-extension-host.mjs FILE.js|.mjs|.ts");
  process.exit(2);
}

// Standard output is reserved for messages.
for (const name of ["log", "info", "debug"]) console[name] = console.error.bind(console);

/** What else an import may mean if Node finds nothing: as in TypeScript, and libraries installed for all extensions. */
function* alternatives(specifier, { parentURL }) {
  if (/^\.{1,2}(\/|$)/.test(specifier)) {
    if (/\.[cm]?js$/.test(specifier)) yield [specifier.replace(/js$/, "ts"), parentURL];
    for (const ending of [".ts", ".js", ".mjs", "/index.ts", "/index.js"]) yield [specifier + ending, parentURL];
  } else if (!/^([a-z]+:|\/|#)/.test(specifier)) {
    // Packages of npm are installed there, and with them the libraries that they expect.
    yield [specifier, new URL("../npm/extension.mjs", import.meta.url).href];
  }
}

// Node itself neither strips types in node_modules nor knows TypeScript's way to name files. Versions without these functions do without.
nodeModule.registerHooks?.({
  resolve(specifier, context, next) {
    try {
      return next(specifier, context);
    } catch (error) {
      for (const [other, parentURL] of alternatives(specifier, context)) {
        try {
          return next(other, { ...context, parentURL });
        } catch {
          // The first error says what was asked for.
        }
      }
      throw error;
    }
  },
  load(url, context, next) {
    const isTypeScript = url.startsWith("file:") && /\.m?ts$/.test(new URL(url).pathname);
    if (!isTypeScript || !nodeModule.stripTypeScriptTypes) return next(url, context);
    const text = readFileSync(fileURLToPath(url), "utf8");
    return { format: "module", source: nodeModule.stripTypeScriptTypes(text, { mode: "transform" }), shortCircuit: true };
  },
});

const handlers = new Map(); // event name -> functions, in order of registration
const hooks = new Map(); // hook of an embedding program -> handlers, by descending priority
const tools = new Map();
const commands = new Map();
const shortcuts = new Map();
const flags = new Map();
const renderers = new Map(); // functions that draw messages, by type
const providers = [];
const topics = new Map();
const waiting = new Map(); // our requests, by id
const running = new Map(); // cancellable requests from pinch, by id
const late = []; // registrations made after `initialize`, until there is a session
let nextId = 1;
let isInitialized = false; // `initialize` was answered
let isBound = false; // whether there is a session
let start = { cwd: process.cwd(), hasUI: false };

function send(message) {
  process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
}

// The session whose handler is running: several sessions may share this process.
const current = new AsyncLocalStorage();

/** Sends a request and returns its id. */
function sendRequest(method, params) {
  const id = nextId++;
  const within = current.getStore();
  if (within !== undefined && params.generation === undefined) params = { ...params, within };
  send({ id, method, params });
  return id;
}

/** Sends a request and waits for its answer. After the signal, pinch ends it early; some requests have an answer even then. */
function request(method, params = {}, signal) {
  const id = sendRequest(method, params);
  const cancel = () => send({ method: "$/cancel", params: { id } });
  const answered = new Promise((done, fail) => void waiting.set(id, { done, fail }));
  if (!signal) return answered;
  if (signal.aborted) cancel();
  signal.addEventListener("abort", cancel, { once: true });
  return answered.finally(() => signal.removeEventListener("abort", cancel));
}

/** Counts when the session may have changed: pinch has said something, or the event loop has gone on. */
let moment = 0;

/** Messages of pinch that were read but not handled yet. */
const inbox = [];
let pieces = []; // of a line that has not ended

/** Takes in what was read. Lines end with a line feed only: `node:readline` would also split at U+2028 and U+2029, which are valid in JSON. */
function feed(chunk) {
  let from = 0;
  for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, from)) {
    pieces.push(chunk.subarray(from, end));
    from = end + 1;
    const line = Buffer.concat(pieces).toString("utf8");
    pieces = [];
    if (line.trim()) inbox.push(JSON.parse(line));
    moment++;
  }
  if (from < chunk.length) pieces.push(chunk.subarray(from));
}

const sleeper = new Int32Array(new SharedArrayBuffer(4));
const BLOCK = 64 * 1024; // bytes that are read at once
const NAP = 0.2; // milliseconds until the next attempt to read

/** Waits until something arrives, and takes it in. Meanwhile nothing else runs. */
function readNow() {
  const buffer = Buffer.allocUnsafe(BLOCK);
  for (;;) {
    try {
      const length = readSync(0, buffer);
      if (length === 0) throw new Error("pinch has ended");
      return feed(buffer.subarray(0, length));
    } catch (error) {
      if (error.code !== "EAGAIN") throw error;
      Atomics.wait(sleeper, 0, 0, NAP);
    }
  }
}

/** Asks pinch and returns the answer, as pi returns it: at once. What else arrives before it is handled afterwards. */
function requestNow(method, params = {}) {
  if (!isInitialized) throw new Error(`${method} cannot be used while the extension is loaded`);
  const id = sendRequest(method, params);
  for (let at = 0; ; at++) {
    while (at === inbox.length) readNow();
    const { method, id: answered, error, result } = inbox[at];
    if (method !== undefined || answered !== id) continue;
    inbox.splice(at, 1);
    if (inbox.length > 0) setImmediate(handleInbox);
    if (error) throw new Error(error.message);
    return result ?? undefined;
  }
}

function list(map, key) {
  if (!map.has(key)) map.set(key, []);
  return map.get(key);
}

function notHere(what) {
  return () => {
    throw new Error(`${what} needs the terminal of pi; extensions that run as processes cannot use it`);
  };
}

const components = new Map(); // open components, by id
let nextComponent = 1;
const keptComponents = new Map(); // functions that close the components which stay on the screen, by place
let editorFactory; // of the editor that takes the place of pinch's own

/** What is on the screen, as pinch last told. `themes` is empty without a terminal. */
const screen = { editorText: "", toolsExpanded: false, theme: undefined, themes: [], keys: {} };
/** Themes without colors, for when there is no terminal. */
const PLAIN = { foreground: {}, background: {} };
const currentColors = () => screen.themes.find((theme) => theme.name === screen.theme) ?? PLAIN;

/** The colors of the theme in use, whichever that is. */
const liveColors = {
  get name() {
    return screen.theme;
  },
  get foreground() {
    return currentColors().foreground;
  },
  get background() {
    return currentColors().background;
  },
};

/** A theme with the colors of `layout`. */
function makeTheme(layout) {
  const wrap = (open, close) => (text) => (open ? `\x1b[${open}m${text}\x1b[${close}m` : String(text));
  return {
    get name() {
      return layout.name ?? screen.theme;
    },
    getFgAnsi: (name) => (layout.foreground[name] ? `\x1b[${layout.foreground[name]}m` : ""),
    getBgAnsi: (name) => (layout.background[name] ? `\x1b[${layout.background[name]}m` : ""),
    fg: (name, text) => wrap(layout.foreground[name], 39)(text),
    bg: (name, text) => wrap(layout.background[name], 49)(text),
    bold: wrap("1", 22),
    dim: wrap("2", 22),
    italic: wrap("3", 23),
    underline: wrap("4", 24),
    inverse: wrap("7", 27),
    strikethrough: wrap("9", 29),
  };
}

const liveTheme = makeTheme(liveColors);

/** What the editors of extensions that build on pinch's own can ask for, by editor. */
const editorLinks = new WeakMap();

/**
 * Base class of editors that build on pinch's own: keys passed to `handleInput` of this class are handled by pinch, as if the extension had
 * no editor. `render` and `getText` return what it shows and contains since.
 */
class CustomEditor {
  constructor(tui, theme, keybindings) {
    Object.assign(this, { tui, theme, keybindings });
    editorLinks.set(this, { lines: [], text: "" });
  }
  handleInput(data) {
    editorLinks.get(this).pass?.(data);
  }
  render() {
    return [...editorLinks.get(this).lines];
  }
  getText() {
    return editorLinks.get(this).text;
  }
  setText(text) {
    editorLinks.get(this).text = text;
    editorLinks.get(this).setText?.(text);
  }
  invalidate() {}
}

/** What a footer may show. `facts` are replaced when they change. */
function makeFooterData(facts, listeners) {
  return {
    getGitBranch: () => facts.branch ?? null,
    getExtensionStatuses: () => new Map(Object.entries(facts.statuses)),
    getAvailableProviderCount: () => facts.providers,
    onBranchChange(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
}

/** Returns overlay options as data, and whether the overlay is visible on a screen of this size, if that is known. */
function readOverlayOptions(options, screen) {
  const { visible, ...data } = (typeof options === "function" ? options() : options) ?? {};
  return { data, isVisible: screen && visible ? Boolean(visible(...screen)) : true };
}

/**
 * Shows a component until it is done, and returns its result; `undefined` if the user closes it. `ui` sends a request, and `place` are its
 * parameters for the place of the component. `onOpen` gets a function that closes it.
 */
async function showComponent(ui, factory, options = {}, place = {}, onOpen = () => {}) {
  const id = `c${nextComponent++}`;
  const tell = (method, params) =>
    void ui(method, { component: id, ...params }).catch((error) => console.error(error.message));
  let [isHidden, isOffScreen] = [false, false];
  const facts = { branch: null, statuses: {}, providers: 0 };
  const branchListeners = new Set();
  const layout = { columns: 80, rows: 24, foreground: {}, background: {} };
  let component;
  let [hasLayout, isDone, isDrawn] = [false, false, true];
  let result;
  let actions = [];
  const done = (value) => {
    if (isDone) return;
    [isDone, result] = [true, value];
    tell("close");
  };
  onOpen(() => done(undefined));
  // A component that fails must not stay on the screen.
  let failure;
  const guarded = (work) => {
    try {
      return work();
    } catch (error) {
      failure ??= error;
      done(undefined);
    }
  };
  const draw = () => {
    isDrawn = true;
    if (!component || !hasLayout || isDone) return;
    const lines = guarded(() => component.render(layout.columns));
    // Editors that build on pinch's own have its text.
    const text = place.place === "editor" && !editorLinks.has(component) ? component.getText?.() : undefined;
    if (!isDone) tell("draw", { lines: (lines ?? []).map(String), text });
  };
  const requestRender = () => {
    if (isDrawn) setImmediate(draw);
    isDrawn = false;
  };
  const within = current.getStore();
  components.set(id, {
    layout(next) {
      const [before, after] = [layout.screen, next.screen].map(String);
      Object.assign(layout, next);
      hasLayout = true;
      if (next.screen && before !== after) {
        const { data, isVisible } = guarded(() => readOverlayOptions(options.overlayOptions, next.screen)) ?? {};
        isOffScreen = isVisible === false;
        tell("move", { options: data });
        tell("hide", { hidden: isHidden || isOffScreen });
      }
      guarded(() => component?.invalidate?.());
      requestRender();
    },
    key(data, ids) {
      actions = ids;
      const isTaken = current.run(within, () => guarded(() => component?.handleInput?.(data)));
      if (place.place === "editor" && isTaken === false) tell("key", { data });
      requestRender();
    },
    editor(text, lines) {
      const link = editorLinks.get(component);
      if (link) Object.assign(link, { lines }, text == null ? {} : { text });
      else if (text != null && component?.getText?.() !== text) guarded(() => component?.setText?.(text));
      requestRender();
    },
    footer(next) {
      const isOther = next.branch !== facts.branch;
      Object.assign(facts, next);
      if (isOther) for (const listener of branchListeners) guarded(listener);
      requestRender();
    },
  });
  let hasFocus = !(place.options?.nonCapturing ?? false);
  const handle = {
    hide: () => done(undefined),
    setHidden(hidden) {
      isHidden = Boolean(hidden);
      tell("hide", { hidden: isHidden || isOffScreen });
    },
    isHidden: () => isHidden,
    focus: () => tell("focus", { focused: (hasFocus = true) }),
    unfocus: () => tell("focus", { focused: (hasFocus = false) }),
    isFocused: () => hasFocus && !isHidden,
  };
  const shown = ui("custom", { component: id, ...place });
  try {
    const tui = {
      requestRender,
      terminal: {
        get columns() {
          return layout.columns;
        },
        get rows() {
          return layout.rows;
        },
      },
    };
    // Whether the last key is bound to an action.
    const keybindings = { matches: (_data, action) => actions.includes(action) };
    const fourth = place.place === "footer" ? makeFooterData(facts, branchListeners) : keybindings;
    const made = Promise.resolve(factory(tui, makeTheme(layout), fourth, done));
    component = await Promise.race([made, shown.then(() => undefined)]);
    const link = component && editorLinks.get(component);
    if (link) {
      link.pass = (data) => tell("key", { data });
      link.setText = (text) => void ui("setEditorText", { text }).catch((error) => console.error(error.message));
    } else if (place.place === "editor" && component) {
      component.onSubmit = (text) => tell("submit", { text });
    }
    if (place.place === "overlay") options.onHandle?.(handle);
    requestRender();
    await shown;
    if (failure) throw failure;
    return result;
  } catch (error) {
    done(undefined);
    await shown.catch(() => {});
    throw error;
  } finally {
    components.delete(id);
    component?.dispose?.();
  }
}

/** Dialogs and what is shown. `own` names the session that the caller means. */
function makeUi(own) {
  const ui = (method, params, signal) => request(`ui/${method}`, { ...own(), ...params }, signal);
  const orUndefined = (answer) => answer ?? undefined;
  // Updates are not awaited; a failure must not end the process.
  const show = (method, params) => void ui(method, params).catch((error) => console.error(error.message));
  const dialog = (method, params, { timeout, signal } = {}) => ui(method, { ...params, timeout }, signal).then(orUndefined);
  /** Keeps a component at a place of the screen, or gives the place back. */
  const keep = (params, factory) => {
    const at = JSON.stringify([params.place, params.key]);
    keptComponents.get(at)?.();
    keptComponents.delete(at);
    if (!factory) return;
    let close;
    const shown = showComponent(ui, factory, {}, params, (end) => keptComponents.set(at, (close = end)));
    shown
      .catch((error) => console.error(error.message))
      .finally(() => keptComponents.get(at) === close && keptComponents.delete(at));
  };
  return {
    select: (title, options, more) => dialog("select", { title, options }, more),
    confirm: async (title, message, more) => (await dialog("confirm", { title, message }, more)) === true,
    input: (title, placeholder, more) => dialog("input", { title, placeholder }, more),
    editor: (title, prefill) => dialog("editor", { title, prefill }),
    notify: (message, type) => show("notify", { message, type }),
    setStatus: (key, text) => show("setStatus", { key, text }),
    setWidget: (key, lines, options = {}) => {
      const widget = { place: "widget", key, placement: options.placement };
      keep(widget, typeof lines === "function" ? lines : undefined);
      if (typeof lines !== "function") show("setWidget", { key, lines, placement: options.placement });
    },
    setTitle: (title) => show("setTitle", { title }),
    setEditorText(text) {
      show("setEditorText", { text });
      screen.editorText = String(text);
    },
    pasteToEditor: (text) => show("pasteToEditor", { text }),
    getEditorText: () => screen.editorText,
    setWorkingMessage: (message) => show("setWorkingMessage", { message }),
    setWorkingVisible: (visible) => show("setWorkingVisible", { visible: Boolean(visible) }),
    setWorkingIndicator: ({ frames, intervalMs } = {}) => show("setWorkingIndicator", { frames, intervalMs }),
    setHiddenThinkingLabel: (label) => show("setHiddenThinkingLabel", { label }),
    getToolsExpanded: () => screen.toolsExpanded,
    setToolsExpanded(expanded) {
      show("setToolsExpanded", { expanded: Boolean(expanded) });
      screen.toolsExpanded = Boolean(expanded);
    },
    theme: liveTheme,
    getAllThemes: () => screen.themes.map(({ name, path }) => ({ name, path: path ?? undefined })),
    getTheme(name) {
      const colors = screen.themes.find((theme) => theme.name === name);
      return colors && makeTheme(colors);
    },
    setTheme(theme) {
      const name = typeof theme === "string" ? theme : theme?.name;
      if (screen.themes.length === 0) return { success: false, error: "There is no terminal" };
      if (!screen.themes.some((one) => one.name === name)) return { success: false, error: `Theme not found: ${name}` };
      show("setTheme", { name });
      screen.theme = name;
      return { success: true };
    },
    custom: (factory, options = {}) => {
      if (!options.overlay) return showComponent(ui, factory, options);
      return showComponent(ui, factory, options, { place: "overlay", options: readOverlayOptions(options.overlayOptions).data });
    },
    setFooter: (factory) => keep({ place: "footer" }, factory),
    setHeader: (factory) => keep({ place: "header" }, factory),
    setEditorComponent(factory) {
      editorFactory = factory;
      keep({ place: "editor" }, factory);
    },
    getEditorComponent: () => editorFactory,
    addAutocompleteProvider: notHere("ui.addAutocompleteProvider"),
    onTerminalInput: notHere("ui.onTerminalInput"),
  };
}

/** Returns a function that keeps the result of another one for the moment. */
function forTheMoment(make) {
  let made;
  return () => {
    if (made?.at === moment) return made.value;
    const value = make();
    made = { value, at: moment };
    setImmediate(() => void moment++);
    return value;
  };
}

/** The session, which can only be read. `ask` asks for entries. Looking up every entry takes one request, not one each. */
function makeSessionManager(facts, ask) {
  const entries = forTheMoment(() => ask("getEntries"));
  const branch = forTheMoment(() => ask("getBranch"));
  const byId = forTheMoment(() => new Map(entries().map((entry) => [entry.id, entry])));
  const labels = forTheMoment(() => {
    const latest = new Map();
    for (const entry of entries()) if (entry.type === "label") latest.set(entry.targetId, entry);
    return latest;
  });
  const getBranch = (fromId) => {
    if (fromId === undefined) return [...branch()];
    const path = [];
    for (let entry = byId().get(fromId); entry && path.length < byId().size; entry = byId().get(entry.parentId)) path.push(entry);
    return path.reverse();
  };
  const getLeafEntry = () => branch().at(-1);
  return {
    getEntries: () => [...entries()],
    getBranch,
    getLeafEntry,
    getLeafId: () => getLeafEntry()?.id ?? null,
    getEntry: (id) => byId().get(id),
    getLabel: (id) => labels().get(id)?.label || undefined,
    getTree() {
      const nodes = new Map();
      for (const entry of entries()) {
        const label = labels().get(entry.id);
        const named = label?.label ? { label: label.label, labelTimestamp: label.timestamp } : {};
        nodes.set(entry.id, { entry, children: [], ...named });
      }
      const roots = [];
      for (const node of nodes.values()) (nodes.get(node.entry.parentId)?.children ?? roots).push(node);
      return roots;
    },
    getSessionId: () => facts.sessionId,
    getSessionFile: () => facts.sessionFile,
    getSessionDir: () => (facts.sessionFile ? dirname(facts.sessionFile) : ""),
    getSessionName: () => ask("getSessionName"),
    getCwd: () => facts.cwd ?? start.cwd,
  };
}

/** Answers that are being streamed, by the id of the stream. */
const streams = new Map();
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
function makeModelRegistry(ask, askNow) {
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
    registerProvider: (name, config) => pi.registerProvider(name, config),
    unregisterProvider: (name) => pi.unregisterProvider(name),
  };
}

/** The context of a handler, tool or command. What it asks for goes to the session it was made for, or fails. */
function makeContext(facts = {}, signal) {
  const own = () => (facts.generation === undefined ? {} : { generation: facts.generation });
  const ask = (method, params, signal) => request(method, { ...own(), ...params }, signal);
  const askNow = (method, params) => requestNow(method, { ...own(), ...params });
  return {
    ...facts,
    get model() {
      return askNow("getModel");
    },
    signal,
    cwd: facts.cwd ?? start.cwd,
    hasUI: facts.hasUI ?? start.hasUI,
    // Only a terminal has themes.
    mode: !(facts.hasUI ?? start.hasUI) ? "print" : screen.themes.length > 0 ? "tui" : "rpc",
    ui: makeUi(own),
    isIdle: () => askNow("isIdle"),
    abort: () => ask("abort"),
    hasPendingMessages: () => askNow("hasPendingMessages"),
    shutdown: () => ask("shutdown"),
    getContextUsage: () => askNow("getContextUsage"),
    compact: (options = {}) => ask("compact", { customInstructions: options.customInstructions }),
    getSystemPrompt: () => askNow("getSystemPrompt"),
    getModel: () => askNow("getModel"),
    sessionManager: makeSessionManager(facts, askNow),
    modelRegistry: makeModelRegistry(ask, askNow),
    get scopedModels() {
      return askNow("models/scoped");
    },
    isProjectTrusted: () => facts.isProjectTrusted ?? false,
  };
}

/** The context of a command: it may also replace the session. */
function makeCommandContext(facts, signal) {
  const ask = (method, params) => request(`session/${method}`, { generation: facts.generation, ...params });
  const leave = async (method, params, options = {}) => {
    const left = await ask(method, params);
    if (!left.cancelled && options.withSession) {
      await options.withSession(makeCommandContext({ ...facts, generation: left.generation }, signal));
    }
    return { cancelled: left.cancelled, selectedText: left.text, editorText: left.text };
  };
  // A copy would look up what the context looks up only when asked.
  return Object.assign(makeContext(facts, signal), {
    waitForIdle: () => ask("waitForIdle"),
    compact: (options = {}) => ask("compact", { customInstructions: options.customInstructions }),
    newSession: (options = {}) => leave("new", { parentSession: options.parentSession }, options),
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

/** Tells pinch of something that it could not learn at the start: now, or as soon as there is a session. */
function tellLater(method, params) {
  if (isBound) return request(method, params);
  if (isInitialized) late.push({ method, params });
}

/** What pinch learns at the start only: later it would never be asked for. */
function onlyAtStart(what) {
  if (isInitialized) throw new Error(`${what} must be called while the extension is loaded`);
}

function describeTool({ name, label, description, parameters, executionMode, outputSchema, renderShell, ...tool }) {
  const parts = { call: tool.renderCall, result: tool.renderResult };
  const renders = Object.keys(parts).filter((part) => parts[part]);
  return { name, label, description, parameters, executionMode, outputSchema, renders, renderShell };
}

/** What the renderers of a tool call share: their state, and the component that each returned last. The oldest are forgotten. */
const drawnCalls = new Map();
const MAX_DRAWN_CALLS = 500;

function drawnCall(id) {
  const drawn = drawnCalls.get(id) ?? { state: {}, last: {} };
  drawnCalls.delete(id);
  drawnCalls.set(id, drawn);
  if (drawnCalls.size > MAX_DRAWN_CALLS) drawnCalls.delete(drawnCalls.keys().next().value);
  return drawn;
}

/** The keys of actions, for renderers. */
const keyText = (id) => screen.keys[id] ?? "";
const keyHint = (id, description) => liveTheme.fg("dim", keyText(id)) + liveTheme.fg("muted", ` ${description}`);

/** Returns the lines of a component. Without a component, the part is shown as usual. */
function drawnLines(component, columns) {
  if (component === undefined || component === null) return {};
  return { lines: component.render(columns).map(String) };
}

/** Draws a part of a tool call with the function of its tool. */
function drawCall(part, { toolCallId, toolName, args, columns, expanded, result, ...facts }) {
  const drawn = drawnCall(toolCallId);
  const context = {
    ...facts,
    args,
    toolCallId,
    expanded,
    state: drawn.state,
    lastComponent: drawn.last[part],
    cwd: start.cwd,
    isPartial: facts.isPartial ?? true,
    isError: facts.isError ?? false,
    showImages: false,
    outputPad: 0,
    invalidate: () => void request("ui/redraw", { toolCallId }).catch((error) => console.error(error.message)),
    keyText,
    keyHint,
  };
  const tool = tools.get(toolName);
  const component =
    part === "call"
      ? tool.renderCall(args, liveTheme, context)
      : tool.renderResult(result, { expanded, isPartial: context.isPartial }, liveTheme, context);
  drawn.last[part] = component;
  return drawnLines(component, columns);
}

const pi = {
  CustomEditor,
  on(event, handler) {
    if (!handlers.has(event)) onlyAtStart(`pi.on("${event}")`);
    const all = list(handlers, event);
    all.push(handler);
    // Create a new list: the old one may be being iterated.
    return () => void handlers.set(event, handlers.get(event).filter((other) => other !== handler));
  },
  /**
   * Subscribes to a hook of the program that embeds pinch, such as `before_prompt_build`. Options: `priority` (higher first), `onError` ("block" or
   * "allow": what a failure of a guard means), `timeoutMs`.
   */
  hook(name, handler, options = {}) {
    onlyAtStart(`pi.hook("${name}")`);
    const all = list(hooks, name);
    all.push({ handler, priority: options.priority ?? 0, onError: options.onError, timeoutMs: options.timeoutMs });
    all.sort((one, other) => other.priority - one.priority);
  },
  registerTool(tool) {
    tools.set(tool.name, tool);
    return tellLater("registerTool", { tool: describeTool(tool) });
  },
  registerCommand(name, command) {
    onlyAtStart("pi.registerCommand");
    commands.set(name, command);
  },
  registerShortcut(key, shortcut) {
    onlyAtStart("pi.registerShortcut");
    shortcuts.set(key, shortcut);
  },
  registerFlag(name, flag) {
    onlyAtStart("pi.registerFlag");
    flags.set(name, flag);
  },
  getFlag: (name) => (isBound ? requestNow("getFlag", { name }) : flags.get(name)?.default),
  registerMessageRenderer(type, renderer) {
    onlyAtStart("pi.registerMessageRenderer");
    renderers.set(type, renderer);
  },
  registerProvider(name, config) {
    if (config.stream || config.streamSimple || config.oauth) notHere("registerProvider with functions")();
    if (!isInitialized) providers.push({ name, config });
    return tellLater("registerProvider", { name, config });
  },
  unregisterProvider(name) {
    // A provider not reported to pinch yet need not be removed there.
    while (!isInitialized && providers.some((one) => one.name === name)) {
      providers.splice(providers.findIndex((one) => one.name === name), 1);
    }
    return tellLater("unregisterProvider", { name });
  },
  sendMessage: (message, options = {}) => request("sendMessage", { message, ...options }),
  sendUserMessage: (content, options = {}) => request("sendUserMessage", { content, ...options }),
  appendEntry: (customType, data) => request("appendEntry", { customType, data }),
  setSessionName: (name) => request("setSessionName", { name }),
  getSessionName: () => requestNow("getSessionName"),
  setLabel: (entryId, label) => request("setLabel", { entryId, label }),
  exec: (command, args = [], options = {}) =>
    request("exec", { command, args, cwd: options.cwd, timeout: options.timeout }, options.signal),
  getActiveTools: () => requestNow("getActiveTools"),
  getAllTools: () => requestNow("getAllTools"),
  setActiveTools: (names) => request("setActiveTools", { names }),
  getCommands: () => requestNow("getCommands"),
  setModel: (model) => request("setModel", { provider: model.provider, model: model.id }),
  getThinkingLevel: () => requestNow("getThinkingLevel"),
  setThinkingLevel: (level) => request("setThinkingLevel", { level }),
  events: {
    emit: (topic, data) => request("events/emit", { topic, data }),
    on(topic, handler) {
      const all = list(topics, topic);
      all.push(handler);
      if (isBound && all.length === 1) void request("events/subscribe", { topic }).catch(fatal);
      return () => void all.splice(all.indexOf(handler) >>> 0, 1);
    },
  },
};

// Reports an error of a notification, which has no answer; without a listener it is shown as a note.
function report(event, error) {
  void request("report", { event, error }).catch((failure) => console.error(`${error} (${failure.message})`));
}

function fatal(error) {
  console.error(error?.stack ?? String(error));
  process.exit(1);
}

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

async function runEvent({ name, payload, ctx }, signal) {
  const event = { type: name, ...payload };
  if (name === "session_start") {
    isBound = true;
    for (const { method, params } of late.splice(0)) await request(method, params);
    for (const topic of topics.keys()) await request("events/subscribe", { topic });
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
  if (name === "before_agent_start" && answers.length > 0) {
    // All messages are added; the last system prompt wins, since its handler saw the others.
    const messages = answers.flatMap((answer) => answer.messages ?? answer.message ?? []);
    return { messages, systemPrompt: answers.findLast((answer) => answer.systemPrompt !== undefined)?.systemPrompt };
  }
  return answers.length > 1 ? Object.assign({}, ...answers) : last;
}

/** The hooks as pinch learns them: one entry per name, for all its handlers. */
function describeHooks() {
  // Answers may contain functions to call when an approval is resolved.
  if (hooks.has("before_tool_call")) list(hooks, "approval_resolved").push({ handler: resolveApproval, priority: 0 });
  return [...hooks].map(([name, all]) => {
    const limits = all.map((one) => one.timeoutMs);
    const onError = ["block", "allow"].find((word) => all.some((one) => one.onError === word));
    // Handlers run one after another.
    const timeoutMs = limits.includes(undefined) ? undefined : limits.reduce((sum, one) => sum + one, 0);
    return { name, priority: all[0].priority, onError, timeoutMs };
  });
}

/** Members of answers whose values are joined with blank lines, and those of which the first value counts. For others the last one counts. */
const JOINED = new Set(["prependContext", "prependSystemContext", "appendSystemContext"]);
const FIRST = new Set(["providerOverride", "modelOverride"]);

/** Functions to call when the approval of a tool call is resolved: id of the call -> functions. */
const resolutions = new Map();

/** Tells the handlers that required the approval of a call how it was resolved. */
async function resolveApproval({ toolCallId, resolution }) {
  const all = resolutions.get(toolCallId) ?? [];
  resolutions.delete(toolCallId);
  for (const call of all) await call(resolution);
}

/** Calls the handlers of a hook and merges their answers as pinch merges those of several processes. */
async function runHook({ name, event, ctx }) {
  const all = hooks.get(name) ?? [];
  let merged;
  // Functions cannot be sent. They are kept only if the hook succeeds, because nothing is resolved otherwise.
  let required = [];
  const { toolCallId } = event ?? {};
  for (const { handler, onError } of all) {
    let answer;
    try {
      answer = await handler(event, ctx);
    } catch (error) {
      // Alone it fails as a whole; a guard always does. Otherwise the other handlers still count.
      if (all.length === 1 || onError === "block" || (name === "before_tool_call" && onError !== "allow")) throw error;
      console.error(`${name}: ${error?.message ?? error}`);
      continue;
    }
    if (answer === undefined || answer === null) continue;
    if (typeof answer !== "object") throw new Error(`${name} returned no object`);
    const onResolution = answer.requireApproval?.onResolution;
    if (name === "before_tool_call" && typeof onResolution === "function") required.push(onResolution);
    merged ??= {};
    for (const [member, value] of Object.entries(answer)) {
      if (value === undefined || value === null) continue;
      if (JOINED.has(member)) merged[member] = merged[member] ? `${merged[member]}\n\n${value}` : value;
      else if (member === "params") merged.params = { ...merged.params, ...value };
      else if (!FIRST.has(member) || merged[member] === undefined) merged[member] = value;
    }
    if (merged.block === true) required = [];
    if (merged.block === true || merged.reject === true) break;
    // The next handler sees the changes of this one.
    if (merged.params) event = { ...event, params: { ...event.params, ...merged.params } };
    if (merged.message && typeof merged.message === "object") event = { ...event, message: merged.message };
  }
  if (required.length > 0) list(resolutions, toolCallId).push(...required);
  return merged;
}

const methods = {
  initialize(params) {
    start = params;
    isInitialized = true;
    return {
      tools: [...tools.values()].map(describeTool),
      commands: [...commands].map(([name, { description, getArgumentCompletions }]) => ({
        name,
        description,
        completes: typeof getArgumentCompletions === "function",
      })),
      shortcuts: [...shortcuts].map(([key, { description }]) => ({ key, description })),
      flags: [...flags].map(([name, flag]) => ({ name, ...flag })),
      messageRenderers: [...renderers.keys()],
      providers,
      subscriptions: [...new Set([...handlers.keys(), "session_start"])],
      hooks: describeHooks(),
    };
  },
  event: runEvent,
  hook: runHook,
  async "tool/execute"({ toolCallId, name, params, ctx }, signal) {
    const update = (partialResult) => send({ method: "tool/update", params: { toolCallId, partialResult } });
    return await tools.get(name).execute(toolCallId, params, signal, update, makeContext(ctx, signal));
  },
  async "command/run"({ name, args, ctx }, signal) {
    await commands.get(name).handler(args, makeCommandContext(ctx, signal));
  },
  async "command/complete"({ name, prefix }) {
    return await commands.get(name).getArgumentCompletions(prefix);
  },
  async "shortcut/run"({ key, ctx }, signal) {
    await shortcuts.get(key).handler(makeContext(ctx, signal));
  },
  "render/message"({ customType, content, details, columns, expanded }) {
    const message = { role: "custom", customType, content, details, display: true };
    const options = { expanded, outputPad: 0, keyText, keyHint };
    return drawnLines(renderers.get(customType)(message, options, liveTheme), columns);
  },
  "render/toolCall": (params) => drawCall("call", params),
  "render/toolResult": (params) => drawCall("result", params),
  "ui/layout"({ component, ...layout }) {
    components.get(component)?.layout(layout);
  },
  "ui/key"({ component, data, actions }) {
    components.get(component)?.key(data, actions);
  },
  "ui/editor"({ component, text, lines }) {
    components.get(component)?.editor(text, lines);
  },
  "ui/footer"({ component, branch, statuses, providers }) {
    components.get(component)?.footer({ branch, statuses, providers });
  },
  "models/event"({ stream, event }) {
    streams.get(stream)?.feed(event);
  },
  "ui/screen"(news) {
    Object.assign(screen, news);
  },
  "events/heard"({ topic, data }) {
    for (const handler of topics.get(topic) ?? []) handler(data);
  },
};

async function receive(message) {
  if (message.method === undefined) {
    const asked = waiting.get(message.id);
    waiting.delete(message.id);
    if (message.error) asked?.fail(new Error(message.error.message));
    else asked?.done(message.result);
    return;
  }
  if (message.method === "$/cancel") {
    running.get(message.params.id)?.abort();
    return;
  }
  const stop = new AbortController();
  if (message.id !== undefined) running.set(message.id, stop);
  try {
    const method = methods[message.method];
    if (!method) throw new Error(`Unknown method: ${message.method}`);
    const result = await current.run(message.params?.ctx?.generation, () => method(message.params ?? {}, stop.signal));
    if (message.id !== undefined) send({ id: message.id, result: result ?? null });
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    if (message.id === undefined) report(message.params?.name ?? message.method, text);
    else send({ id: message.id, error: { code: -32000, message: text } });
  } finally {
    running.delete(message.id);
  }
}

// Notifications of events are handled in order, before the requests of events that follow them. All other requests are handled concurrently.
let notifications = Promise.resolve();
function handleInbox() {
  while (inbox.length > 0) {
    const message = inbox.shift();
    if (message.method !== "event") {
      void receive(message);
      continue;
    }
    const handled = notifications.then(() => receive(message));
    if (message.id === undefined) notifications = handled;
  }
}

try {
  const extension = await import(pathToFileURL(resolve(file)).href);
  // A function as for pi, or an object with `register` as for OpenClaw, whose plugins subscribe to hooks with `on`.
  const { default: made } = extension;
  const register = typeof made === "object" ? (made?.register ?? made?.activate) : undefined;
  if (typeof made === "function") await made(pi);
  else if (typeof register === "function") {
    const logger = { debug: console.debug, info: console.info, warn: console.warn, error: console.error };
    await register.call(made, { ...pi, id: made.id, name: made.name, on: pi.hook, logger });
  } else throw new Error(`${file} has no function as its default export`);
} catch (error) {
  fatal(error);
}

process.stdin.on("data", (chunk) => {
  feed(chunk);
  handleInbox();
});
// Handle pending notifications before exiting, and report their failures.
process.stdin.on("end", () => {
  feed(Buffer.from("\n"));
  handleInbox();
  void notifications.finally(() => process.exit(0));
});
