//! The tools of a session, and which of them the model may call.

use std::fmt;
use std::sync::Arc;

use pinch_agent_core::declare::Declared;
use pinch_agent_core::{Tool, ToolSet};
use pinch_llm::message::Message;

use crate::extension::Extensions;
use crate::prompt::PromptSections;

/// Builds the system prompt for a set of active tools.
pub type PromptFor = Arc<dyn Fn(&ToolSet) -> PromptSections + Send + Sync>;

/// Decides how the active tools are offered to the model: which it is told about, and which are only called through a gateway.
pub type ArrangeTools = Arc<dyn Fn(&ToolSet) -> ToolSet + Send + Sync>;

/// The tools of a session, without those of extensions.
#[derive(Clone)]
pub(super) struct Tooling {
    /// All of them.
    pub(super) built_in: ToolSet,
    /// Names of the only tools that may exist, including those of extensions; `None` allows all.
    pub(super) allowed: Option<Vec<String>>,
    /// Names of the active tools, in order.
    pub(super) active: Vec<String>,
    /// Names of the active tools of a new session, in order.
    initial: Vec<String>,
    /// Whether a conversation that has declared tools gets those back.
    restores: bool,
    pub(super) prompt_for: Option<PromptFor>,
    /// Arranges the active tools; `None` offers them as they are.
    pub(super) arrange: Option<ArrangeTools>,
    /// Names of extension tools that were picked up, or that the branch removed.
    known: Vec<String>,
}

fn names(tools: &ToolSet) -> Vec<String> {
    tools.iter().map(|tool| tool.spec().name.clone()).collect()
}

impl Tooling {
    /// `active` are the tools of a new session; with `all`, a conversation that has declared tools gets those back.
    pub(super) fn new(
        active: &ToolSet,
        all: Option<ToolSet>,
        allowed: Option<Vec<String>>,
        prompt_for: Option<PromptFor>,
    ) -> Self {
        let (restores, initial) = (all.is_some(), names(active));
        let built_in = all.unwrap_or_else(|| active.clone());
        let (active, known) = (initial.clone(), Vec::new());
        Self { built_in, allowed, active, initial, restores, prompt_for, arrange: None, known }
    }

    /// Makes the tools active that a session with this conversation starts with.
    pub(super) fn begin_again(&mut self, messages: &[Arc<Message>], extensions: &Extensions) {
        self.active.clone_from(&self.initial);
        self.known.clear();
        if self.restores {
            self.restore(messages);
        }
        self.take_in(extensions);
    }

    /// Replaces the active tools with those that a branch has declared. Extension tools not mentioned in it are added later; those it
    /// removed are not.
    fn restore(&mut self, messages: &[Arc<Message>]) {
        let mut declared = Declared::default();
        let mut gone: Vec<String> = Vec::new();
        let mut any = false;
        for message in messages {
            if let Message::System(system) = &**message {
                any |= !system.tools_added.is_empty() || !system.tools_removed.is_empty();
                gone.extend(system.tools_removed.iter().cloned());
            }
            declared.apply(message);
        }
        if any {
            self.active = declared.names().map(str::to_owned).collect();
            self.known = gone;
        }
    }

    /// Returns all tools, including those of extensions.
    pub(super) fn all(&self, extensions: &Extensions) -> ToolSet {
        let all = extensions.over(&self.built_in);
        match &self.allowed {
            None => all,
            Some(allowed) => all.filter(|tool| allowed.contains(&tool.spec().name)),
        }
    }

    /// Picks up new tools of extensions, which become active.
    pub(super) fn take_in(&mut self, extensions: &Extensions) {
        for name in names(&extensions.tools()) {
            if !self.known.contains(&name) {
                if !self.active.contains(&name) && self.built_in.get(&name).is_none() {
                    self.active.push(name.clone());
                }
                self.known.push(name);
            }
        }
    }

    /// Returns the active tools.
    pub(super) fn active(&self, extensions: &Extensions) -> ToolSet {
        let all = self.all(extensions);
        self.active.iter().filter_map(|name| all.get(name)).cloned().collect::<ToolSet>()
    }

    /// Returns what the model is offered of these active tools.
    pub(super) fn offered(&self, active: &ToolSet) -> ToolSet {
        self.arrange.as_ref().map_or_else(|| active.clone(), |arrange| arrange(active))
    }

    /// Sets the active tools from an owner's tool set.
    pub(super) fn adopt(&mut self, tools: &ToolSet, extensions: &Extensions) {
        self.active = names(tools);
        let theirs = extensions.tools();
        let is_foreign =
            |tool: &Arc<dyn Tool>| theirs.get(&tool.spec().name).is_some_and(|other| Arc::ptr_eq(tool, other));
        let own: ToolSet = tools.iter().filter(|tool| !is_foreign(tool)).cloned().collect();
        let name = |tool: &Arc<dyn Tool>| tool.spec().name.clone();
        let kept = self.built_in.iter().map(|tool| own.get(&name(tool)).unwrap_or(tool));
        let new = own.iter().filter(|tool| self.built_in.get(&name(tool)).is_none());
        self.built_in = kept.chain(new).cloned().collect();
    }
}

impl fmt::Debug for Tooling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tooling")
            .field("built_in", &self.built_in)
            .field("active", &self.active)
            .finish_non_exhaustive()
    }
}
