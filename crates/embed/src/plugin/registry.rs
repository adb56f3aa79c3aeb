//! The plugins of an engine, and how they are called.

use std::cmp::Reverse;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use pinch_coding_agent::extension::{Extension, HandlerFuture};
use tokio::task::JoinSet;

use super::Plugin;
use super::answers::CombineAnswers;
use super::guard::{ASK_LIMIT, WATCH_LIMIT, guarded, guarded_now};
use super::payloads::{BeforeAgentRun, HookContext, RunVerdict};

/// The plugins of an engine, by descending priority. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct PluginSet {
    plugins: Vec<RegisteredPlugin>,
    tasks: Arc<Mutex<JoinSet<()>>>,
}

#[derive(Clone)]
pub(super) struct RegisteredPlugin {
    pub(super) name: Arc<str>,
    pub(super) plugin: Arc<dyn Plugin>,
    priority: i32,
}

/// A method of plugins that returns an answer; `C` is its context.
pub(super) type AskMethod<E, C, A> = for<'a> fn(&'a dyn Plugin, &'a E, &'a C) -> HandlerFuture<'a, A>;

impl PluginSet {
    /// Adds a plugin.
    pub(crate) fn add(&mut self, plugin: Arc<dyn Plugin>) {
        let name = guarded_now("name", "unknown", || Arc::<str>::from(plugin.name()));
        let name = name.unwrap_or_else(|| Arc::from("unknown"));
        let priority = guarded_now("priority", &name, || plugin.priority()).unwrap_or(0);
        self.plugins.push(RegisteredPlugin { name, plugin, priority });
        self.plugins.sort_by_key(|one| Reverse(one.priority));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.plugins.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &RegisteredPlugin> {
        self.plugins.iter()
    }

    /// Returns the plugins as extensions of a session.
    pub(crate) fn extensions(&self) -> impl Iterator<Item = Arc<dyn Extension>> {
        self.plugins.iter().map(|one| -> Arc<dyn Extension> { Arc::clone(&one.plugin) as Arc<dyn Extension> })
    }

    /// Asks all plugins, one after another, and combines their answers.
    pub(super) async fn ask<E, C, A: CombineAnswers + Default>(
        &self,
        hook: &str,
        event: &E,
        cx: &C,
        method: AskMethod<E, C, A>,
    ) -> A {
        let mut all = A::default();
        for one in &self.plugins {
            let answer = guarded(hook, &one.name, ASK_LIMIT, || method(&*one.plugin, event, cx)).await;
            all.combine(answer.unwrap_or_default());
        }
        all
    }

    /// Asks the plugins whether a run proceeds, until one rejects it.
    pub(super) async fn verdict(&self, event: &BeforeAgentRun, cx: &HookContext) -> RunVerdict {
        for one in &self.plugins {
            let hook = "before_agent_run";
            let verdict = guarded(hook, &one.name, ASK_LIMIT, || one.plugin.before_agent_run(event, cx)).await;
            let rejects = || guarded_now("rejects_on_error", &one.name, || one.plugin.rejects_on_error());
            match verdict {
                Some(RunVerdict::Proceed) => {}
                Some(reject) => return reject,
                None if rejects() == Some(false) => {}
                None => {
                    let reason = Some(format!("the plugin {} could not be asked", one.name));
                    return RunVerdict::Reject { reason, user_message: None };
                }
            }
        }
        RunVerdict::Proceed
    }

    /// Notifies all plugins without waiting for them. Does nothing outside a runtime.
    pub(super) fn notify<E: Send + Sync + 'static, C: Send + Sync + 'static>(
        &self,
        hook: &'static str,
        event: E,
        cx: &Arc<C>,
        method: AskMethod<E, C, ()>,
    ) {
        if self.plugins.is_empty() || tokio::runtime::Handle::try_current().is_err() {
            return;
        }
        let event = Arc::new(event);
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        for one in self.plugins.iter().cloned() {
            let (event, cx) = (Arc::clone(&event), Arc::clone(cx));
            tasks.spawn(async move {
                guarded(hook, &one.name, WATCH_LIMIT, || method(&*one.plugin, &event, &cx)).await;
            });
        }
    }

    /// Waits until all notifications are done.
    pub(crate) async fn drain(&self) {
        let mut tasks = std::mem::take(&mut *self.tasks.lock().unwrap_or_else(PoisonError::into_inner));
        while tasks.join_next().await.is_some() {}
    }
}

impl fmt::Debug for PluginSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.plugins.iter().map(|one| &one.name)).finish()
    }
}
