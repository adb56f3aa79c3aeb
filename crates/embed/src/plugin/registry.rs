//! The plugins of an engine, and how they are called.

use std::cmp::Reverse;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use pinch_coding_agent::extension::{Extension, HandlerFuture};
use tokio::task::JoinSet;

use super::Plugin;
use super::answers::CombineAnswers;
use super::guard::{guarded, guarded_now};
use super::hook_point::{HookPoint, HookRules};
use super::payloads::{BeforeAgentRun, HookContext, RunVerdict};

/// The plugins of an engine, in order of registration. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct PluginSet {
    plugins: Vec<RegisteredPlugin>,
    tasks: Arc<Mutex<JoinSet<()>>>,
}

#[derive(Clone)]
pub(super) struct RegisteredPlugin {
    pub(super) name: Arc<str>,
    pub(super) plugin: Arc<dyn Plugin>,
}

/// A plugin, and how one of its hooks is called.
pub(super) struct HookCall<'a> {
    one: &'a RegisteredPlugin,
    hook: HookPoint,
    rules: HookRules,
}

impl<'a> HookCall<'a> {
    pub(super) fn name(&self) -> &'a str {
        &self.one.name
    }

    /// Returns whether a failure blocks what the hook guards.
    pub(super) fn blocks_on_error(&self) -> bool {
        self.rules.blocks_on_error
    }

    /// Calls the hook. `None`: it failed.
    pub(super) async fn ask<T>(&self, call: impl FnOnce(&'a dyn Plugin) -> HandlerFuture<'a, T>) -> Option<T> {
        let plugin: &'a dyn Plugin = &*self.one.plugin;
        guarded(self.hook.name(), &self.one.name, self.rules.limit, || call(plugin)).await
    }
}

impl RegisteredPlugin {
    fn rules(&self, hook: HookPoint) -> HookRules {
        guarded_now("rules", &self.name, || self.plugin.rules(hook)).unwrap_or_else(|| HookRules::of(hook))
    }
}

/// A method of plugins that returns an answer; `C` is its context.
pub(super) type AskMethod<E, C, A> = for<'a> fn(&'a dyn Plugin, &'a E, &'a C) -> HandlerFuture<'a, A>;

impl PluginSet {
    /// Adds a plugin.
    pub(crate) fn add(&mut self, plugin: Arc<dyn Plugin>) {
        let name = guarded_now("name", "unknown", || Arc::<str>::from(plugin.name()));
        let name = name.unwrap_or_else(|| Arc::from("unknown"));
        self.plugins.push(RegisteredPlugin { name, plugin });
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.plugins.is_empty()
    }

    /// Returns the plugins in the order in which a hook calls them.
    pub(super) fn calls(&self, hook: HookPoint) -> Vec<HookCall<'_>> {
        let call = |one| HookCall { one, hook, rules: one.rules(hook) };
        let mut calls: Vec<_> = self.plugins.iter().map(call).collect();
        calls.sort_by_key(|call| Reverse(call.rules.priority));
        calls
    }

    /// Returns the directories of skills that plugins bring.
    pub(crate) fn skill_directories(&self) -> Vec<PathBuf> {
        let of =
            |one: &RegisteredPlugin| guarded_now("skill_directories", &one.name, || one.plugin.skill_directories());
        self.plugins.iter().filter_map(of).flatten().collect()
    }

    /// Returns the plugins as extensions of a session.
    pub(crate) fn extensions(&self) -> impl Iterator<Item = Arc<dyn Extension>> {
        let calls = self.calls(HookPoint::BeforeToolCall);
        calls.into_iter().map(|call| -> Arc<dyn Extension> { Arc::clone(&call.one.plugin) as Arc<dyn Extension> })
    }

    /// Asks all plugins, one after another, and combines their answers.
    pub(super) async fn ask<E, C, A: CombineAnswers + Default>(
        &self,
        hook: HookPoint,
        event: &E,
        cx: &C,
        method: AskMethod<E, C, A>,
    ) -> A {
        let mut all = A::default();
        for call in self.calls(hook) {
            all.combine(call.ask(|plugin| method(plugin, event, cx)).await.unwrap_or_default());
        }
        all
    }

    /// Asks the plugins whether a run proceeds, until one rejects it.
    pub(super) async fn verdict(&self, event: &BeforeAgentRun, cx: &HookContext) -> RunVerdict {
        for call in self.calls(HookPoint::BeforeAgentRun) {
            match call.ask(|plugin| plugin.before_agent_run(event, cx)).await {
                Some(RunVerdict::Proceed) => {}
                Some(reject) => return reject,
                None if !call.blocks_on_error() => {}
                None => {
                    let reason = Some(format!("the plugin {} could not be asked", call.name()));
                    return RunVerdict::Reject { reason, user_message: None };
                }
            }
        }
        RunVerdict::Proceed
    }

    /// Notifies all plugins without waiting for them. Does nothing outside a runtime.
    pub(super) fn notify<E: Send + Sync + 'static, C: Send + Sync + 'static>(
        &self,
        hook: HookPoint,
        event: E,
        cx: &Arc<C>,
        method: AskMethod<E, C, ()>,
    ) {
        self.notify_some(self.plugins.iter(), hook, event, cx, method);
    }

    /// Like [`notify`](Self::notify), for the plugin of a call alone.
    pub(super) fn notify_one<E: Send + Sync + 'static, C: Send + Sync + 'static>(
        &self,
        call: &HookCall<'_>,
        hook: HookPoint,
        event: E,
        cx: &Arc<C>,
        method: AskMethod<E, C, ()>,
    ) {
        self.notify_some(std::iter::once(call.one), hook, event, cx, method);
    }

    fn notify_some<'a, E: Send + Sync + 'static, C: Send + Sync + 'static>(
        &self,
        plugins: impl Iterator<Item = &'a RegisteredPlugin>,
        hook: HookPoint,
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
        for one in plugins.cloned() {
            let (event, cx) = (Arc::clone(&event), Arc::clone(cx));
            tasks.spawn(async move {
                let limit = one.rules(hook).limit;
                guarded(hook.name(), &one.name, limit, || method(&*one.plugin, &event, &cx)).await;
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
