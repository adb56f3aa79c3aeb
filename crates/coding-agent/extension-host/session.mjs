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
    getCwd: () => facts.cwd ?? progress.start.cwd,
  };
}
