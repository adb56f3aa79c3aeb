//! A conversation with a program through JSON lines.

use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout};

/// Time limit for the rest of an answer.
const REST: Duration = Duration::from_secs(10);

/// The program's input and output, and everything it has printed.
pub(super) struct ProgramDialogue<'a> {
    input: Option<ChildStdin>,
    output: Lines<BufReader<ChildStdout>>,
    said: Vec<Value>,
    /// Number of lines written.
    n_written: usize,
    /// Number of lines received when the last line was written.
    mark: usize,
    /// Replies to requests of extensions, by method.
    replies: &'a Value,
    saved: Vec<(String, String)>,
}

impl<'a> ProgramDialogue<'a> {
    pub(super) fn new(child: &mut Child, replies: &'a Value) -> Result<Self, String> {
        let input = Some(child.stdin.take().ok_or("no standard input")?);
        let output = BufReader::new(child.stdout.take().ok_or("no standard output")?).lines();
        Ok(Self { input, output, said: Vec::new(), n_written: 0, mark: 0, replies, saved: Vec::new() })
    }

    /// Executes the lines of a case; returns the program's complete output.
    pub(super) async fn run(
        mut self,
        child: &Child,
        steps: &Value,
        end: &Value,
        fill: impl Fn(&str) -> String,
    ) -> Result<Vec<Value>, String> {
        for step in steps.as_array().into_iter().flatten() {
            if let Some(kind) = step["waitFor"].as_str() {
                self.until(self.mark, |line| line["type"] == kind).await?;
            } else if let Some(ms) = step["sleep"].as_u64() {
                self.listen_for(Duration::from_millis(ms)).await?;
            } else if let Some(signal) = step["signalAfter"]["signal"].as_str() {
                self.listen_for(Duration::from_millis(step["signalAfter"]["ms"].as_u64().unwrap_or(100))).await?;
                send_signal(child, signal)?;
            } else if let Some(name) = step["save"].as_str() {
                self.save(name, &step["path"]);
            } else {
                let text = step.as_str().map_or_else(|| step_line(step).to_string(), str::to_owned);
                self.write(&self.with_saved(fill(&text))).await?;
                if step["noWait"] != true {
                    let id = step["id"].clone();
                    let answers = move |line: &Value| line["type"] == "response" && (id.is_null() || line["id"] == id);
                    self.until(self.mark, answers).await?;
                }
            }
        }
        let after = &end["signalAfter"];
        match end["signalEnd"].as_str().or_else(|| after["signal"].as_str()) {
            Some(signal) => {
                let ms = after["ms"].as_u64().or_else(|| end["settle"].as_u64()).unwrap_or(100);
                self.listen_for(Duration::from_millis(ms)).await?;
                send_signal(child, signal)?;
            }
            None => {
                self.rest().await?;
                drop(self.input.take());
            }
        }
        while self.next().await?.is_some() {}
        Ok(self.said)
    }

    /// Waits until all commands are answered and all prompts are done, because the end of input cancels what the program is doing.
    async fn rest(&mut self) -> Result<(), String> {
        let until = tokio::time::Instant::now() + REST;
        loop {
            let count = |is_it: &dyn Fn(&Value) -> bool| self.said.iter().filter(|line| is_it(line)).count();
            let n_answered = count(&|line| line["type"] == "response");
            let n_started = count(&|line| line["data"]["disposition"] == "started");
            let n_settled = count(&|line| line["type"] == "agent_settled");
            if n_answered >= self.n_written && n_settled >= n_started {
                return Ok(());
            }
            match tokio::time::timeout_at(until, self.next()).await {
                Ok(Ok(Some(_))) => {}
                Ok(Err(why)) => return Err(why),
                Err(_) | Ok(Ok(None)) => return Ok(()),
            }
        }
    }

    async fn write(&mut self, line: &str) -> Result<(), String> {
        self.mark = self.said.len();
        self.n_written += 1;
        let input = self.input.as_mut().ok_or("standard input is closed")?;
        // A program that has exited cannot be written to; its earlier output is still valid.
        drop(input.write_all(format!("{line}\n").as_bytes()).await);
        Ok(())
    }

    /// Reads the next line, and answers it if an extension asks something.
    async fn next(&mut self) -> Result<Option<Value>, String> {
        let Some(line) = self.output.next_line().await.map_err(|why| why.to_string())? else { return Ok(None) };
        let line: Value = serde_json::from_str(&line).map_err(|why| format!("{why}: {line}"))?;
        self.said.push(line.clone());
        if line["type"] == "extension_ui_request"
            && let Some(reply) = self.replies.get(line["method"].as_str().unwrap_or_default())
        {
            let mut reply = reply.clone();
            reply["type"] = "extension_ui_response".into();
            reply["id"] = line["id"].clone();
            if let Some(input) = &mut self.input {
                drop(input.write_all(format!("{reply}\n").as_bytes()).await);
            }
        }
        Ok(Some(line))
    }

    /// Waits until the program has printed a matching line, at or after `from`.
    async fn until(&mut self, from: usize, is_it: impl Fn(&Value) -> bool) -> Result<(), String> {
        if self.said[from..].iter().any(&is_it) {
            return Ok(());
        }
        while let Some(line) = self.next().await? {
            if is_it(&line) {
                return Ok(());
            }
        }
        Ok(())
    }

    async fn listen_for(&mut self, time: Duration) -> Result<(), String> {
        let until = tokio::time::Instant::now() + time;
        loop {
            match tokio::time::timeout_at(until, self.next()).await {
                Err(_) => return Ok(()),
                Ok(Err(why)) => return Err(why),
                Ok(Ok(Some(_))) => {}
                Ok(Ok(None)) => return Ok(()),
            }
        }
    }

    fn save(&mut self, name: &str, path: &Value) {
        let last = self.said.iter().rev().find(|line| line["type"] == "response").cloned().unwrap_or_default();
        let value = path.as_array().into_iter().flatten().fold(last, |value, step| match step.as_u64() {
            Some(at) => value[usize::try_from(at).unwrap_or_default()].clone(),
            None => value[step.as_str().unwrap_or_default()].clone(),
        });
        self.saved.push((format!("${name}$"), value.as_str().unwrap_or_default().to_owned()));
    }

    fn with_saved(&self, text: String) -> String {
        self.saved.iter().fold(text, |text, (name, value)| text.replace(name.as_str(), value))
    }
}

/// Returns the line of a step, without members meant for the runner.
fn step_line(step: &Value) -> Value {
    let mut line = step.clone();
    if let Some(map) = line.as_object_mut() {
        map.remove("noWait");
    }
    line
}

#[cfg(unix)]
pub(super) fn send_signal(child: &Child, signal: &str) -> Result<(), String> {
    use rustix::process::{Pid, Signal, kill_process};
    let signal = match signal {
        "SIGTERM" => Signal::TERM,
        "SIGINT" => Signal::INT,
        "SIGHUP" => Signal::HUP,
        other => return Err(format!("unknown signal {other}")),
    };
    let pid = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)).ok_or("the program has ended")?;
    kill_process(pid, signal).map_err(|why| why.to_string())
}

#[cfg(not(unix))]
pub(super) fn send_signal(_: &Child, signal: &str) -> Result<(), String> {
    Err(format!("{signal} is not sent here"))
}
