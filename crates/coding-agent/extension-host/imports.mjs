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
    // Packages of npm are installed there, and with them the libraries that they expect.
    yield [specifier, new URL("../../npm/extension.mjs", import.meta.url).href];
  }
}

// What Node says about its own features is for developers of Node. Warnings of extensions are shown.
const { emitWarning } = process;
process.emitWarning = (warning, options, ...more) => {
  if ((options?.type ?? options) !== "ExperimentalWarning") emitWarning.call(process, warning, options, ...more);
};

// Node itself neither strips types in node_modules nor knows TypeScript's way to name files. Versions without these functions do without.
nodeModule.registerHooks?.({
  resolve(specifier, context, next) {
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
      throw error;
    }
  },
  load(url, context, next) {
    const isTypeScript = url.startsWith("file:") && /\.m?ts$/.test(new URL(url).pathname);
    if (!isTypeScript || !nodeModule.stripTypeScriptTypes) return next(url, context);
    const text = readFileSync(fileURLToPath(url), "utf8");
    return { format: "module", source: nodeModule.stripTypeScriptTypes(text, { mode: "transform" }), shortCircuit: true };
  },
});
