// What is on the screen: themes and keys.

/** What is on the screen, as pinch last told. `themes` is empty without a terminal. */
export const screen = { editorText: "", toolsExpanded: false, theme: undefined, themes: [], keys: {} };
/** Themes without colors, for when there is no terminal. */
const PLAIN = { foreground: {}, background: {} };
const currentColors = () => screen.themes.find((theme) => theme.name === screen.theme) ?? PLAIN;

/** The colors of the theme in use, whichever that is. */
const liveColors = {
  get name() {
    return screen.theme;
  },
  get foreground() {
    return currentColors().foreground;
  },
  get background() {
    return currentColors().background;
  },
};

/** A theme with the colors of `layout`. */
export function makeTheme(layout) {
  const wrap = (open, close) => (text) => (open ? `\x1b[${open}m${text}\x1b[${close}m` : String(text));
  return {
    get name() {
      return layout.name ?? screen.theme;
    },
    getFgAnsi: (name) => (layout.foreground[name] ? `\x1b[${layout.foreground[name]}m` : ""),
    getBgAnsi: (name) => (layout.background[name] ? `\x1b[${layout.background[name]}m` : ""),
    fg: (name, text) => wrap(layout.foreground[name], 39)(text),
    bg: (name, text) => wrap(layout.background[name], 49)(text),
    bold: wrap("1", 22),
    dim: wrap("2", 22),
    italic: wrap("3", 23),
    underline: wrap("4", 24),
    inverse: wrap("7", 27),
    strikethrough: wrap("9", 29),
  };
}

export const liveTheme = makeTheme(liveColors);

/** The keys of actions, for renderers. */
export const keyText = (id) => screen.keys[id] ?? "";
export const keyHint = (id, description) => liveTheme.fg("dim", keyText(id)) + liveTheme.fg("muted", ` ${description}`);
