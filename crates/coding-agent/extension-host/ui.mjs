// `ctx.ui`: dialogs, and what extensions show.

import { readOverlayOptions, showComponent } from "./components.mjs";
import { report, request } from "./link.mjs";
import { liveTheme, makeTheme, screen } from "./screen.mjs";

const ignored = new Set(); // what was reported as ignored

/** What only pi's own terminal has. As in pi it does nothing without a terminal; where there is one, that is reported once. */
function ignore(what, result) {
  return () => {
    if (screen.themes.length === 0 || ignored.has(what)) return result;
    ignored.add(what);
    report(what, `${what} is not supported by pinch, and ignored`);
    return result;
  };
}

const keptComponents = new Map(); // functions that close the components which stay on the screen, by place
let editorFactory; // of the editor that takes the place of pinch's own

/** Dialogs and what is shown. `own` names the session that the caller means. */
export function makeUi(own) {
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
    addAutocompleteProvider: ignore("ui.addAutocompleteProvider"),
    onTerminalInput: ignore("ui.onTerminalInput", () => {}),
  };
}
