//! What JavaScript extensions may import.

use pinch_llm::provider::scripted::ScriptedReply as Reply;

use crate::extension_hooks::failures;
use crate::extension_node::{stage, states};
use crate::extension_process::{ProcessFixture, program};

/// Writes a library into `node_modules` at import time, since the directory is known only then, and imports it.
const IMPORTS: &str = r#"
    import nodeModule from "node:module";
    import { mkdirSync, writeFileSync } from "node:fs";
    const library = (name, files) => {
      const folder = new URL(`./node_modules/${name}/`, import.meta.url);
      mkdirSync(folder, { recursive: true });
      const exports = Object.fromEntries(Object.keys(files).map((path) => [path, `./${path.slice(2) || "index"}.mjs`]));
      writeFileSync(new URL("package.json", folder), JSON.stringify({ name, exports }));
      for (const [path, text] of Object.entries(files)) writeFileSync(new URL(`${path.slice(2) || "index"}.mjs`, folder), text);
    };
    library("typebox", { ".": "export const Type = 'types';" });
    library("@earendil-works/pi-ai", { ".": "export const complete = 'new';", "./compat": "export const complete = 'old';" });
    library("@earendil-works/pi-tui", { ".": "export const Text = 'text';" });
    export default async function (pi) {
      if (!nodeModule.registerHooks) return pi.on("agent_end", () => pi.appendEntry("too old"));
      const names = ["@earendil-works/pi-ai", "@mariozechner/pi-ai", "@mariozechner/pi-tui", "@sinclair/typebox"];
      const all = await Promise.all(names.map((name) => import(name)));
      pi.on("agent_end", () => pi.appendEntry("seen", all.map((one) => Object.entries(one).join(" "))));
    }"#;

#[tokio::test]
async fn libraries_have_the_names_that_they_have_in_pi() {
    let Some((mut stage, _folder)) = stage(IMPORTS, [Reply::text("ok")]).await else { return };
    assert_eq!(failures(&stage.ask("hi").await), []);
    let expected = r#"seen ["Type,types complete,old","Type,types complete,old","Text,text","Type,types"]"#;
    let states = states(&stage);
    assert!(states == [expected] || states == ["too old null"], "{states:?}");
}

#[tokio::test]
async fn a_library_that_is_installed_inside_of_pi_is_found() {
    let Some(node) = program("node") else { return };
    let agent = tempfile::tempdir().unwrap();
    let host = agent.path().join("bin/host");
    std::fs::create_dir_all(&host).unwrap();
    for file in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/extension-host")).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), host.join(file.file_name())).unwrap();
    }
    let libraries = agent.path().join("npm/node_modules/@earendil-works");
    for (name, text) in [
        ("pi-ai/compat", "export const complete = 'old';"),
        ("pi-coding-agent/node_modules/typebox/index", "export const Type = 'types';"),
    ] {
        let file = libraries.join(name).with_extension("js");
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(
            file.with_file_name("package.json"),
            r#"{"type": "module", "exports": {".": "./index.js", "./compat": "./compat.js"}}"#,
        )
        .unwrap();
        std::fs::write(file, text).unwrap();
    }
    let extension = agent.path().join("extension.mjs");
    let text = r#"
        import nodeModule from "node:module";
        export default async function (pi) {
          const names = nodeModule.registerHooks ? ["@mariozechner/pi-ai", "@sinclair/typebox"] : [];
          const all = await Promise.all(names.map((name) => import(name)));
          pi.on("agent_end", () => pi.appendEntry("seen", all.map((one) => Object.entries(one).join(" "))));
        }"#;
    std::fs::write(&extension, text).unwrap();
    let host = host.join("pinch-extension-host.mjs");
    let command = [&node, &host, &extension].map(|part| part.to_str().unwrap().to_owned());
    let mut stage = ProcessFixture::running(command.to_vec(), [Reply::text("ok")]).await;
    assert_eq!(failures(&stage.ask("hi").await), []);
    let states = states(&stage);
    assert!(states == [r#"seen ["Type,types complete,old","Type,types"]"#] || states == ["seen []"], "{states:?}");
}
