// Drives an RPC program through pi's own client, step by step, and writes a line of JSON for each step.
//
// `node rpc.mjs PACKAGE PROGRAM.js MODEL_ARGS...`, in the folder in which the program should run. PACKAGE is the folder of pi's package.

import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [packageFolder, cliPath, ...args] = process.argv.slice(2);
// Since 1.5 the tarball contains the library as one bundle.
const library = packageFolder.endsWith("package") ? ["bundle", "index.js"] : ["modes", "rpc", "rpc-client.js"];
const { RpcClient } = await import(pathToFileURL(join(packageFolder, "dist", ...library)).href);
const client = new RpcClient({ cliPath, cwd: process.cwd(), args });

// All output of the program, in order: the client hides answers from its listeners.
let said = [];
const hear = client.handleLine.bind(client);
client.handleLine = (line) => {
	said.push(JSON.parse(line));
	hear(line);
};

// The methods that are called from here.
const called = new Set();
const pi = new Proxy(client, {
	get(target, name) {
		const value = target[name];
		if (typeof value !== "function") return value;
		called.add(name);
		return value.bind(target);
	},
});

// Code outside of steps may fail, too; that ends the dialogue.
const methods = () => Object.getOwnPropertyNames(RpcClient.prototype);
process.on("uncaughtException", (error) => {
	write({ methods: methods(), called: [...called], broken: error.message });
	process.exit(0);
});

const MAX_WAIT = 20_000;
const write = (value) => process.stdout.write(`${JSON.stringify(value)}\n`);

// Waits until a message appears in the output, starting from an index.
async function until(from, is, what) {
	const end = Date.now() + MAX_WAIT;
	for (let at = from; ; ) {
		for (; at < said.length; at++) if (is(said[at])) return said[at];
		if (Date.now() > end) throw new Error(`waited in vain for ${what}`);
		await new Promise((resolve) => setTimeout(resolve, 5));
	}
}
const event = (type) => until(0, (line) => line.type === type, type);

// Trees as lists: long branches exceed the nesting limit of JSON parsers. Commands of a program's own extensions are removed.
function flat(data) {
	if (Array.isArray(data?.commands)) return { ...data, commands: flat(data.commands) };
	if (Array.isArray(data)) return data.filter((command) => command.source !== "extension");
	if (!Array.isArray(data?.tree)) return data;
	const list = [];
	const open = data.tree.map((node) => [0, node]).reverse();
	while (open.length > 0) {
		const [depth, { entry, children, ...more }] = open.pop();
		list.push({ depth, entry, ...more });
		for (const child of [...children].reverse()) open.push([depth + 1, child]);
	}
	return { ...data, tree: list };
}

let n_asks = 0;
// What the program writes because of a step is written before its answer to the next question.
async function flush() {
	const id = `flush_${++n_asks}`;
	const from = said.length;
	client.process.stdin.write(`${JSON.stringify({ id, type: "get_available_thinking_levels" })}\n`);
	await until(from, (line) => line.id === id, "an answer");
	said = said.filter((line) => line.id !== id);
}

let broken = false;
async function step(name, method, work) {
	if (broken) return;
	said = [];
	const row = { step: name, method };
	try {
		const result = await work();
		row.result = result === undefined ? "nothing" : flat(result);
	} catch (error) {
		row.error = error.message;
	}
	try {
		if (client.process) await flush();
	} catch (error) {
		row.error = `${row.error ?? ""} ${error.message}`;
		broken = true;
	}
	row.lines = said.map((line) => (line.data ? { ...line, data: flat(line.data) } : line));
	write(row);
	return row.result;
}

// Starts a prompt, does something while it runs, and waits for its end.
async function during(prompt, begun, work) {
	const over = pi.waitForIdle(MAX_WAIT);
	over.catch(() => {});
	await pi.prompt(prompt);
	await event(begun);
	const result = await work();
	await over;
	return result;
}
// Long enough for everything that results from an interrupted answer to arrive.
const pause = () => new Promise((resolve) => setTimeout(resolve, 200));
const failure = (promise) => promise.then((value) => ({ value: value ?? null }), (error) => ({ error: error.message }));

const IMAGE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

async function looks(when) {
	await step(`getState ${when}`, "getState", () => pi.getState());
	await step(`getMessages ${when}`, "getMessages", () => pi.getMessages());
	await step(`getEntries ${when}`, "getEntries", () => pi.getEntries());
	await step(`getTree ${when}`, "getTree", () => pi.getTree());
	await step(`getForkMessages ${when}`, "getForkMessages", () => pi.getForkMessages());
	await step(`getLastAssistantText ${when}`, "getLastAssistantText", () => pi.getLastAssistantText());
	await step(`getSessionStats ${when}`, "getSessionStats", () => pi.getSessionStats());
}

await step("start", "start", () => pi.start());
await step("getAvailableModels", "getAvailableModels", () => pi.getAvailableModels());
await step("getCommands", "getCommands", () => pi.getCommands());
await looks("of nothing");
await step("clone of nothing", "clone", () => pi.clone());
await step("fork of nothing", "fork", () => pi.fork("nobody00"));
await step("compact of nothing", "compact", () => pi.compact());
await step("abort at rest", "abort", () => pi.abort());
await step("clearQueue at rest", "clearQueue", () => pi.clearQueue());

await step("a plain prompt", "promptAndWait", async () => (await pi.promptAndWait("do plain", undefined, MAX_WAIT)).length > 0);
await looks("of a prompt");
const entries = (await client.getEntries()).entries;
await step("getEntries behind one", "getEntries", () => pi.getEntries(entries.at(-2).id));
await step("getEntries behind the last", "getEntries", () => pi.getEntries(entries.at(-1).id));
await step("getEntries behind nobody", "getEntries", () => pi.getEntries("nobody00"));
await step("a prompt with a tool", "waitForIdle", () => during("do tool", "agent_start", () => "begun"));
await step("a prompt with several tools", "promptAndWait", async () => (await pi.promptAndWait("do tools")).length > 0);
await step("a template", "promptAndWait", async () => (await pi.promptAndWait("/greet World")).length > 0);
await step("a skill", "promptAndWait", async () => (await pi.promptAndWait("/skill:spell do plain")).length > 0);
await step("an empty prompt", "promptAndWait", async () => (await pi.promptAndWait("")).length > 0);
await step("collectEvents", "collectEvents", async () => {
	const events = pi.collectEvents(MAX_WAIT);
	await pi.prompt("do plain");
	return (await events).map((line) => line.type);
});
await step("onEvent", "onEvent", async () => {
	const heard = [];
	const stop = pi.onEvent((line) => {
		heard.push(line.type);
		if (line.type === "turn_start") stop();
	});
	await pi.promptAndWait("do plain");
	return heard;
});

await step("a prompt while one runs", "prompt", () => during("do slow", "turn_start", () => failure(pi.prompt("do plain"))));
await step("steer", "steer", () => during("do slow", "turn_start", () => pi.steer("do steered")));
await step("followUp", "followUp", () => during("do slow", "turn_start", () => pi.followUp("do followed")));
await step("steer and followUp", "steer", () =>
	during("do slow", "turn_start", async () => {
		await pi.followUp("do followed");
		await pi.steer("do steered");
		await pi.steer("do steered too");
		return pi.getState();
	}));
await step("steer with a template", "steer", () => during("do slow", "turn_start", () => pi.steer("/greet You")));
await step("prompt that is queued", "prompt", () =>
	during("do slow", "turn_start", () => client.send({ type: "prompt", message: "do steered", streamingBehavior: "steer" }).then((line) => line.success)));
await step("clearQueue", "clearQueue", () =>
	during("do slow", "turn_start", async () => {
		await pi.steer("do steered");
		await pi.followUp("do followed");
		return pi.clearQueue();
	}));
await step("looks while a prompt runs", "getMessages", () =>
	during("do slow", "turn_start", async () => [(await pi.getState()).isStreaming, (await pi.getMessages()).length, await pi.getLastAssistantText()]));
await step("setModel while a prompt runs", "setModel", () => during("do slow", "turn_start", () => pi.setModel("fake", "m2")));
await step("abort", "abort", () => during("do hang", "message_update", () => pause().then(() => pi.abort())));
await step("abort with a queue", "abort", () =>
	during("do hang", "message_update", async () => {
		await pause();
		await pi.followUp("do followed");
		await pi.abort();
		return pi.clearQueue();
	}));
await step("a prompt after an abort", "promptAndWait", async () => (await pi.promptAndWait("do plain")).length > 0);
await step("steer at rest", "steer", async () => {
	await pi.steer("do steered");
	return (await pi.getState()).pendingMessageCount;
});
await step("followUp at rest", "followUp", async () => {
	await pi.followUp("do followed");
	return (await pi.getState()).pendingMessageCount;
});
await step("a prompt after both", "promptAndWait", async () => (await pi.promptAndWait("do plain")).length > 0);

await step("setModel", "setModel", () => pi.setModel("fake", "m1"));
await step("setModel to the same", "setModel", () => pi.setModel("fake", "m1"));
await step("setModel to nothing", "setModel", () => pi.setModel("fake", "nothing"));
await step("thinking levels of a model without", "getAvailableThinkingLevels", () => pi.getAvailableThinkingLevels());
await step("setThinkingLevel of a model without", "setThinkingLevel", () => pi.setThinkingLevel("high"));
await step("cycleThinkingLevel of a model without", "cycleThinkingLevel", () => pi.cycleThinkingLevel());
await step("setModel to one that thinks", "setModel", () => pi.setModel("fake", "m2"));
await step("getAvailableThinkingLevels", "getAvailableThinkingLevels", () => pi.getAvailableThinkingLevels());
await step("setThinkingLevel", "setThinkingLevel", () => pi.setThinkingLevel("high"));
await step("setThinkingLevel to the same", "setThinkingLevel", () => pi.setThinkingLevel("high"));
await step("cycleThinkingLevel", "cycleThinkingLevel", () => pi.cycleThinkingLevel());
await step("cycleThinkingLevel again", "cycleThinkingLevel", () => pi.cycleThinkingLevel());
await step("a prompt to one that thinks", "promptAndWait", async () => (await pi.promptAndWait("do think")).length > 0);
await step("cycleModel", "cycleModel", () => pi.cycleModel());
await step("cycleModel again", "cycleModel", () => pi.cycleModel());
await step("setModel back", "setModel", () => pi.setModel("fake", "m1"));

await step("setSteeringMode", "setSteeringMode", () => pi.setSteeringMode("all"));
await step("setFollowUpMode", "setFollowUpMode", () => pi.setFollowUpMode("all"));
await step("both modes", "getState", () => pi.getState());
await step("several at once", "steer", () =>
	during("do slow", "turn_start", async () => {
		for (const text of ["do steered one", "do steered two"]) await pi.steer(text);
		for (const text of ["do followed one", "do followed two"]) await pi.followUp(text);
	}));
await step("setSteeringMode back", "setSteeringMode", () => pi.setSteeringMode("one-at-a-time"));
await step("setFollowUpMode back", "setFollowUpMode", () => pi.setFollowUpMode("one-at-a-time"));

await step("an error", "promptAndWait", async () => (await pi.promptAndWait("do failing")).length > 0);
await step("setAutoRetry", "setAutoRetry", () => pi.setAutoRetry(true));
await step("an error that is tried again", "promptAndWait", async () => (await pi.promptAndWait("do fails once")).length > 0);
await step("an error that stays", "promptAndWait", async () => (await pi.promptAndWait("do failing")).length > 0);
await step("an error without hope", "promptAndWait", async () => (await pi.promptAndWait("do refused")).length > 0);
await step("abortRetry", "abortRetry", () => during("do failing", "auto_retry_start", () => pi.abortRetry()));
await step("abort of a retry", "abort", () => during("do failing", "auto_retry_start", () => pi.abort()));
await step("abortRetry at rest", "abortRetry", () => pi.abortRetry());
await step("setAutoRetry back", "setAutoRetry", () => pi.setAutoRetry(false));

await step("bash", "bash", () => pi.bash("printf 'one\\ntwo\\n'; echo three >&2"));
await step("bash that fails", "bash", () => pi.bash("echo no; exit 3"));
await step("bash that says nothing", "bash", () => pi.bash("true"));
await step("bash that a signal ends", "bash", () => pi.bash("kill -KILL $$"));
await step("bash that is not shown", "bash", () =>
	client.send({ type: "bash", command: "echo hidden", excludeFromContext: true }).then((line) => line.data));
await step("bash that says much", "bash", async () => {
	const result = await pi.bash("seq 1 30000");
	return { ...result, output: [result.output.length, result.output.slice(0, 20), result.output.slice(-20)] };
});
await step("abortBash", "abortBash", async () => {
	const running = pi.bash("echo begun; sleep 20");
	await event("bash_execution_update");
	await pi.abortBash();
	return running;
});
await step("abortBash at rest", "abortBash", () => pi.abortBash());
await step("bash while a prompt runs", "bash", () => during("do slow", "turn_start", () => pi.bash("echo beside")));
await step("a prompt after commands", "promptAndWait", async () => (await pi.promptAndWait("do plain")).length > 0);

await step("setSessionName", "setSessionName", () => pi.setSessionName("  a name "));
await step("setSessionName to nothing", "setSessionName", async () => (await client.send({ type: "set_session_name", name: "  " })).error);
await step("setAutoCompaction off", "setAutoCompaction", () => pi.setAutoCompaction(false));
await step("what was set", "getState", () => pi.getState());
await step("setAutoCompaction on", "setAutoCompaction", () => pi.setAutoCompaction(true));
await step("setModel to one that sees", "setModel", () => pi.setModel("fake", "vis"));
await step("an image", "promptAndWait", async () =>
	(await pi.promptAndWait("do plain", [{ type: "image", data: IMAGE, mimeType: "image/png" }])).length > 0);
await step("an image in a queue", "steer", () =>
	during("do slow", "turn_start", () => pi.steer("do steered", [{ type: "image", data: IMAGE, mimeType: "image/png" }])));
await looks("of much");
await step("compact", "compact", () => pi.compact());
await step("compact at once again", "compact", () => pi.compact());
await step("a prompt after a compaction", "promptAndWait", async () => (await pi.promptAndWait("do plain")).length > 0);
await step("compact with a focus", "compact", () => pi.compact("look at names"));
await step("compact that fails", "compact", async () => {
	await client.promptAndWait("do plain");
	return pi.compact("fail now");
});
await looks("of a compaction");

const points = await client.getForkMessages();
const before = await client.getState();
await step("fork", "fork", () => pi.fork(points[2].entryId));
await looks("of a fork");
await step("a prompt in a fork", "promptAndWait", async () => (await pi.promptAndWait("do plain")).length > 0);
await step("fork before the first", "fork", async () => pi.fork((await client.getForkMessages())[0].entryId));
await step("a prompt in an empty fork", "promptAndWait", async () => (await pi.promptAndWait("do plain")).length > 0);
await step("fork of nobody", "fork", () => pi.fork("nobody00"));
await step("clone", "clone", () => pi.clone());
await looks("of a clone");
await step("a prompt in a clone", "promptAndWait", async () => (await pi.promptAndWait("do plain")).length > 0);
await step("newSession", "newSession", () => pi.newSession());
await looks("of a new session");
await step("newSession with a parent", "newSession", () => pi.newSession(before.sessionFile));
await step("a prompt in a new session", "promptAndWait", async () => (await pi.promptAndWait("do plain")).length > 0);
await step("newSession while a prompt runs", "newSession", async () => {
	await pi.prompt("do hang");
	await event("message_update");
	await pause();
	return pi.newSession();
});
await step("switchSession", "switchSession", () => pi.switchSession(before.sessionFile));
await looks("of the old session");
await step("a prompt in the old session", "promptAndWait", async () => (await pi.promptAndWait("do plain")).length > 0);
await step("switchSession to nothing", "switchSession", () => pi.switchSession(join(process.cwd(), "nothing.jsonl")));
await step("switchSession back", "switchSession", () => pi.switchSession(before.sessionFile));
await step("exportHtml", "exportHtml", () => pi.exportHtml(join(process.cwd(), "out.html")));
await step("exportHtml by itself", "exportHtml", () => pi.exportHtml());
await step("an unknown command", "send", async () => (await client.send({ type: "no_such_command" })).error);
// Known differences come last, because they stay in the conversation.
await step("a prompt with broken calls", "promptAndWait", async () => (await pi.promptAndWait("do broken")).length > 0);
await step("an image that is none", "promptAndWait", async () =>
	(await pi.promptAndWait("do plain", [{ type: "image", data: "AAAA", mimeType: "image/png" }])).length > 0);
await step("abort of a command", "abort", () => during("do sleep", "tool_execution_start", () => pi.abort()));
await step("getStderr", "getStderr", () => pi.getStderr());
await step("stop", "stop", async () => {
	const gone = new Promise((resolve) => client.process.once("exit", (code, signal) => resolve({ code, signal })));
	await pi.stop();
	return gone;
});
await step("getState of one that was stopped", "getState", () => pi.getState());
write({ methods: methods(), called: [...called] });
process.exit(0);
