// Components that an extension draws itself.

import { current } from "./link.mjs";
import { makeTheme } from "./screen.mjs";

export const components = new Map(); // open components, by id
let nextComponent = 1;

/** What the editors of extensions that build on pinch's own can ask for, by editor. */
const editorLinks = new WeakMap();

/**
 * Base class of editors that build on pinch's own: keys passed to `handleInput` of this class are handled by pinch, as if the extension had
 * no editor. `render` and `getText` return what it shows and contains since.
 */
export class CustomEditor {
  constructor(tui, theme, keybindings) {
    Object.assign(this, { tui, theme, keybindings });
    editorLinks.set(this, { lines: [], text: "" });
  }
  handleInput(data) {
    editorLinks.get(this).pass?.(data);
  }
  render() {
    return [...editorLinks.get(this).lines];
  }
  getText() {
    return editorLinks.get(this).text;
  }
  setText(text) {
    editorLinks.get(this).text = text;
    editorLinks.get(this).setText?.(text);
  }
  invalidate() {}
}

/** What a footer may show. `facts` are replaced when they change. */
function makeFooterData(facts, listeners) {
  return {
    getGitBranch: () => facts.branch ?? null,
    getExtensionStatuses: () => new Map(Object.entries(facts.statuses)),
    getAvailableProviderCount: () => facts.providers,
    onBranchChange(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
}

/** Returns overlay options as data, and whether the overlay is visible on a screen of this size, if that is known. */
export function readOverlayOptions(options, screen) {
  const { visible, ...data } = (typeof options === "function" ? options() : options) ?? {};
  return { data, isVisible: screen && visible ? Boolean(visible(...screen)) : true };
}

/**
 * Shows a component until it is done, and returns its result; `undefined` if the user closes it. `ui` sends a request, and `place` are its
 * parameters for the place of the component. `onOpen` gets a function that closes it.
 */
export async function showComponent(ui, factory, options = {}, place = {}, onOpen = () => {}) {
  const id = `c${nextComponent++}`;
  const tell = (method, params) =>
    void ui(method, { component: id, ...params }).catch((error) => console.error(error.message));
  let [isHidden, isOffScreen] = [false, false];
  const facts = { branch: null, statuses: {}, providers: 0 };
  const branchListeners = new Set();
  const layout = { columns: 80, rows: 24, foreground: {}, background: {} };
  let component;
  let [hasLayout, isDone, isDrawn] = [false, false, true];
  let result;
  let actions = [];
  const done = (value) => {
    if (isDone) return;
    [isDone, result] = [true, value];
    tell("close");
  };
  onOpen(() => done(undefined));
  // A component that fails must not stay on the screen.
  let failure;
  const guarded = (work) => {
    try {
      return work();
    } catch (error) {
      failure ??= error;
      done(undefined);
    }
  };
  const draw = () => {
    isDrawn = true;
    if (!component || !hasLayout || isDone) return;
    const lines = guarded(() => component.render(layout.columns));
    // Editors that build on pinch's own have its text.
    const text = place.place === "editor" && !editorLinks.has(component) ? component.getText?.() : undefined;
    if (!isDone) tell("draw", { lines: (lines ?? []).map(String), text });
  };
  const requestRender = () => {
    if (isDrawn) setImmediate(draw);
    isDrawn = false;
  };
  const within = current.getStore();
  components.set(id, {
    layout(next) {
      const [before, after] = [layout.screen, next.screen].map(String);
      Object.assign(layout, next);
      hasLayout = true;
      if (next.screen && before !== after) {
        const { data, isVisible } = guarded(() => readOverlayOptions(options.overlayOptions, next.screen)) ?? {};
        isOffScreen = isVisible === false;
        tell("move", { options: data });
        tell("hide", { hidden: isHidden || isOffScreen });
      }
      guarded(() => component?.invalidate?.());
      requestRender();
    },
    key(data, ids) {
      actions = ids;
      const isTaken = current.run(within, () => guarded(() => component?.handleInput?.(data)));
      if (place.place === "editor" && isTaken === false) tell("key", { data });
      requestRender();
    },
    editor(text, lines) {
      const link = editorLinks.get(component);
      if (link) Object.assign(link, { lines }, text == null ? {} : { text });
      else if (text != null && component?.getText?.() !== text) guarded(() => component?.setText?.(text));
      requestRender();
    },
    footer(next) {
      const isOther = next.branch !== facts.branch;
      Object.assign(facts, next);
      if (isOther) for (const listener of branchListeners) guarded(listener);
      requestRender();
    },
  });
  let hasFocus = !(place.options?.nonCapturing ?? false);
  const handle = {
    hide: () => done(undefined),
    setHidden(hidden) {
      isHidden = Boolean(hidden);
      tell("hide", { hidden: isHidden || isOffScreen });
    },
    isHidden: () => isHidden,
    focus: () => tell("focus", { focused: (hasFocus = true) }),
    unfocus: () => tell("focus", { focused: (hasFocus = false) }),
    isFocused: () => hasFocus && !isHidden,
  };
  const shown = ui("custom", { component: id, ...place });
  try {
    const tui = {
      requestRender,
      terminal: {
        get columns() {
          return layout.columns;
        },
        get rows() {
          return layout.rows;
        },
      },
    };
    // Whether the last key is bound to an action.
    const keybindings = { matches: (_data, action) => actions.includes(action) };
    const fourth = place.place === "footer" ? makeFooterData(facts, branchListeners) : keybindings;
    const made = Promise.resolve(factory(tui, makeTheme(layout), fourth, done));
    component = await Promise.race([made, shown.then(() => undefined)]);
    const link = component && editorLinks.get(component);
    if (link) {
      link.pass = (data) => tell("key", { data });
      link.setText = (text) => void ui("setEditorText", { text }).catch((error) => console.error(error.message));
    } else if (place.place === "editor" && component) {
      component.onSubmit = (text) => tell("submit", { text });
    }
    if (place.place === "overlay") options.onHandle?.(handle);
    requestRender();
    await shown;
    if (failure) throw failure;
    return result;
  } catch (error) {
    done(undefined);
    await shown.catch(() => {});
    throw error;
  } finally {
    components.delete(id);
    component?.dispose?.();
  }
}
