// Drives the session manager of one version of pi: each question and each answer is a line of JSON.
//
// `node pi.mjs FOLDER`, where FOLDER is the folder of the package.

import { copyFileSync, existsSync, unlinkSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const load = (...file) => import(pathToFileURL(join(process.argv[2], "dist", ...file)).href);
// Since 1.5 the tarball contains the library as one bundle.
const isBundle = process.argv[2].endsWith("package");
const { SessionManager } = await load(...(isBundle ? ["bundle", "index.js"] : ["core", "session-manager.js"]));
const { convertToLlm } = await load(...(isBundle ? ["bundle", "index.js"] : ["core", "messages.js"]));

let session;
let context;

// The method that appends each type of entry. A missing method means that this version does not write such entries.
const append = {
	message: (entry) => session.appendMessage(entry.message),
	thinking_level_change: (entry) => session.appendThinkingLevelChange(entry.thinkingLevel),
	model_change: (entry) => session.appendModelChange(entry.provider, entry.modelId),
	compaction: (entry) =>
		session.appendCompaction(entry.summary, entry.firstKeptEntryId, entry.tokensBefore, entry.details, entry.fromHook, entry.usage),
	branch_summary: (entry) =>
		session.branchWithSummary(entry.target, entry.summary, entry.details, entry.fromHook, entry.usage),
	custom: (entry) => session.appendCustomEntry(entry.customType, entry.data),
	custom_message: (entry) =>
		session.appendCustomMessageEntry(entry.customType, entry.content, entry.display, entry.details),
	label: (entry) => session.appendLabelChange(entry.targetId, entry.label),
	session_info: (entry) => session.appendSessionInfo(entry.name),
	context_edit: (entry) => session.appendContextEdit(entry.targetId, entry.replacement),
	usage: (entry) => session.appendUsage(entry.kind, entry.provider, entry.model, entry.usage, entry.note).id,
};

const does = {
	create: ({ cwd, folder }) => {
		session = SessionManager.create(cwd, folder);
	},
	open: ({ path }) => {
		session = SessionManager.open(path);
	},
	append: ({ entry }) => append[entry.type](entry),
	moveTo: ({ id }) => (id === null ? session.resetLeaf() : session.branch(id)),
	branched: ({ id }) => {
		session.createBranchedSession(id);
	},
	fork: ({ cwd, folder }) => {
		session = SessionManager.forkFrom(session.getSessionFile(), cwd, folder);
	},
	path: () => (existsSync(session.getSessionFile()) ? session.getSessionFile() : null),
	view: ({ path }) => view(path),
	measure: (what) => measure[what.figure](what),
};

// The interpretation of a file, opened from a copy because some versions write on opening.
function view(path) {
	const copy = `${path}.view`;
	copyFileSync(path, copy);
	try {
		const seen = SessionManager.open(copy);
		const { messages, thinkingLevel, model } = seen.buildSessionContext();
		const { version, id, timestamp, cwd, parentSession } = seen.getHeader();
		const [roots, children, labels, labelTimes] = [[], {}, {}, {}];
		const waiting = seen.getTree();
		roots.push(...waiting.map((node) => node.entry.id));
		while (waiting.length > 0) {
			const node = waiting.pop();
			if (node.children.length > 0) children[node.entry.id] = node.children.map((child) => child.entry.id);
			if (node.label !== undefined) labels[node.entry.id] = node.label;
			if (node.labelTimestamp !== undefined) labelTimes[node.entry.id] = node.labelTimestamp;
			waiting.push(...node.children);
		}
		return {
			header: { version, id, timestamp, cwd, parentSession },
			entries: seen.getEntries(),
			tree: { roots, children },
			labels,
			labelTimes,
			leaf: seen.getLeafId(),
			name: seen.getSessionName() ?? null,
			messages,
			sent: convertToLlm(messages),
			thinkingLevel,
			model,
		};
	} finally {
		unlinkSync(copy);
	}
}

// Elapsed and processor milliseconds of each round; the first rounds are for warming up.
async function timed(rounds, work) {
	const [ms, cpu] = [[], []];
	for (let round = 0; round < rounds; round++) {
		const [began, used] = [performance.now(), process.cpuUsage()];
		await work();
		const { user, system } = process.cpuUsage(used);
		ms.push(performance.now() - began);
		cpu.push((user + system) / 1000);
	}
	return { ms, cpu };
}

const measure = {
	open: ({ path, rounds }) => timed(rounds, () => SessionManager.open(path).buildSessionContext()),
	append: async ({ path, rounds }) => {
		session = SessionManager.open(path);
		const message = { role: "user", content: [{ type: "text", text: "message" }], timestamp: 0 };
		return timed(rounds, () => session.appendMessage(message));
	},
	list: ({ cwd, folder, rounds, n }) =>
		timed(rounds, async () => {
			const found = await SessionManager.list(cwd, folder);
			if (found.length !== n) throw new Error(`${found.length} sessions instead of ${n}`);
		}),
	// The caller inspects the process from outside; what is open stays open.
	memory: ({ path }) => {
		session = SessionManager.open(path);
		context = session.buildSessionContext();
		global.gc?.();
	},
};

// Only line feeds end lines: `readline` would also split at U+2028.
async function* lines(input) {
	let rest = "";
	for await (const chunk of input.setEncoding("utf8")) {
		rest += chunk;
		for (let at; (at = rest.indexOf("\n")) >= 0; rest = rest.slice(at + 1)) yield rest.slice(0, at);
	}
}

for await (const line of lines(process.stdin)) {
	let answer;
	try {
		const { do: what, ...given } = JSON.parse(line);
		answer = { ok: (await does[what](given)) ?? null };
	} catch (error) {
		answer = { error: String(error?.message ?? error) };
	}
	process.stdout.write(`${JSON.stringify(answer)}\n`);
}
