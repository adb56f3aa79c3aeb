// `pi`: what an extension registers, and its actions outside of handlers.

import { CustomEditor } from "./components.mjs";
import { fatal, progress, request, requestNow } from "./link.mjs";

export const handlers = new Map(); // event name -> functions, in order of registration
export const hooks = new Map(); // hook of an embedding program -> handlers, by descending priority
export const tools = new Map();
export const commands = new Map();
export const shortcuts = new Map();
export const flags = new Map();
export const renderers = new Map(); // functions that draw messages, by type
export const providers = [];
export const streamers = new Map(); // functions that answer for the models of a provider
export const topics = new Map();
const late = []; // registrations made after `initialize`, until there is a session
const early = []; // what was emitted before there was a session

export function list(map, key) {
  if (!map.has(key)) map.set(key, []);
  return map.get(key);
}

/** Tells pinch of something that it could not learn at the start: now, or as soon as there is a session. */
function tellLater(method, params) {
  if (progress.isBound) return request(method, params);
  if (progress.isInitialized) late.push({ method, params });
}

/** What pinch learns at the start only: later it would never be asked for. */
function onlyAtStart(what) {
  if (progress.isInitialized) throw new Error(`${what} must be called while the extension is loaded`);
}

/** Reports that pinch has no use for something, which must not keep the extension from loading. */
function reportIgnored(event, what) {
  const params = { event, error: `${what} is not supported by pinch, and ignored` };
  if (progress.isBound) void request("report", params);
  else late.push({ method: "report", params });
}

/** Registers something that pi draws, which concerns only those who see the screen. */
function ignoreDrawing(name) {
  return (type) => {
    drawings.add(typeof type === "string" ? `${name}("${type}")` : name);
    if (progress.isBound) reportDrawings();
  };
}

const drawings = new Set();

function reportDrawings() {
  for (const what of drawings) if (progress.start.hasUI) reportIgnored(what.split("(")[0], `pi.${what}`);
  drawings.clear();
}

export function describeTool({ name, label, description, parameters, executionMode, outputSchema, renderShell, ...tool }) {
  const parts = { call: tool.renderCall, result: tool.renderResult };
  const renders = Object.keys(parts).filter((part) => parts[part]);
  return { name, label, description, parameters, executionMode, outputSchema, renders, renderShell };
}

export function registerProvider(name, config) {
  const { streamSimple, stream = streamSimple, oauth, refreshModels, images, classifiers, ...definition } = config;
  if (stream) streamers.set(name, stream);
  for (const [what, given] of Object.entries({ oauth, refreshModels, images, classifiers })) {
    if (given) reportIgnored("registerProvider", `${what} of provider ${name}`);
  }
  const provider = { name, config: definition, streams: streamers.has(name) };
  if (!progress.isInitialized) providers.push(provider);
  return tellLater("registerProvider", provider);
}

export function unregisterProvider(name) {
  streamers.delete(name);
  // A provider not reported to pinch yet need not be removed there.
  while (!progress.isInitialized && providers.some((one) => one.name === name)) {
    providers.splice(providers.findIndex((one) => one.name === name), 1);
  }
  return tellLater("unregisterProvider", { name });
}

export const pi = {
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
  getFlag: (name) => (progress.isBound ? requestNow("getFlag", { name }) : flags.get(name)?.default),
  registerMessageRenderer(type, renderer) {
    onlyAtStart("pi.registerMessageRenderer");
    renderers.set(type, renderer);
  },
  registerEntryRenderer: ignoreDrawing("registerEntryRenderer"),
  registerMarkdownTransformer: ignoreDrawing("registerMarkdownTransformer"),
  registerToolRenderer: ignoreDrawing("registerToolRenderer"),
  registerProvider,
  unregisterProvider,
  registerVirtualModel: ({ provider, id }) => reportIgnored("registerVirtualModel", `virtual model ${provider}/${id}`),
  unregisterVirtualModel() {},
  registerMcpServer: (name) => reportIgnored("registerMcpServer", `MCP server ${name}`),
  unregisterMcpServer() {},
  getMcpServers: () => [],
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
    emit: (topic, data) => (progress.isBound ? request("events/emit", { topic, data }) : void early.push({ topic, data })),
    on(topic, handler) {
      const all = list(topics, topic);
      all.push(handler);
      if (progress.isBound && all.length === 1) void request("events/subscribe", { topic }).catch(fatal);
      return () => void all.splice(all.indexOf(handler) >>> 0, 1);
    },
  },
};

/** Tells pinch what was registered before there was a session. */
export async function bind() {
  progress.isBound = true;
  reportDrawings();
  for (const { method, params } of late.splice(0)) await request(method, params);
  for (const topic of topics.keys()) await request("events/subscribe", { topic });
  for (const emitted of early.splice(0)) await request("events/emit", emitted);
}
