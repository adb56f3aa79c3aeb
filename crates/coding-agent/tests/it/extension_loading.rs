//! What JavaScript extensions do while they are loaded.

use pinch_llm::provider::scripted::ScriptedReply as Reply;

use crate::extension_hooks::failures;
use crate::extension_node::{stage, states};

#[tokio::test]
async fn what_is_emitted_before_there_is_a_session_is_heard_when_it_begins() {
    let text = r#"
        const heard = [];
        export default function (pi) {
          pi.events.on("early", (data) => heard.push(data));
          pi.events.emit("early", { n: 1 });
          pi.events.emit("early", 2);
          pi.on("session_start", () => heard.push("begun"));
          pi.on("agent_end", () => pi.appendEntry("heard", heard));
        }"#;
    let Some((mut stage, _folder)) = stage(text, [Reply::text("ok")]).await else { return };
    assert_eq!(failures(&stage.ask("hi").await), []);
    let mut heard = states(&stage);
    assert_eq!(heard.len(), 1);
    let heard = heard.remove(0);
    assert!(heard.contains(r#"{"n":1},2"#) && heard.contains(r#""begun""#), "{heard}");
}

#[tokio::test]
async fn an_error_names_the_command_that_installs_the_libraries_of_pi() {
    let text = r#"
        import nodeModule from "node:module";
        export default async function (pi) {
          const why = async (name) => import(name).then(() => "found", (error) => error.message);
          const seen = await Promise.all(["@mariozechner/pi-tui", "left-pad"].map(why));
          pi.on("agent_end", () => pi.appendEntry("seen", nodeModule.registerHooks ? seen : "too old"));
        }"#;
    let Some((mut stage, _folder)) = stage(text, [Reply::text("ok")]).await else { return };
    assert_eq!(failures(&stage.ask("hi").await), []);
    let states = states(&stage);
    let [seen] = &states[..] else { panic!("{states:?}") };
    if seen.contains("too old") {
        return;
    }
    assert!(seen.contains("The extension imports @mariozechner/pi-tui, which comes with pi."), "{seen}");
    assert!(seen.contains("npm install --ignore-scripts --prefix"), "{seen}");
    assert!(seen.contains("Cannot find package 'left-pad'"), "{seen}");
}
