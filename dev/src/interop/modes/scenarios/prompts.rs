//! Inputs and their targets: messages, files, standard input, models, levels, tools.

use serde_json::json;

use super::{ModeScenario, runs, scenario};

/// An image of one pixel.
const PICTURE: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

pub(super) fn all() -> Vec<ModeScenario> {
    let none = || json!({});
    let long = json!({"serverScript": [{"text": "A longer answer, in several pieces.\n\nAnd lines."}]});
    let thinks = json!({"serverScript": [{"blocks": [{"thinking": "I think", "signature": "sg"}, {"text": "Yes"}]}]});
    let files =
        json!({"files": {"a.txt": "content of a\n", "b c.txt": "no newline", "empty.txt": "", "sub/d.md": "# D\n"}});
    let picture = json!({"files": {"p.png": {"base64": PICTURE}, "n.txt": "words\n"}});
    vec![
        scenario("print", "-p hello", long.clone()),
        scenario(
            "print of several messages",
            "-p one two three",
            json!({"serverScript": [{"text": "1"}, {"text": "2"}, {"text": "3"}]}),
        ),
        scenario(
            "print of two blocks",
            "-p hello",
            json!({"serverScript": [{"blocks": [{"text": "one"}, {"tool": {"name": "ls", "args": {}}}, {"text": "two"}]}, {"blocks": [{"text": "a"}, {"text": "b"}]}]}),
        ),
        scenario("print of nothing", "-p hello", json!({"serverScript": [{"text": ""}]})),
        scenario("without anything to say", "-p", none()),
        scenario("an empty message", "-p ''", none()),
        scenario("a dash behind two dashes", "-p -- '- do it' '--now'", none()),
        scenario("a list as message", "-p '--- a list'", none()),
        scenario("json", "--mode json hello", long),
        scenario(
            "json of several messages",
            "--mode json -p one two",
            json!({"serverScript": [{"text": "1"}, {"text": "2"}]}),
        ),
        scenario("json without a session", "--mode json --no-session -p hello", none()),
        scenario(
            "json of one that thinks",
            "--mode json --provider claude --model c2 --thinking high -p hello",
            thinks.clone(),
        ),
        scenario("json of thinking over completions", "--mode json --model m2 --thinking low -p hello", thinks),
        scenario(
            "json with usage and costs",
            "--mode json --model fake/dear -p hello",
            json!({"serverScript": [{"text": "x", "usage": {"input": 1000, "output": 200, "cacheRead": 300, "cacheWrite": 40}}]}),
        ),
        scenario(
            "json with usage and costs of claude",
            "--mode json --model c1 -p hello",
            json!({"serverScript": [{"text": "x", "usage": {"input": 1000, "output": 200, "cacheRead": 300, "cacheWrite": 40, "cache1h": 10}}]}),
        ),
        scenario("a file", "-p @a.txt 'what is it?'", files.clone()),
        scenario(
            "several files",
            "-p @a.txt '@b c.txt' @empty.txt @sub/d.md 'what are they?' 'and more'",
            files.clone(),
        ),
        scenario("a file alone", "--mode json -p @a.txt", files.clone()),
        scenario("a missing file", "-p @missing.txt 'what is it?'", files.clone()),
        scenario("a folder as file", "-p @sub 'what is it?'", files),
        scenario("a picture", "--mode json --model vis -p @p.png look", picture.clone()),
        scenario("a picture for claude", "--mode json --model c2 -p @p.png look", picture.clone()),
        scenario("a picture for one that sees nothing", "--mode json -p @p.png look", picture.clone()),
        scenario("a picture and words", "--mode json --model vis -p @n.txt @p.png look", picture),
        scenario("standard input", "-p", json!({"stdin": "from a pipe\n"})),
        scenario("standard input and a message", "-p 'sum this up'", json!({"stdin": "  from a pipe\nof lines\n\n"})),
        scenario("standard input without -p", "'sum this up'", json!({"stdin": "from a pipe"})),
        scenario(
            "standard input, a file and messages",
            "--mode json -p @n.txt one two",
            json!({"stdin": "piped", "files": {"n.txt": "words\n"}}),
        ),
        scenario("thinking of a model without", "--mode json --thinking high -p x", none()),
        scenario("thinking over completions", "--model m2 --thinking medium -p x", none()),
        scenario("thinking off", "--model m2 --thinking off -p x", none()),
        scenario("thinking beyond the model", "--mode json --model m2 --thinking max -p x", none()),
        scenario("thinking of no such level", "--model m2 --thinking much -p x", none()),
        scenario("thinking by the model's name", "--model fake/m2:low -p x", none()),
        scenario("thinking by both", "--model fake/m2:low --thinking high -p x", none()),
        scenario("thinking by settings", "--model m2 -p x", json!({"settings": {"defaultThinkingLevel": "high"}})),
        scenario("thinking of claude", "--model c2 --thinking xhigh -p x", none()),
        scenario("a model by a part of its name", "--model dea -p x", none()),
        scenario("a model of a provider", "--provider claude --model c1 -p x", none()),
        scenario("a model that two have", "--model m1 -p x", none()),
        scenario("no such model", "--model nothing -p x", none()),
        scenario("no such model of a provider", "--provider fake --model nothing -p x", none()),
        scenario("no such provider", "--provider nobody --model m1 -p x", none()),
        scenario("a provider without a model", "--provider claude -p x", none()),
        scenario("models to go through", "--models 'fake/small,c*' -p x", none()),
        scenario("a key for the call", "--model c1 --api-key other -p x", none()),
        scenario("a key without a model", "--api-key other -p x", none()),
        scenario("no such mode", "--mode xml -p x", none()),
        scenario("no such option", "--nothing -p x", none()),
        scenario("no such short option", "-q -p x", none()),
        scenario("chosen tools", "--mode json -t read,bash -p x", none()),
        scenario("chosen tools that are off", "--mode json -t grep,find,ls,read -p x", none()),
        scenario("a tool that nobody has", "--mode json -t read,nothing -p x", none()),
        scenario("excluded tools", "--mode json -xt bash,write -p x", none()),
        scenario("no tools", "--mode json -nt -p x", none()),
        scenario("no built-in tools", "--mode json -nbt -p x", none()),
        scenario("tools by settings", "--mode json -p x", json!({"settings": {"defaultTools": ["read", "grep"]}})),
        scenario("strict tools", "--model strict -t read,edit,bash -p x", none()),
        runs("the list of models", &["--list-models", "--list-models cla", "--list-models nothing"], none()),
    ]
}
