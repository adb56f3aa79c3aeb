//! Formatting and delivery of replies: from the request, else from the configuration of its channel, else from the table of channels.

use std::path::Path;

use pinch_llm::thinking::ThinkingLevel;
use pinch_sandbox::container::AGENT_MOUNT;

use crate::config::paths::expand_home;
use crate::config::streaming::{ChannelDelivery, CoalesceConfig, ReplyThreads};
use crate::delivery::{DeliveryTerms, Pace, SinkLimits};
use crate::parts::Parts;
use crate::plugin::{MessageContext, MessageHooks};
use crate::replies::blocks::BlockBreak;
use crate::replies::channel::{ChannelRules, rules_of};
use crate::replies::chunk::{BreakPreference, Chunking};
use crate::replies::coalesce::Coalescing;
use crate::replies::compose::Stages;
use crate::replies::directives::media::MediaRoots;
use crate::replies::directives::threading::ReplyToMode;
use crate::replies::directives::{DirectiveRules, TagForms};
use crate::replies::prefix::ResponsePrefix;
use crate::replies::preview::Preview;
use crate::replies::raw_log::RawLog;
use crate::replies::tool_notes::ToolFormat;
use crate::replies::unit::TextLimit;
use crate::replies::{Replies, ReplyOptions};
use crate::run::request::BlockReplies;
use crate::run::scope::RunScope;
use crate::run::{RunError, RunRequest};

use super::resolve;

/// What is known about the channel of a request, and its configuration.
struct ChannelTerms {
    rules: Option<&'static ChannelRules>,
    config: ChannelDelivery,
    prefix: Option<ResponsePrefix>,
}

impl ChannelTerms {
    fn of(parts: &Parts, request: &RunRequest) -> Self {
        let channel = request.caller.channel.as_deref().filter(|channel| !channel.trim().is_empty());
        let config = parts.config.channels.delivery(channel, request.caller.account.as_deref());
        let agents = &parts.config.agents;
        let agent = agents.get(&request.agent(agents)).and_then(|agent| agent.name.as_deref());
        let template = config.response_prefix.as_deref().or(parts.config.replies.prefix.as_deref());
        let prefix = template.and_then(|template| ResponsePrefix::new(template, agent));
        Self { rules: channel.map(rules_of), config, prefix }
    }

    /// Returns the message length limit; `None` for an unknown channel.
    fn text(&self) -> Option<TextLimit> {
        let rules = self.rules?;
        Some(TextLimit { max: self.config.text_limit.unwrap_or(rules.text.max), ..rules.text })
    }

    /// Returns how long a block may be if the prefix has to fit into the message, too.
    fn max_block(&self, limit: TextLimit) -> usize {
        let room = self.prefix.as_ref().map_or(0, |prefix| prefix.room(limit.unit));
        limit.max.saturating_sub(room).max(1)
    }

    /// Returns whether and how replies are delivered in blocks.
    fn blocks(&self, request: &RunRequest) -> Option<BlockReplies> {
        let blocks = request.block_replies.clone()?;
        let streams = || self.config.blocks.unwrap_or(self.rules.is_none_or(|rules| rules.streams_blocks));
        (!request.blocks_are_default || streams()).then_some(blocks)
    }

    /// Adapts block sizes to the channel.
    fn chunking(&self, chunking: Chunking) -> Chunking {
        let flush_on_paragraph = chunking.flush_on_paragraph || self.config.by_paragraph == Some(true);
        let Some(limit) = self.text() else { return Chunking { flush_on_paragraph, ..chunking } };
        let max_chars = chunking.max_chars.clamp(1, self.max_block(limit));
        let min_chars = chunking.min_chars.clamp(1, max_chars);
        Chunking { min_chars, max_chars, flush_on_paragraph, unit: limit.unit, ..chunking }
    }

    /// Returns how small blocks are joined, if at all.
    fn coalescing(
        &self,
        request: &RunRequest,
        blocks: &BlockReplies,
        of_all: Option<CoalesceConfig>,
    ) -> Option<Coalescing> {
        if let Some(asked) = &blocks.coalescing {
            return Some(asked.clone());
        }
        let config = self.config.coalesce.or(of_all);
        let usual_min = self.rules.and_then(|rules| rules.coalesce_min);
        // Paragraph mode sends each paragraph immediately, so it does not coalesce by default. A host that asks for blocks gets them as they
        // are, unless its channel prefers longer ones.
        let joins = usual_min.is_some() || (self.rules.is_some() && request.blocks_are_default);
        let is_usual = joins && blocks.break_at != BlockBreak::Paragraph;
        let config = config.or_else(|| is_usual.then(CoalesceConfig::default))?;
        let chunking = blocks.chunking.unwrap_or_default();
        let limit = self.text();
        let usual = Coalescing::default();
        let most = limit
            .map_or(config.max_chars.unwrap_or(usual.max_chars.max(chunking.max_chars)), |limit| self.max_block(limit));
        let max_chars = config.max_chars.unwrap_or(most).min(most);
        let joiner = match chunking.preference {
            BreakPreference::Paragraph => "\n\n",
            BreakPreference::Newline => "\n",
            BreakPreference::Sentence => " ",
        };
        Some(Coalescing {
            min_chars: config.min_chars.or(usual_min).unwrap_or(chunking.min_chars).min(max_chars),
            max_chars,
            idle: config.idle.unwrap_or(usual.idle),
            joiner: joiner.to_owned(),
            flush_on_enqueue: self.config.by_paragraph == Some(true),
            unit: limit.map_or(usual.unit, |limit| limit.unit),
        })
    }

    /// Returns the draft settings, with sizes in the channel's unit.
    fn preview(&self, request: &RunRequest) -> Preview {
        let mut preview = request.preview.or(self.config.preview).unwrap_or_default();
        if let Some(limit) = self.text() {
            let max_chars = preview.chunk.max_chars.min(limit.max);
            let min_chars = preview.chunk.min_chars.min(max_chars);
            preview.chunk = Chunking { min_chars, max_chars, unit: limit.unit, ..preview.chunk };
        }
        preview
    }

    fn threads(&self, request: &RunRequest) -> ReplyToMode {
        let tags_allowed = self.rules.is_some_and(|rules| rules.tags_when_off);
        let configured = || match self.config.threads {
            Some(ReplyThreads::Off) => ReplyToMode::Off { tags_allowed },
            Some(ReplyThreads::First) => ReplyToMode::First,
            Some(ReplyThreads::All) => ReplyToMode::All,
            None => self.rules.map_or(ReplyToMode::All, |rules| rules.threads),
        };
        request.reply_to_mode.unwrap_or_else(configured)
    }

    /// Returns the format of tool messages: as requested, else by the channel.
    fn tool_format(&self, request: &RunRequest) -> ToolFormat {
        let by_channel = match self.rules {
            Some(rules) if !rules.renders_markdown => ToolFormat::Plain,
            _ => ToolFormat::Markdown,
        };
        request.tool_result_format.unwrap_or(by_channel)
    }
}

/// Builds the reply pipeline of a run.
///
/// # Errors
/// If the host inserts a stage next to one that does not exist.
pub(super) fn replies(parts: &Parts, scope: &RunScope) -> Result<Replies, RunError> {
    let options = reply_options(parts, scope);
    let mut stages = Stages::new(&options);
    if let Some(change) = &parts.registered.reply_stages {
        change(&options, &mut stages).map_err(|error| RunError::Config(error.to_string()))?;
    }
    Ok(Replies::with_stages(options, stages).with_raw_log(raw_log(parts, &scope.request)))
}

/// Opens the raw stream log if `PINCH_RAW_STREAM` or `OPENCLAW_RAW_STREAM` is set.
fn raw_log(parts: &Parts, request: &RunRequest) -> Option<RawLog> {
    let env = parts.host.env();
    ["PINCH_RAW_STREAM", "OPENCLAW_RAW_STREAM"].iter().find(|name| env.is_on(name))?;
    let named = ["PINCH_RAW_STREAM_PATH", "OPENCLAW_RAW_STREAM_PATH"].iter().find_map(|name| env.non_empty(name));
    let path = match named {
        Some(path) => parts.state_dir.join(expand_home(Path::new(path), parts.host.home())),
        None => parts.state_dir.join("logs").join("raw-stream.jsonl"),
    };
    let opened = RawLog::open(&path, parts.host.clone(), &request.run_id, &request.session_id);
    opened.inspect_err(|error| tracing::warn!(%error, path = %path.display(), "the raw stream log is off")).ok()
}

fn reply_options(parts: &Parts, scope: &RunScope) -> ReplyOptions {
    let request = &scope.request;
    let channel = ChannelTerms::of(parts, request);
    let blocks = channel.blocks(request);
    let home = parts.host.home().map(|home| home.to_string_lossy().into_owned());
    let streaming = &parts.config.agents.defaults.block_streaming;
    ReplyOptions {
        tool_result_format: channel.tool_format(request),
        hide_native_reasoning: request.think_level == Some(ThinkingLevel::Off),
        suppress_tool_errors: parts.config.replies.suppress_tool_errors,
        block_streaming: blocks.is_some(),
        block_reply_break: blocks.as_ref().map(|blocks| blocks.break_at).unwrap_or_default(),
        chunking: blocks.as_ref().and_then(|blocks| blocks.chunking).map(|chunking| channel.chunking(chunking)),
        coalescing: blocks.as_ref().and_then(|blocks| channel.coalescing(request, blocks, streaming.coalesce)),
        reasoning: request.reasoning_level,
        verbose: request.verbose_level,
        verbose_now: request.verbose_now.clone(),
        directives: DirectiveRules {
            media_roots: media_roots(parts, scope, home.as_deref()),
            // Directives are read from a model's text only, never from the output of a tool.
            tags: if scope.skill_call.is_some() { TagForms::None } else { parts.config.replies.tags },
        },
        home,
        current_message: request.caller.message_id.clone(),
        reply_to: channel.threads(request),
        preview: channel.preview(request),
        text_limit: channel.text(),
        prefix: channel.prefix,
        texts: parts.registered.texts.clone(),
        quiet_lifecycle: true,
    }
}

/// Returns the directories whose files a model may name: its workspace, those of the request, and the media received by the host. In a
/// sandbox, only what is visible there, also under the names it has there.
fn media_roots(parts: &Parts, scope: &RunScope, home: Option<&str>) -> MediaRoots {
    let text = |dir: &Path| dir.to_string_lossy().into_owned();
    let mut dirs = vec![text(&scope.workspace)];
    dirs.extend(scope.request.media_roots.iter().map(|dir| text(dir)));
    let Some(sandbox) = &scope.sandbox else {
        dirs.push(text(&parts.state_dir.join("media")));
        return MediaRoots::new(dirs, home);
    };
    let workdir = &parts.config.sandbox.of(&scope.agent_id).container.workdir;
    let mut aliases = vec![(workdir.clone(), text(&scope.workspace))];
    if let Some(agent_workspace) = &sandbox.mount {
        dirs.push(agent_workspace.clone());
        aliases.push((AGENT_MOUNT.to_owned(), agent_workspace.clone()));
    }
    MediaRoots::new(dirs, home).aliases(aliases).confined()
}

/// Returns the delivery settings of a run's reply besides the limits of the sink.
pub(super) fn delivery_terms(parts: &Parts, request: &RunRequest) -> DeliveryTerms {
    let channel = ChannelTerms::of(parts, request);
    let agents = &parts.config.agents;
    let own = agents.get(&request.agent(agents)).and_then(|agent| agent.human_delay);
    let delay = own.unwrap_or(agents.defaults.human_delay);
    DeliveryTerms {
        limits: SinkLimits { text: channel.text(), max_media: None, max_media_bytes: channel.config.media_bytes },
        pace: delay.map(|delay| Pace { min: delay.min, max: delay.max, host: parts.host.clone() }),
        texts: parts.registered.texts.clone(),
        media_dir: resolve::working_dir(parts, request),
        hooks: MessageHooks::new(
            &parts.registered.plugins,
            || MessageContext::new(&request.caller, request.session_key.as_deref(), Some(&request.run_id)),
            request.message_to.as_ref(),
        ),
    }
}
