// What extensions may import: libraries that are installed for all of them, and TypeScript.

import { readFileSync } from "node:fs";
import nodeModule from "node:module";
import { fileURLToPath } from "node:url";

/** What else an import may mean if Node finds nothing: as in TypeScript, and libraries installed for all extensions. */
function* alternatives(specifier, { parentURL }) {
  if (/^\.{1,2}(\/|$)/.test(specifier)) {
    if (/\.[cm]?js$/.test(specifier)) yield [specifier.replace(/js$/, "ts"), parentURL];
    for (const ending of [".ts", ".js", ".mjs", "/index.ts", "/index.js"]) yield [specifier + ending, parentURL];
  } else if (!/^([a-z]+:|\/|#)/.test(specifier)) {
    // Packages of npm are installed there, and with them the libraries that they expect. Those of pi may be inside of it.
    const npm = new URL("../../npm/", import.meta.url);
    yield [specifier, new URL("extension.mjs", npm).href];
    if (LIBRARIES.test(specifier)) yield [specifier, new URL("node_modules/@earendil-works/pi-coding-agent/extension.mjs", npm).href];
  }
}

/** Other names of libraries, as in pi, which extensions import however they were written. */
const ALIASES = [
  [/^@mariozechner\/pi-(ai|tui|agent-core|coding-agent)(?=\/|$)/, "@earendil-works/pi-$1"],
  [/^@sinclair\/typebox(?=\/|$)/, "typebox"],
];
const PI_AI = "@earendil-works/pi-ai";
/** What extensions get as pi-ai: all of its older functions, and `Type`. */
const VIEW = "pinch-view:pi-ai";

/** What pi brings along for its extensions. */
const LIBRARIES = /^(@earendil-works\/pi-(ai|tui|agent-core|coding-agent)|typebox)(\/|$)/;

/** A library of pi that is not installed. */
class MissingLibrary extends Error {
  constructor(name) {
    const prefix = fileURLToPath(new URL("../../npm", import.meta.url));
    const remedy = `npm install --ignore-scripts --prefix '${prefix}' @earendil-works/pi-coding-agent`;
    super(`The extension imports ${name}, which comes with pi. Install pi's libraries, once for all extensions: ${remedy}`);
    // Where Node noticed it says nothing.
    this.stack = this.message;
  }
}

function canonical(specifier) {
  return ALIASES.reduce((name, [pattern, replacement]) => name.replace(pattern, replacement), specifier);
}

// What Node says about its own features is for developers of Node. Warnings of extensions are shown.
const { emitWarning } = process;
process.emitWarning = (warning, options, ...more) => {
  if ((options?.type ?? options) !== "ExperimentalWarning") emitWarning.call(process, warning, options, ...more);
};

/** Resolves an import like Node, or beside the user's packages; `undefined` if there is nothing. */
function find(specifier, context, next) {
  for (const [name, parentURL] of [[specifier, context.parentURL], ...alternatives(specifier, context)]) {
    try {
      return next(name, { ...context, parentURL });
    } catch {
      // The caller has another name to try.
    }
  }
  return undefined;
}

// Node itself neither strips types in node_modules nor knows TypeScript's way to name files. Versions without these functions do without.
nodeModule.registerHooks?.({
  resolve(specifier, context, next) {
    const { parentURL: parent = "" } = context;
    // The libraries themselves mean what they say.
    const isOurs = /\/node_modules\/(@earendil-works|@mariozechner|typebox)\//.test(parent) || parent.startsWith(VIEW);
    const name = isOurs ? specifier : canonical(specifier);
    if (!isOurs && name === PI_AI) {
      const found = [`${PI_AI}/compat`, "typebox"].map((part) => find(part, context, next));
      // Old versions have everything in one.
      if (found.every(Boolean)) return { url: `${VIEW}?${found.map(({ url }) => encodeURIComponent(url)).join("&")}`, shortCircuit: true };
    }
    if (name !== specifier) {
      const found = find(name, context, next);
      if (found) return found;
    }
    try {
      return next(specifier, context);
    } catch (error) {
      for (const [other, parentURL] of alternatives(specifier, context)) {
        try {
          return next(other, { ...context, parentURL });
        } catch {
          // The first error says what was asked for.
        }
      }
      throw isOurs || !LIBRARIES.test(name) ? error : new MissingLibrary(specifier);
    }
  },
  load(url, context, next) {
    if (url.startsWith(VIEW)) {
      const [compat, typebox] = url.slice(VIEW.length + 1).split("&").map((part) => JSON.stringify(decodeURIComponent(part)));
      return { format: "module", source: `export * from ${compat};\nexport { Type } from ${typebox};`, shortCircuit: true };
    }
    const isTypeScript = url.startsWith("file:") && /\.m?ts$/.test(new URL(url).pathname);
    if (!isTypeScript || !nodeModule.stripTypeScriptTypes) return next(url, context);
    const text = readFileSync(fileURLToPath(url), "utf8");
    return { format: "module", source: nodeModule.stripTypeScriptTypes(text, { mode: "transform" }), shortCircuit: true };
  },
});
