#!/usr/bin/env node
// Runs a JavaScript or TypeScript extension as a process of pinch: `node pinch-extension-host.mjs FILE`.
//
// It speaks JSON-RPC 2.0 over standard input and output, one message per line, and calls the extension's default export with a `pi` object.
// Everything the extension prints goes to standard error. Requires Node 20 or newer; TypeScript requires type stripping (22.18 or newer).

import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

import "./imports.mjs";
import { components } from "./components.mjs";
import { makeCommandContext, makeContext } from "./context.mjs";
import { drawCall, drawMessage } from "./drawing.mjs";
import { runEvent } from "./events.mjs";
import { describeHooks, runHook } from "./hooks.mjs";
import { fatal, progress, send, serve } from "./link.mjs";
import { streams } from "./models.mjs";
import { answerFor } from "./providers.mjs";
import {
  commands,
  describeTool,
  flags,
  handlers,
  pi,
  providers,
  renderers,
  shortcuts,
  tools,
  topics,
} from "./registrations.mjs";
import { screen } from "./screen.mjs";

const [file] = process.argv.slice(2);
if (!file) {
  console.error("usage: pinch-extension-host.mjs FILE.js|.mjs|.ts");
  process.exit(2);
}

// The console keeps the standard output that it was made for.
for (const name of ["log", "info", "debug"]) console[name] = console.error.bind(console);

const methods = {
  initialize(params) {
    progress.start = params;
    progress.isInitialized = true;
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
  "provider/stream": answerFor,
  "render/message": drawMessage,
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

serve(methods);
