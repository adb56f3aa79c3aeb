//! Interruptions: suspension, the external editor, signals, and a terminal that is closed.

use anyhow::ensure;

use super::user::TmuxUser;
use crate::tmux::{Tmux, wait_for_end};

/// The program stops, leaves the shell a usable terminal, and comes back with its draft.
pub(super) fn suspend(user: &TmuxUser, size: (u16, u16)) -> anyhow::Result<String> {
    let mut n = 0;
    for args in ["", "--tui-mode fullscreen"] {
        let tmux = user.start(size, args)?;
        tmux.press(&["d", "r", "a", "f", "t"])?;
        tmux.wait_for("draft")?;
        for _ in 0..3 {
            tmux.press(&["C-z"])?;
            tmux.wait_until("stopped job", |screen| screen.contains("Stopped"))?;
            tmux.wait_for_shell()?;
            check_terminal(&tmux)?;
            tmux.enter("clear; fg")?;
            tmux.wait_for("draft")?;
            n += 1;
        }
        tmux.press(&["C-c", "C-d"])?;
        tmux.wait_for_shell()?;
        check_terminal(&tmux)?;
    }
    Ok(format!("{n} times, the draft is kept"))
}

/// The draft is edited in the program named by `$EDITOR`.
pub(super) fn external_editor(user: &TmuxUser, size: (u16, u16)) -> anyhow::Result<String> {
    let tmux = user.start(size, "")?;
    tmux.press(&["d", "r", "a", "f", "t"])?;
    tmux.wait_for("draft")?;
    tmux.press(&["C-g"])?;
    tmux.wait_for("draft and edited")?;
    user.answer("as you like");
    tmux.press(&["Enter"])?;
    tmux.wait_for("as you like")?;
    tmux.press(&["C-d"])?;
    tmux.wait_for_shell()?;
    check_terminal(&tmux)?;
    Ok("the edited text is sent".to_owned())
}

pub(super) fn terminate(user: &TmuxUser, size: (u16, u16)) -> anyhow::Result<String> {
    ended_by(user, size, "TERM", "143")
}

pub(super) fn hang_up(user: &TmuxUser, size: (u16, u16)) -> anyhow::Result<String> {
    ended_by(user, size, "HUP", "129")
}

/// A signal ends the program with its exit code, and the terminal is restored.
fn ended_by(user: &TmuxUser, size: (u16, u16), signal: &str, code: &str) -> anyhow::Result<String> {
    for args in ["", "--tui-mode fullscreen"] {
        let tmux = user.start(size, args)?;
        tmux.signal(signal)?;
        tmux.wait_for_shell()?;
        let ended = tmux.shell("echo code $?")?;
        ensure!(ended == format!("code {code}"), "{ended:?} instead of {code}");
        check_terminal(&tmux)?;
    }
    Ok(format!("exit code {code}, the terminal is restored"))
}

/// The program does not outlive its terminal.
pub(super) fn close(user: &TmuxUser, size: (u16, u16)) -> anyhow::Result<String> {
    let tmux = user.start(size, "")?;
    let program = tmux.program()?;
    tmux.close()?;
    wait_for_end(program)?;
    Ok("the program ends".to_owned())
}

/// A killed program cannot restore the terminal, but the shell must accept commands, and the next start and exit must restore it.
pub(super) fn kill(user: &TmuxUser, size: (u16, u16)) -> anyhow::Result<String> {
    for args in ["", "--tui-mode fullscreen"] {
        let tmux = user.start(size, args)?;
        // It has read the terminal's answers to its queries before it reads keys; otherwise, the shell would.
        tmux.press(&["d", "r", "a", "f", "t"])?;
        tmux.wait_for("draft")?;
        tmux.signal("KILL")?;
        tmux.wait_for("Killed")?;
        let alive = tmux.shell("echo al''ive")?;
        ensure!(alive == "alive", "{alive:?}");
        user.open(&tmux, args)?;
        tmux.press(&["C-d"])?;
        tmux.wait_for_shell()?;
        check_terminal(&tmux)?;
    }
    Ok("a restart without `reset` restores the terminal".to_owned())
}

/// Checks that the terminal edits lines and echoes them, and that no mode of the program remains.
fn check_terminal(tmux: &Tmux) -> anyhow::Result<()> {
    // The shell has its own modes while it reads a line, but commands get the ones that it was left with.
    let modes = tmux.shell("stty -a | tr ';' '\\n' | grep -E 'icanon|echo |isig'")?;
    for mode in ["icanon", "echo", "isig"] {
        ensure!(modes.split_whitespace().any(|word| word == mode), "the terminal is not in mode {mode}: {modes}");
    }
    for (name, value) in [
        ("alternate_on", "0"),
        ("mouse_any_flag", "0"),
        ("mouse_sgr_flag", "0"),
        ("cursor_flag", "1"),
        ("keypad_cursor_flag", "0"),
    ] {
        let now = tmux.variable(name)?;
        ensure!(now == value, "{name} is {now:?} after the program has ended");
    }
    Ok(())
}
