//! What the window shows: at several sizes, while it is resized, and for a large paste.

use anyhow::{Context, bail, ensure};
use pinch_testing::server::{Gate, ServerReply};
use pinch_testing::wires::anthropic::AnthropicResponse;

use super::user::TmuxUser;
use crate::tmux::Tmux;

/// Number of resizes in a storm.
const RESIZES: usize = 200;
/// Seed of the sizes.
const SEED: u64 = 0x9e37_79b9_7f4a_7c15;

/// An answer of each kind of block is shown, and the shell returns below it.
pub(super) fn conversation(user: &TmuxUser, size: (u16, u16)) -> anyhow::Result<String> {
    user.answer(
        "# Result\n\n- one\n- two\n\n| a | b |\n|---|---|\n| 1 | 漢字 |\n\n```rust\nlet x = 1;\n```\n\nThe end",
    );
    let tmux = user.start(size, "")?;
    tmux.enter("how are you")?;
    tmux.wait_until("an answer and an idle footer", |screen| {
        screen.contains("The end") && !screen.contains("Working")
    })?;
    ensure!(tmux.screen()?.lines().count() <= usize::from(size.1), "more rows than the window has");
    tmux.press(&["C-d"])?;
    tmux.wait_for_shell()?;
    let rows = tmux.scrollback()?;
    for (text, n) in [("how are you", 1), ("Result", 1), ("- two", 1), ("漢字", 1), ("let x = 1;", 1), ("The end", 1)]
    {
        let found = rows.iter().filter(|row| row.contains(text)).count();
        ensure!(found == n, "{text:?} is in {found} rows instead of {n}:\n{}", rows.join("\n"));
    }
    ensure!(rows.iter().any(|row| row.contains("continue with: pinch --session")), "no command to continue");
    Ok(format!("{} rows", rows.len()))
}

/// Resizes the window again and again while an answer arrives: every row of it must be in the scrollback once.
pub(super) fn resize_storm(user: &TmuxUser, size: (u16, u16)) -> anyhow::Result<String> {
    let tmux = user.start(size, "")?;
    storm(user, &tmux, size)?;
    tmux.press(&["C-d"])?;
    tmux.wait_for_shell()?;
    check_rows(&tmux.scrollback()?)
}

/// The same in fullscreen mode, which writes the conversation to the scrollback when it ends.
pub(super) fn fullscreen_storm(user: &TmuxUser, size: (u16, u16)) -> anyhow::Result<String> {
    let tmux = user.start(size, "--tui-mode fullscreen")?;
    storm(user, &tmux, size)?;
    tmux.press(&["C-d"])?;
    tmux.wait_for_shell()?;
    check_rows(&tmux.scrollback()?)
}

/// Sends a message, and resizes the window once for every paragraph of the answer.
fn storm(user: &TmuxUser, tmux: &Tmux, size: (u16, u16)) -> anyhow::Result<()> {
    let text: String = (0..RESIZES).map(|n| format!("row {n:04}\n\n")).collect();
    let frames = AnthropicResponse::new("msg_1").with_chunks(RESIZES).text(&text).stop("end_turn");
    let n_frames = frames.len();
    let gate = Gate::new();
    user.server.reply(ServerReply::sse("").gated(&gate, frames));
    tmux.enter("count")?;
    tmux.wait_for("Working")?;
    let mut below = random();
    for _ in 0..RESIZES {
        gate.open();
        let (columns, rows) = (20 + below(181), 5 + below(56));
        tmux.resize((columns, rows))?;
        // Bursts, as while a window's border is dragged, and single resizes that are drawn.
        if below(3) == 0 {
            std::thread::sleep(std::time::Duration::from_millis(u64::from(below(120))));
        }
    }
    tmux.resize(size)?;
    gate.open_times(n_frames);
    let last = format!("row {:04}", RESIZES - 1);
    let is_idle = |screen: &str| screen.rsplit_once(&last).is_some_and(|(_, below)| !below.contains("Working"));
    tmux.wait_until("end of the answer", is_idle)
}

/// Checks that the scrollback has every row of the answer once and in order, and nothing that was drawn below it.
fn check_rows(rows: &[String]) -> anyhow::Result<String> {
    let found: Vec<&str> = rows.iter().map(|row| row.trim()).filter(|row| row.starts_with("row 0")).collect();
    let expected: Vec<String> = (0..RESIZES).map(|n| format!("row {n:04}")).collect();
    if let Some(at) =
        (0..found.len().max(RESIZES)).find(|at| found.get(*at).copied() != expected.get(*at).map(|row| &**row))
    {
        bail!("{} rows instead of {RESIZES}; row {at} is {:?}", found.len(), found.get(at));
    }
    let n_questions = rows.iter().filter(|row| row.trim() == "count").count();
    ensure!(n_questions == 1, "the message is in {n_questions} rows");
    let first = rows.iter().position(|row| row.contains("row 0000")).context("no first row")?;
    let last = rows.iter().position(|row| row.contains(&expected[RESIZES - 1])).context("no last row")?;
    let answer = rows.iter().skip(first).take(last - first);
    let remnants = answer.filter(|row| !row.trim().is_empty() && !row.trim().starts_with("row 0")).count();
    ensure!(remnants == 0, "each row of the answer is there once, but so are {remnants} rows of the interface");
    let expected = (RESIZES - 1) * 2;
    ensure!(last - first == expected, "{} rows from the first to the last one instead of {expected}", last - first);
    Ok(format!("{} rows exact", expected + 1))
}

/// Resizes the window and switches between the modes while paragraphs arrive that are wrapped differently at each width: every word must be in
/// the scrollback once.
pub(super) fn wrapped_storm(user: &TmuxUser, size: (u16, u16)) -> anyhow::Result<String> {
    const N_PARAGRAPHS: usize = 40;
    const N_WORDS: usize = 50;
    let paragraph = |n: usize| (0..N_WORDS).map(|word| format!("w{} ", n * N_WORDS + word)).collect::<String>();
    let text: String = (0..N_PARAGRAPHS).map(|n| paragraph(n) + "\n\n").collect();
    let frames = AnthropicResponse::new("msg_1").with_chunks(N_PARAGRAPHS * 3).text(&text).stop("end_turn");
    let n_frames = frames.len();
    let gate = Gate::new();
    user.server.reply(ServerReply::sse("").gated(&gate, frames));
    let tmux = user.start(size, "")?;
    tmux.enter("count")?;
    tmux.wait_for("Working")?;
    let mut below = random();
    for n in 0..N_PARAGRAPHS {
        gate.open_times(3);
        let pause = |ms: u16| std::thread::sleep(std::time::Duration::from_millis(ms.into()));
        if n % 8 == 3 || n % 8 == 6 {
            // A resize must have ended before the mode is switched.
            pause(900);
            tmux.press(&["C-r"])?;
            pause(900);
        } else {
            tmux.resize((20 + below(181), 8 + below(50)))?;
            // Most sizes are drawn.
            pause(below(700));
        }
    }
    // At this width, tmux joins the rows that it has split.
    tmux.resize((200, 50))?;
    gate.open_times(n_frames);
    let last = format!("w{}", N_PARAGRAPHS * N_WORDS - 1);
    tmux.wait_until("end of the answer", |screen| screen.contains(&last) && !screen.contains("Working"))?;
    tmux.press(&["C-d"])?;
    tmux.wait_for_shell()?;
    // A row that was written when tmux already had another width can be broken within a word.
    let found: String = tmux.scrollback()?.concat().split_whitespace().collect();
    let expected: String = (0..N_PARAGRAPHS * N_WORDS).map(|n| format!("w{n}")).collect();
    if !found.contains(&expected) {
        let begin = found.find("w0w1w2").context("no first words")?;
        let n_equal = found[begin..].bytes().zip(expected.bytes()).take_while(|(is, should)| is == should).count();
        let around = |text: &str, at: usize| -> String { text.chars().skip(at.saturating_sub(20)).take(60).collect() };
        bail!("{:?} instead of {:?}", around(&found[begin..], n_equal), around(&expected, n_equal));
    }
    Ok(format!("{} words exact", N_PARAGRAPHS * N_WORDS))
}

/// Returns a generator of random numbers below a limit, the same ones every time.
fn random() -> impl FnMut(u64) -> u16 {
    let mut random = SEED;
    move |limit| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        u16::try_from(random % limit).unwrap_or_default()
    }
}

/// Widths, and then heights, of the window after an answer.
const LATER_SIZES: [(u16, u16); 8] =
    [(118, 40), (108, 40), (90, 40), (128, 40), (128, 30), (128, 24), (128, 50), (128, 36)];

/// At each new size, every line of an earlier answer is in the scrollback or on the screen once.
pub(super) fn unique_lines(user: &TmuxUser, size: (u16, u16)) -> anyhow::Result<String> {
    const N_LINES: usize = 80;
    let lines: String = (0..N_LINES).map(|n| format!("unique {n:02} {}\n\n", "and so on ".repeat(9))).collect();
    user.answer(&lines);
    let tmux = user.start(size, "")?;
    tmux.enter("list")?;
    tmux.wait_until("end of the answer", |screen| screen.contains("unique 79") && !screen.contains("Working"))?;
    for size in LATER_SIZES {
        tmux.resize(size)?;
        // The live area returns when the size is stable.
        std::thread::sleep(std::time::Duration::from_millis(600));
        tmux.wait_for("for commands")?;
        let rows = tmux.scrollback()?;
        for n in 0..N_LINES {
            let text = format!("unique {n:02}");
            let found = rows.iter().filter(|row| row.contains(&text)).count();
            ensure!(found == 1, "{text:?} is there {found} times at {size:?}");
        }
        let n_footers = rows.iter().filter(|row| row.contains("(auto)")).count();
        ensure!(n_footers == 1, "{n_footers} footers at {size:?}");
    }
    Ok(format!("{N_LINES} lines at {} sizes", LATER_SIZES.len()))
}

/// A bracketed paste is shortened on the screen and sent as a whole.
pub(super) fn large_paste(user: &TmuxUser, size: (u16, u16)) -> anyhow::Result<String> {
    let tmux = user.start(size, "")?;
    let line = "0123456789abcdef ".repeat(6);
    let text: String = (0..10_300).map(|n| format!("{n:06} {}\n", &line[..92])).collect();
    user.answer("received");
    tmux.paste(&text)?;
    tmux.wait_for("[paste #1 +")?;
    tmux.press(&["Enter"])?;
    tmux.wait_for("received")?;
    let sent = user.server.requests();
    let body = sent.last().context("nothing was sent")?.json();
    let content = &body["messages"][0]["content"];
    let sent = content.as_str().or_else(|| content[0]["text"].as_str()).unwrap_or_default();
    ensure!(sent.trim_end() == text.trim_end(), "{} of {} bytes were sent, or others", sent.len(), text.len());
    Ok(format!("{} bytes", text.len()))
}
