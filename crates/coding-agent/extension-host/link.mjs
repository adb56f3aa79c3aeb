// Messages to pinch and from it: requests of both sides, answers, and notifications.

import { AsyncLocalStorage } from "node:async_hooks";
import { readSync } from "node:fs";

const waiting = new Map(); // our requests, by id
const running = new Map(); // cancellable requests from pinch, by id
let nextId = 1;

/** How far the extension is: loaded, so that `initialize` was answered, and bound to a session. */
export const progress = { isInitialized: false, isBound: false, start: { cwd: process.cwd(), hasUI: false } };

// Standard output is reserved for messages. What the extension prints is for people, and goes to standard error.
const out = process.stdout;
Object.defineProperty(process, "stdout", { configurable: true, enumerable: true, get: () => process.stderr });

export function send(message) {
  out.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
}

// The session whose handler is running: several sessions may share this process.
export const current = new AsyncLocalStorage();

/** Sends a request and returns its id. */
function sendRequest(method, params) {
  const id = nextId++;
  const within = current.getStore();
  if (within !== undefined && params.generation === undefined) params = { ...params, within };
  send({ id, method, params });
  return id;
}

/** Sends a request and waits for its answer. After the signal, pinch ends it early; some requests have an answer even then. */
export function request(method, params = {}, signal) {
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

/** Returns a function that keeps the result of another one for the moment. */
export function forTheMoment(make) {
  let made;
  return () => {
    if (made?.at === moment) return made.value;
    const value = make();
    made = { value, at: moment };
    setImmediate(() => void moment++);
    return value;
  };
}

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
export function requestNow(method, params = {}) {
  if (!progress.isInitialized) throw new Error(`${method} cannot be used while the extension is loaded`);
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

/** Reports an error of something that has no answer; without a listener it is shown as a note. */
export function report(event, error) {
  void request("report", { event, error }).catch(({ message }) => {
    console.error(message === error ? error : `${error} (${message})`);
  });
}

/** Reports an error that no handler waits for. */
export function reportFailure(error) {
  report("promise", error instanceof Error ? error.message : String(error));
}

export function fatal(error) {
  console.error(error?.stack ?? String(error));
  process.exit(1);
}

let served = {}; // what answers each method of pinch

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
    const method = served[message.method];
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

/** Answers the messages of pinch until it closes standard input. */
export function serve(methods) {
  served = methods;
  // Much that pi does at once is a request here, and extensions do not wait for it. A failure must not end the process.
  process.on("unhandledRejection", reportFailure);
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
}
