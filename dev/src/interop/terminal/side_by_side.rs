//! The same conversations in pi and in pinch, typed into tmux side by side: what must be on the screen after which keys.

mod conversations;
mod screens;

use anyhow::bail;
use pinch_testing::server::{Gate, ServerReply};
use pinch_testing::wires::anthropic::AnthropicResponse;

use super::user::TmuxUser;
use crate::interop::pi::peer::{Installed, TARGET};
use crate::interop::table::ResultTable;
use crate::tmux::Tmux;

/// The window of all conversations.
const SIZE: (u16, u16) = (100, 40);

/// One of the two programs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SideProgram {
    Pi,
    Pinch,
}

impl SideProgram {
    const ALL: [Self; 2] = [Self::Pi, Self::Pinch];

    fn name(self) -> &'static str {
        match self {
            Self::Pi => "pi",
            Self::Pinch => "pinch",
        }
    }
}

/// What the model does, what the user does, and what must be visible.
#[derive(Clone, Copy)]
enum SideStep {
    /// The next request is answered with this text.
    Answers(&'static str),
    /// The next request is answered with thoughts and a text.
    Thinks(&'static str, &'static str),
    /// The next request is answered with a call of a tool.
    Calls(&'static str, &'static str),
    /// The next request gets no answer.
    Waits,
    /// The next request fails with this message.
    Fails(&'static str),
    /// Types a text.
    Types(&'static str),
    /// Types a text and presses enter.
    Enters(&'static str),
    /// Presses keys.
    Presses(&'static [&'static str]),
    /// A text appears.
    Sees(&'static str),
    /// A text disappears.
    Loses(&'static str),
    /// As many rows as this contain a text.
    Counts(usize, &'static str),
    /// The shell is back.
    Ends,
    /// This and the following steps apply to one of the programs only, until the next such step or [`SideStep::Both`].
    Only(SideProgram),
    /// The following steps apply to both programs.
    Both,
}

/// A scripted conversation. Steps for one program are differences, whose reasons are in docs/compatibility.md.
struct SideConversation {
    name: &'static str,
    steps: &'static [SideStep],
}

/// Runs the conversations whose names contain a text.
pub(super) fn run(only: Option<&str>) -> anyhow::Result<bool> {
    let all = [conversations::ALL, screens::ALL].concat();
    let chosen: Vec<&SideConversation> =
        all.into_iter().filter(|one| only.is_none_or(|text| one.name.contains(text))).collect();
    if chosen.is_empty() {
        bail!("no conversation has a name that contains {:?}", only.unwrap_or_default());
    }
    let installed = Installed::get(&[TARGET])?;
    let mut table = ResultTable::default();
    for conversation in chosen {
        for program in SideProgram::ALL {
            let result = perform(conversation, program, &installed).map_err(|why| format!("{why:#}"));
            table.row(program.name(), conversation.name, result);
        }
    }
    Ok(table.finish())
}

/// Performs a conversation in one of the programs.
fn perform(conversation: &SideConversation, program: SideProgram, installed: &Installed) -> anyhow::Result<String> {
    let user = TmuxUser::new()?;
    let gate = Gate::new();
    let tmux = match program {
        SideProgram::Pinch => user.start(SIZE, "")?,
        SideProgram::Pi => user.start_pi(SIZE, installed)?,
    };
    let (mut applies, mut n_own) = (true, 0);
    for step in conversation.steps {
        match step {
            SideStep::Only(other) => applies = *other == program,
            SideStep::Both => applies = true,
            step if applies => take_step(*step, &user, &tmux, &gate)?,
            _ => n_own += 1,
        }
    }
    Ok(if n_own == 0 { String::new() } else { "with a difference".to_owned() })
}

fn take_step(step: SideStep, user: &TmuxUser, tmux: &Tmux, gate: &Gate) -> anyhow::Result<()> {
    let response = AnthropicResponse::new("msg_1");
    match step {
        SideStep::Answers(text) => user.answer(text),
        SideStep::Thinks(thoughts, text) => {
            let frames = response.thinking(thoughts, "signature").text(text).stop("end_turn");
            user.server.reply(ServerReply::sse(frames.concat()));
        }
        SideStep::Calls(tool, arguments) => {
            let frames = response.tool_call("toolu_1", tool, arguments).stop("tool_use");
            user.server.reply(ServerReply::sse(frames.concat()));
        }
        SideStep::Waits => {
            user.server.reply(ServerReply::sse("").gated(gate, response.text("late").stop("end_turn")));
        }
        SideStep::Fails(message) => {
            let error = serde_json::json!({"type": "invalid_request_error", "message": message});
            user.server.reply(ServerReply::json(400, &serde_json::json!({"type": "error", "error": error})));
        }
        SideStep::Types(text) => tmux.type_text(text)?,
        SideStep::Enters(text) => {
            tmux.type_text(text)?;
            // A suggestion list must not swallow the key.
            tmux.wait_for(text)?;
            tmux.press(&["Enter"])?;
        }
        SideStep::Presses(keys) => tmux.press(keys)?,
        SideStep::Sees(text) => tmux.wait_for(text)?,
        SideStep::Loses(text) => tmux.wait_until(&format!("end of {text:?}"), |screen| !screen.contains(text))?,
        SideStep::Counts(n, text) => tmux.wait_until(&format!("{n} times {text:?}"), |screen| {
            screen.lines().filter(|line| line.contains(text)).count() == n
        })?,
        SideStep::Ends => tmux.wait_for_shell()?,
        SideStep::Only(_) | SideStep::Both => {}
    }
    Ok(())
}
