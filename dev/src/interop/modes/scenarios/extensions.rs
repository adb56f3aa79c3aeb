//! pi extensions, which run unchanged in both programs.

use serde_json::{Value, json};

use super::{ModeScenario, calls, scenario};

/// An extension with this body.
fn extension(body: &str) -> Value {
    json!({"agentFiles": {"extensions/own.js": format!("export default function (pi) {{\n{body}\n}}\n")}})
}

/// The same, with model answers.
fn with_answers(body: &str, answers: Value) -> Value {
    let mut input = extension(body);
    input["serverScript"] = answers;
    input
}

/// A tool that returns its argument.
const TOOL: &str = "pi.registerTool({ name: 'echo', label: 'Echo', description: 'Says it again',
    parameters: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
    async execute(id, params) {
        if (params.text === 'fail') throw new Error('no echo');
        return { content: [{ type: 'text', text: 'echo ' + params.text }], details: { n: params.text.length } };
    } });";

pub(super) fn all() -> Vec<ModeScenario> {
    let echo = |text: &str| ("echo", json!({"text": text}));
    let one_call = || json!([{"tool": {"name": "bash", "args": {"command": "echo hi"}}}, {"text": "done"}]);
    vec![
        calls("a tool of an extension", &[echo("hello"), echo("fail"), ("echo", json!({}))], extension(TOOL)),
        scenario("a tool of an extension that is not chosen", "--mode json -t read -p x", extension(TOOL)),
        scenario("a tool of an extension alone", "--mode json -nbt -p x", extension(TOOL)),
        scenario("no extensions", "--mode json -ne -p x", extension(TOOL)),
        scenario("a command of an extension", "-p '/greet you'", extension(
            "pi.registerCommand('greet', { description: 'Greets', handler: async (args) => { pi.sendUserMessage('hello ' + args); } });",
        )),
        scenario("a flag of an extension", "--mode json --loud -p x", extension(
            "pi.registerFlag('loud', { type: 'boolean', description: 'Loud' });
            pi.on('before_agent_start', async () => ({ message: { customType: 'loud', content: 'loud: ' + (await pi.getFlag('loud')), display: true } }));",
        )),
        scenario("an extension that changes the prompt", "--mode json -p x", extension(
            "pi.on('before_agent_start', async (event) => ({ systemPrompt: 'Forced. ' + event.prompt }));",
        )),
        scenario("an extension that changes what is said", "--mode json -p x", extension(
            "pi.on('input', async (event) => ({ action: 'transform', text: event.text + ' and more' }));",
        )),
        scenario("an extension that handles what is said", "--mode json -p x", extension(
            "pi.on('input', async () => ({ action: 'handled' }));",
        )),
        scenario("an extension that forbids a call", "--mode json -p x", with_answers(
            "pi.on('tool_call', async (event) => event.toolName === 'bash' ? { block: true, reason: 'not here' } : undefined);",
            one_call(),
        )),
        scenario("an extension that changes a result", "--mode json -p x", with_answers(
            "pi.on('tool_result', async () => ({ content: [{ type: 'text', text: 'changed' }] }));",
            one_call(),
        )),
        scenario("an extension that changes the context", "--mode json -p x", extension(
            "pi.on('context', async (event) => ({ messages: [...event.messages, { role: 'user', content: [{ type: 'text', text: 'added' }], timestamp: 1 }] }));",
        )),
        scenario("an extension that keeps something", "--mode json -p x", extension(
            "pi.on('session_start', async () => { pi.appendEntry('kept', { n: 1 }); });
            pi.on('agent_end', async () => { pi.appendEntry('ended', { n: 2 }); });",
        )),
        scenario("an extension that says something later", "--mode json -p x", json!({"serverScript": [{"text": "one"}, {"text": "two"}],
            "agentFiles": extension("let n = 0; pi.on('agent_end', async () => { if (n++ === 0) pi.sendUserMessage('go on', { deliverAs: 'followUp' }); });")["agentFiles"]})),
        scenario("an extension that fails", "--mode json -p x", extension("pi.on('turn_start', async () => { throw new Error('broken'); });")),
        scenario("an extension that cannot be loaded", "-p x", extension("throw new Error('broken');")),
    ]
}
