// `ctx.sessionManager`.

import { dirname } from "node:path";

import { forTheMoment, progress } from "./link.mjs";

/** The session, which can only be read. `ask` asks for entries. Looking up every entry takes one request, not one each. */
export function makeSessionManager(facts, ask) {
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
  const context = forTheMoment(() => ask("getContext"));
  /** The entries that the model's context is made of: those before the latest compaction only as far as it keeps them. */
  const buildContextEntries = () => {
    const path = branch();
    const at = path.findLastIndex((entry) => entry.type === "compaction");
    if (at < 0) return [...path];
    const before = path.slice(0, at);
    const first = before.findIndex((entry) => entry.id === path[at].firstKeptEntryId);
    const kept = first < 0 ? [] : before.slice(first).filter((entry) => entry.message?.role !== "system");
    return [path[at], ...kept, ...path.slice(at + 1)];
  };
  const buildSessionContext = () => {
    const { messages, thinkingLevel, model } = context();
    return { messages: [...messages], thinkingLevel, model };
  };
  return {
    getEntries: () => [...entries()],
    getBranch,
    getLeafEntry,
    getLeafId: () => getLeafEntry()?.id ?? null,
    getEntryCount: () => entries().length,
    getChildren: (parentId) => entries().filter((entry) => entry.parentId === parentId),
    getHeader: () => ask("getHeader"),
    buildContextEntries,
    buildSessionContext,
    buildSessionProjection() {
      const { messages, entryIds } = context();
      const of = (id) => messages.filter((_, at) => entryIds[at] === id);
      const projected = buildContextEntries().map((sourceEntry) => ({ sourceEntry, messages: of(sourceEntry.id) }));
      return { entries: projected, ...buildSessionContext() };
    },
    /** What the model would see after a turn, for events that may ask for another one. */
    previewContext() {
      const { llmMessages } = context();
      const { entries, messages } = this.buildSessionProjection();
      const canContinue = llmMessages.some(({ role }) => role !== "system") && llmMessages.at(-1).role !== "assistant";
      return { contextEntries: entries, contextMessages: messages, llmMessages: [...llmMessages], canContinue };
    },
    isPersisted: () => facts.sessionFile !== undefined,
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
    getCwd: () => facts.cwd ?? progress.start.cwd,
  };
}

/** A session that does not exist yet: what is appended to it is what it begins with. */
export function makeSessionDraft() {
  const entries = [];
  const append = (type, members) => void entries.push({ type, ...members });
  const log = {
    appendMessage: (message) => append("message", { message }),
    appendCustomEntry: (customType, data) => append("custom", { customType, data }),
    appendCustomMessageEntry: (customType, content, display = true, details = undefined) =>
      append("custom_message", { customType, content, display, details }),
    appendSessionInfo: (name) => append("session_info", { name }),
    appendModelChange: (provider, modelId) => append("model_change", { provider, modelId }),
    appendThinkingLevelChange: (thinkingLevel) => append("thinking_level_change", { thinkingLevel }),
    getEntries: () => [...entries],
  };
  return { log, entries };
}
