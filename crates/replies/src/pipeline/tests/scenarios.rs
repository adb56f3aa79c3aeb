//! What hosts receive in whole runs: every piece, in order.

use std::time::Duration;

use pinch_agent_core::event::{EndReason, ToolStart};
use pinch_agent_core::tool::ToolOutput;
use pinch_coding_agent::compaction::CompactionReason;
use pinch_llm::catalog::Catalog;
use pinch_llm::message::Thinking;

use super::*;
use crate::chunk::Chunking;
use crate::coalesce::Coalescing;
use crate::preview::{CommandText, PreviewMode, ProgressDraft};
use crate::tool_notes::{ToolFormat, Verbose, VerboseNow};
use crate::unit::{TextLimit, TextUnit};

/// Renders a piece in a line.
fn line(piece: &Piece) -> String {
    match piece {
        Piece::Block(block) => {
            let BlockReply { text, media_urls, audio_as_voice, reply_to_id, reply_to_tag, reply_to_current, .. } =
                block;
            let mut line = format!("block {text:?}");
            if !media_urls.is_empty() {
                line += &format!(" media {media_urls:?}");
            }
            for (is_set, name) in [
                (*audio_as_voice, "voice"),
                (*reply_to_tag, "tagged"),
                (*reply_to_current, "current"),
                (block.is_reasoning, "reasoning"),
            ] {
                line += &if is_set { format!(" {name}") } else { String::new() };
            }
            if let Some(id) = reply_to_id {
                line += &format!(" to {id}");
            }
            let span = block.span.as_ref().map(|span| format!(" at {}:{:?}", span.message, span.bytes));
            line + &span.unwrap_or_default()
        }
        Piece::Partial(growth) => {
            let Growth { at, restored, delta, media_urls, shown } = growth;
            let media = if media_urls.is_empty() { String::new() } else { format!(" media {media_urls:?}") };
            let only = if *shown { "" } else { " for programs" };
            format!("partial {at} {restored:?} {delta:?}{media}{only}")
        }
        Piece::Reasoning(growth) => format!(
            "reasoning {} {:?}, raw {} {:?}",
            growth.formatted.at, growth.formatted.text, growth.raw.at, growth.raw.text
        ),
        Piece::Draft(edit) => format!("draft {} {:?}", edit.at, edit.text),
        Piece::ToolResult(note) => {
            let kind = if note.is_output { "output" } else { "announcement" };
            format!("{kind} of {}: {:?} {:?}", note.call_id, note.text, note.media_urls)
        }
        Piece::Agent(note) => {
            let reduced = note.reduced.as_ref().map(|reduced| format!(", to the caller {reduced}"));
            format!("event {} {}{}", note.stream.as_str(), note.data, reduced.unwrap_or_default())
        }
        other => format!("{other:?}"),
    }
}

fn lines(pieces: &Pieces) -> String {
    pieces.iter().map(|piece| line(piece) + "\n").collect()
}

/// Pushes events and returns what comes out, until nothing more will come.
fn run(replies: &mut Replies, events: impl IntoIterator<Item = SessionEvent>) -> String {
    let mut out = Pieces::new();
    events.into_iter().for_each(|event| replies.push(&event, &mut out));
    replies.finish(&mut out);
    lines(&out)
}

fn update(event: StreamEvent) -> SessionEvent {
    agent(AgentEvent::MessageUpdate(event))
}

fn thinking(text: &str) -> Block {
    Block::Thinking(Thinking { thinking: text.into(), ..Thinking::default() })
}

fn commentary(text: &str) -> Block {
    Block::Text(Text { text: text.into(), signature: Some(r#"{"phase": "commentary"}"#.into()) })
}

fn whole(blocks: &[Block]) -> AssistantMessage {
    let mut message = AssistantMessage::pending(ApiId::new("a"), ProviderId::new("p"), ModelId::new("m"), 0);
    message.stop_reason = StopReason::Stop;
    message.content = blocks.iter().cloned().map(Arc::new).collect();
    message
}

fn ended(message: AssistantMessage) -> SessionEvent {
    let message = Arc::new(Message::Assistant(Arc::new(message)));
    agent(AgentEvent::MessageEnd { message, error: None, queued: None })
}

/// Returns the events of an answer of these blocks, each of which arrives in two pieces.
fn answer(blocks: &[Block]) -> Vec<SessionEvent> {
    let mut events = vec![agent(AgentEvent::MessageStart(message("")))];
    for (index, block) in blocks.iter().enumerate() {
        let (kind, text) = match block {
            Block::Thinking(thinking) => (BlockKind::Thinking { redacted: false }, thinking.thinking.as_str()),
            Block::Text(text) if text.is_commentary() => (BlockKind::Commentary, text.text.as_str()),
            other => (BlockKind::Text, other.as_text().unwrap()),
        };
        events.push(update(StreamEvent::BlockStart { index, kind }));
        let (first, second) = text.split_at(text.floor_char_boundary(text.len() / 2));
        for part in [first, second] {
            events.push(update(StreamEvent::Delta { index, text: part.into() }));
        }
        events.push(update(StreamEvent::BlockEnd { index, block: Arc::new(block.clone()) }));
    }
    events.push(ended(whole(blocks)));
    events
}

fn says(text: &str) -> Vec<SessionEvent> {
    answer(&[Block::text(text)])
}

fn run_end(messages: Vec<Arc<Message>>) -> RunEnd {
    RunEnd { messages, reason: EndReason::Done, error: None, pending_calls: Vec::new() }
}

fn call(name: &str, id: &str, args: Value) -> ToolStart {
    let args = Arc::new(args.as_object().cloned().unwrap());
    ToolStart { id: pinch_llm::ids::ToolCallId::new(id), name: name.into(), args }
}

fn tool_start(start: &ToolStart) -> SessionEvent {
    agent(AgentEvent::ToolStart(start.clone()))
}

fn tool_end(start: &ToolStart, output: ToolOutput) -> SessionEvent {
    agent(AgentEvent::ToolEnd { start: start.clone(), output: Box::new(output), duration_ms: None })
}

fn progress(start: &ToolStart, text: &str) -> SessionEvent {
    let details = Some(json!({"progress": {"text": text, "visibility": "channel"}}));
    let so_far = Box::new(ToolOutput { details, ..ToolOutput::text("x") });
    agent(AgentEvent::ToolUpdate { start: start.clone(), so_far })
}

fn in_blocks() -> ReplyOptions {
    ReplyOptions { block_streaming: true, block_reply_break: BlockBreak::Paragraph, ..ReplyOptions::default() }
}

#[test]
fn directives_and_media_of_an_answer() {
    let text = "[[reply_to_current]] Hi there.\nMEDIA:https://e.com/a.png\n\n[[audio_as_voice]]\n\nBye.";
    let mut all = String::new();
    for block_streaming in [true, false] {
        let current_message = Some("77".to_owned());
        let mut replies = Replies::new(ReplyOptions { block_streaming, current_message, ..in_blocks() });
        all += &run(&mut replies, says(text));
        all += &format!("texts {:?}\n\n", replies.take_assistant_texts());
    }
    let mut replies = Replies::new(in_blocks());
    all += &run(&mut replies, says("[[audio_as_voice]] A [[reply_to:7"));
    all += &run(&mut replies, says("B\n\n[[reply_to:8]]\n\n[[audio"));
    insta::assert_snapshot!(all);
}

#[test]
fn an_answer_without_deltas_is_reported_at_its_end() {
    let mut all = String::new();
    for block_streaming in [true, false] {
        let mut replies = Replies::new(ReplyOptions { block_streaming, ..ReplyOptions::default() });
        let start = agent(AgentEvent::MessageStart(message("")));
        let text = "Hi.\nMEDIA:https://e.com/a.png";
        all += &run(&mut replies, [start.clone(), ended(whole(&[Block::text(text)]))]);
        all += &run(&mut replies, [start.clone(), ended(whole(&[Block::text("MEDIA:https://e.com/a.png")]))]);
        all += &run(&mut replies, [start, ended(whole(&[Block::text("NO_REPLY")]))]);
        all += &format!("texts {:?}\n\n", replies.assistant_texts());
    }
    insta::assert_snapshot!(all);
}

#[test]
fn reasoning_is_hidden_sent_or_streamed() {
    let mut all = String::new();
    let native = [thinking("I think."), Block::text("One."), thinking("More."), Block::text("Two.")];
    let tagged = [Block::text("<think>I\nthink.</think>One.")];
    for reasoning in [ReasoningLevel::Off, ReasoningLevel::On, ReasoningLevel::Stream] {
        for (block_streaming, hide_native_reasoning) in [(true, false), (false, false), (true, true)] {
            for blocks in [&native[..], &tagged] {
                let options = ReplyOptions { reasoning, block_streaming, hide_native_reasoning, ..in_blocks() };
                let mut replies = Replies::new(options);
                all += &format!("{reasoning:?} blocks {block_streaming} hidden {hide_native_reasoning}\n");
                all += &run(&mut replies, answer(blocks));
                all += &format!("texts {:?}\n\n", replies.assistant_texts());
            }
        }
    }
    insta::assert_snapshot!(all);
}

#[test]
fn reasoning_that_arrives_at_the_end_is_sent_before_the_text_and_once() {
    let start = agent(AgentEvent::MessageStart(message("")));
    let mut all = String::new();
    for reasoning in [ReasoningLevel::On, ReasoningLevel::Stream] {
        let mut replies = Replies::new(ReplyOptions { reasoning, ..in_blocks() });
        let blocks = [thinking("I think."), Block::text("One.")];
        all += &run(&mut replies, [start.clone(), ended(whole(&blocks))]);
        all += &run(&mut replies, [start.clone(), ended(whole(&[thinking("I think."), Block::text("Two.")]))]);
        all += &run(&mut replies, [start.clone(), ended(whole(&[thinking("I think again.")]))]);
    }
    insta::assert_snapshot!(all);
}

#[test]
fn commentary_is_no_part_of_the_answer() {
    let mut replies = Replies::new(in_blocks());
    let shown = run(&mut replies, answer(&[commentary("I look."), Block::text("Done."), Block::text("Bye.")]));
    insta::assert_snapshot!(shown);
}

#[test]
fn tools_are_announced_and_reported() {
    let mut all = String::new();
    for (verbose, tool_result_format) in [(Verbose::Off, ToolFormat::Markdown), (Verbose::Full, ToolFormat::Plain)] {
        let prefix = ResponsePrefix::new("[Ada]", None);
        let home = Some("/home/ada".to_owned());
        let options = ReplyOptions { verbose, tool_result_format, prefix, home, ..in_blocks() };
        let mut replies = Replies::new(options);
        let read = call("read", "c1", json!({"path": "/home/ada/a.txt"}));
        let send = call("message", "c2", json!({"action": "send", "to": "ada", "message": "The build is green."}));
        let picture = json!({"mediaUrl": "https://e.com/a.png"});
        let mut events = says("Let me look.");
        events.splice(4.., []);
        events.extend([tool_start(&read), tool_end(&read, ToolOutput { failed: true, ..ToolOutput::text("gone") })]);
        events.extend([tool_start(&send), progress(&send, "half")]);
        events.push(tool_end(&send, ToolOutput { details: Some(picture), ..ToolOutput::text("sent") }));
        events.extend(says("The build is green."));
        all += &run(&mut replies, events);
        all += &format!("{:?}\n{:?}\n{:?}\n", replies.tool_metas(), replies.last_tool_error(), replies.sent());
        all += &format!("texts {:?}\n\n", replies.assistant_texts());
    }
    insta::assert_snapshot!(all);
}

#[test]
fn a_compaction_before_a_retry_begins_the_run_again() {
    let mut all = String::new();
    for will_retry in [true, false] {
        let level = VerboseNow::new(|| Verbose::On);
        let options = ReplyOptions { verbose_now: Some(level), tool_result_format: ToolFormat::Plain, ..in_blocks() };
        let mut replies = Replies::new(options);
        let add = call("cron", "c1", json!({"action": "add", "path": "/home/ada/x"}));
        let reason = CompactionReason::Overflow;
        let end = SessionEvent::CompactionEnd { reason, result: None, aborted: false, will_retry, error_message: None };
        let mut events = says("<think>One.</think>One.");
        events.extend([tool_start(&add), tool_end(&add, ToolOutput::text("ok"))]);
        events.extend([start(), [delta("Two.\n\nThr"), SessionEvent::CompactionStart { reason }]].concat());
        events.push(end);
        events.extend(says("Two."));
        events.extend([tool_start(&add), tool_end(&add, ToolOutput::text("ok"))]);
        all += &run(&mut replies, events);
        all += &format!("{} {:?}\n", replies.cron_adds(), replies.tool_metas());
        all += &format!("texts {:?}\n\n", replies.assistant_texts());
    }
    insta::assert_snapshot!(all);
}

#[test]
fn programs_see_how_a_run_begins_and_ends() {
    let mut all = String::new();
    for quiet_lifecycle in [false, true] {
        let mut failed = whole(&[]);
        failed.stop_reason = StopReason::Error;
        failed.error_message = Some("no".into());
        let failed = Arc::new(Message::Assistant(Arc::new(failed)));
        for (messages, is_session) in
            [(vec![message("Hi.")], false), (vec![message("Hi."), failed], true), (vec![], true)]
        {
            let mut replies = Replies::new(ReplyOptions { quiet_lifecycle, ..in_blocks() });
            let end = run_end(messages);
            let end = match is_session {
                true => SessionEvent::RunEnd { end, will_retry: false },
                false => agent(AgentEvent::AgentEnd(end)),
            };
            let mut out = Pieces::new();
            for event in [vec![agent(AgentEvent::AgentStart)], start().to_vec(), vec![delta("Hi."), end]].concat() {
                replies.push(&event, &mut out);
            }
            all += &(lines(&out) + "\n");
        }
        let mut replies = Replies::new(ReplyOptions { quiet_lifecycle, ..in_blocks() });
        let mut failed = whole(&[Block::text("Hi.")]);
        failed.stop_reason = StopReason::Error;
        let begin = agent(AgentEvent::MessageStart(message("")));
        all += &run(&mut replies, [begin, ended(failed), agent(AgentEvent::AgentEnd(run_end(Vec::new())))]);
    }
    insta::assert_snapshot!(all);
}

#[test]
fn a_copy_of_what_a_channel_delivered_is_no_answer() {
    let mut mirror = whole(&[Block::text("Hi.")]);
    mirror.model = ModelId::new("delivery-mirror");
    let mirror = Arc::new(Message::Assistant(Arc::new(mirror)));
    let mut replies = Replies::new(in_blocks());
    let mut events = vec![agent(AgentEvent::MessageStart(Arc::clone(&mirror))), delta("Hi.\n\n")];
    events.extend(start().into_iter().skip(1));
    events.extend([delta("Hi.\n\n"), agent(AgentEvent::MessageEnd { message: mirror, error: None, queued: None })]);
    assert_eq!(run(&mut replies, events), "");
    assert_eq!(replies.assistant_texts(), [""; 0]);
}

#[test]
fn only_final_text_is_for_people_if_that_is_enforced() {
    let mut all = String::new();
    for is_enforced in [true, false] {
        let mut replies = Replies::new(in_blocks());
        replies.enforce_final_tag(is_enforced);
        assert_eq!(replies.enforces_final_tag(), is_enforced);
        all += &run(&mut replies, says("Plan. <final>Hi.</final> Rest."));
        all += &run(&mut replies, says("No tags."));
        let start = agent(AgentEvent::MessageStart(message("")));
        all += &run(&mut replies, [start, ended(whole(&[Block::text("Plan. <final>Yes.</final>")]))]);
    }
    insta::assert_snapshot!(all);
}

#[test]
fn the_prefix_names_the_model_that_answers() {
    let prefix = ResponsePrefix::new("[{model}]", None);
    let mut replies = Replies::new(ReplyOptions { prefix, ..in_blocks() });
    let model = Arc::clone(Catalog::built_in().find("anthropic", "claude-sonnet-4-5-20250929").unwrap());
    replies.set_model(&model, ThinkingLevel::Low);
    assert_eq!(
        blocks(&mut replies, says("One.\n\n[claude-sonnet-4-5] Two.")),
        ["[claude-sonnet-4-5] One.", "[claude-sonnet-4-5] Two."]
    );
}

#[tokio::test(start_paused = true)]
async fn drafts_show_the_answer_or_the_activity() {
    let mut all = String::new();
    for mode in [PreviewMode::Off, PreviewMode::Partial, PreviewMode::Block, PreviewMode::Progress] {
        for (commands, commentary, tool_progress) in
            [(CommandText::Raw, true, true), (CommandText::Status, false, false)]
        {
            let chunk = Chunking { min_chars: 4, max_chars: 12, ..Preview::CHUNK };
            let progress_draft =
                ProgressDraft { max_lines: 3, max_line_chars: 20, tool_progress, commentary, commands };
            let preview = Preview { mode, chunk, progress: progress_draft };
            let text_limit = Some(TextLimit { max: 30, unit: TextUnit::Utf16 });
            let mut replies = Replies::new(ReplyOptions { preview, text_limit, ..ReplyOptions::default() });
            let mut out = Pieces::new();
            let exec = call("bash", "c1", json!({"command": "cargo build --release --all"}));
            let mut events = says("\nLet me look. I build it now, and then more.");
            events.extend([tool_start(&exec), progress(&exec, "linking"), tool_end(&exec, ToolOutput::text("ok"))]);
            events.extend([tool_start(&exec), progress(&exec, "linking"), tool_end(&exec, ToolOutput::text("ok"))]);
            events.iter().for_each(|event| replies.push(event, &mut out));
            if let Some(at) = replies.wake_at() {
                tokio::time::sleep(at.left()).await;
                out.push(Piece::Wake);
                replies.wake(&mut out);
                assert!(replies.wake_at().is_none());
            }
            events.iter().skip(5).take(1).for_each(|event| replies.push(event, &mut out));
            says("Done.").iter().for_each(|event| replies.push(event, &mut out));
            out.retain(|piece| matches!(piece, Piece::Draft(_) | Piece::Wake));
            all += &format!("{mode:?} {commands:?}\n{}\n", lines(&out));
        }
    }
    insta::assert_snapshot!(all);
}

#[tokio::test(start_paused = true)]
async fn small_blocks_wait_for_others_until_the_chat_is_idle() {
    let coalescing =
        Coalescing { min_chars: 4, idle: Duration::from_secs(1), joiner: " ".into(), ..Coalescing::default() };
    let mut replies = Replies::new(ReplyOptions { coalescing: Some(coalescing), ..in_blocks() });
    assert_eq!(blocks(&mut replies, start().into_iter().chain([delta("One.\n\nTwo.\n\nThree")])), [""; 0]);
    let mut out = Pieces::new();
    replies.wake(&mut out);
    assert_eq!(lines(&out), "");
    tokio::time::sleep(replies.wake_at().unwrap().left()).await;
    replies.wake(&mut out);
    assert_eq!(lines(&out), "block \"One. Two.\" at 1:0..12\n");
    assert!(replies.wake_at().is_none());
    assert_eq!(run(&mut replies, [end("One.\n\nTwo.\n\nThree")]), "block \"Three\" at 1:12..17\n");
}

#[test]
fn what_is_buffered_is_sent_before_a_tool_and_at_the_end() {
    let read = call("read", "c1", json!({"path": "a"}));
    let mut all = String::new();
    for block_streaming in [true, false] {
        let mut replies = Replies::new(ReplyOptions { block_streaming, ..in_blocks() });
        let mut out = Pieces::new();
        let before =
            [start().to_vec(), vec![delta("One"), tool_start(&read), delta(" more"), end("One more")]].concat();
        before.iter().for_each(|event| replies.push(event, &mut out));
        start().iter().for_each(|event| replies.push(event, &mut out));
        replies.push(&delta("Two <thi"), &mut out);
        replies.finish(&mut out);
        all += &(lines(&out) + "\n");
    }
    insta::assert_snapshot!(all);
}
