// Messages and tool calls that extensions draw.

import { progress, request } from "./link.mjs";
import { renderers, tools } from "./registrations.mjs";
import { keyHint, keyText, liveTheme } from "./screen.mjs";

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

/** Returns the lines of a component. Without a component, the part is shown as usual. */
export function drawnLines(component, columns) {
  if (component === undefined || component === null) return {};
  return { lines: component.render(columns).map(String) };
}

/** Draws a part of a tool call with the function of its tool. */
export function drawCall(part, { toolCallId, toolName, args, columns, expanded, result, ...facts }) {
  const drawn = drawnCall(toolCallId);
  const context = {
    ...facts,
    args,
    toolCallId,
    expanded,
    state: drawn.state,
    lastComponent: drawn.last[part],
    cwd: progress.start.cwd,
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

/** Draws a message with the function of its type. */
export function drawMessage({ customType, content, details, columns, expanded }) {
  const message = { role: "custom", customType, content, details, display: true };
  const options = { expanded, outputPad: 0, keyText, keyHint };
  return drawnLines(renderers.get(customType)(message, options, liveTheme), columns);
}
