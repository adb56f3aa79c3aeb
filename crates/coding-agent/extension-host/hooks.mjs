// Hooks of embedded runs.

import { hooks, list } from "./registrations.mjs";

/** The hooks as pinch learns them: one entry per name, for all its handlers. */
export function describeHooks() {
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
export async function runHook({ name, event, ctx }) {
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
