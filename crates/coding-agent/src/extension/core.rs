//! State shared by a session's extensions.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use pinch_agent_core::Tool;
use pinch_stdx::cancel::Cancel;
use pinch_stdx::host::Host;
use serde_json::Value;

use super::Command;
use super::actions::SessionActions;
use super::error::ExtensionError;
use super::limit::guarded_now;
use super::register::{Flag, FlagValue, ProviderChange, Registrations, Shortcut};
use super::rendering::RegisteredRenderer;
use super::ui::{Onlooker, Screen, Ui};
use crate::event::ExtensionFailure;

/// Maximum failures kept until they are reported; the oldest are dropped.
const MAX_FAILURES: usize = 256;
/// Maximum provider changes waiting to be taken; the oldest are dropped.
const MAX_PROVIDER_CHANGES: usize = 1024;
/// Maximum number of tools, and of listeners, that a session's extensions may register.
const MAX_REGISTERED: usize = 4096;

/// Called with messages from other extensions.
pub type BusListener = Arc<dyn Fn(&Value) + Send + Sync>;

/// A command with the name users call it by.
#[derive(Clone)]
#[non_exhaustive]
pub struct FoundCommand {
    /// The name, with a number if several extensions use the same one.
    pub name: String,
    /// The extension that provides it.
    pub extension: Arc<str>,
    /// The command.
    pub command: Arc<dyn Command>,
}

/// A key that runs a command of an extension.
#[derive(Clone)]
#[non_exhaustive]
pub struct FoundShortcut {
    /// The key, as the extension wrote it.
    pub key: String,
    /// The command, which has no arguments.
    pub command: FoundCommand,
}

pub(super) struct Core {
    host: Host,
    screen: Mutex<Screen>,
    onlooker: OnceLock<Arc<dyn Onlooker>>,
    bound: Mutex<BoundSession>,
    failures: Mutex<VecDeque<ExtensionFailure>>,
    has_failures: AtomicBool,
    registry: Mutex<Registry>,
    listeners: Mutex<Vec<(Arc<str>, String, BusListener)>>,
}

/// The current session.
#[derive(Default)]
struct BoundSession {
    generation: u64,
    actions: Option<Arc<dyn SessionActions>>,
    cancel: Cancel,
}

#[derive(Default)]
pub(super) struct Registry {
    pub(super) tools: Vec<(Arc<str>, Arc<dyn Tool>)>,
    commands: Vec<(Arc<str>, Arc<dyn Command>)>,
    pub(super) flags: Vec<(Arc<str>, Flag)>,
    pub(super) flag_values: HashMap<String, FlagValue>,
    pub(super) shortcuts: Vec<(Arc<str>, Shortcut)>,
    pub(super) renderers: Vec<(Arc<str>, RegisteredRenderer)>,
    providers: VecDeque<(Arc<str>, ProviderChange)>,
}

impl Registry {
    /// Moves what an extension has registered from another registry.
    pub(super) fn adopt(&mut self, extension: &Arc<str>, from: &mut Self) {
        fn of<T>(extension: &Arc<str>, from: &mut Vec<(Arc<str>, T)>, to: &mut Vec<(Arc<str>, T)>) {
            to.extend(from.extract_if(.., |(owner, _)| owner == extension));
        }
        of(extension, &mut from.tools, &mut self.tools);
        of(extension, &mut from.commands, &mut self.commands);
        of(extension, &mut from.flags, &mut self.flags);
        of(extension, &mut from.shortcuts, &mut self.shortcuts);
        of(extension, &mut from.renderers, &mut self.renderers);
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Core {
    pub(super) fn new(host: Host, ui: Arc<dyn Ui>) -> Self {
        Self {
            host,
            screen: Mutex::new(Screen::new(ui)),
            onlooker: OnceLock::new(),
            bound: Mutex::default(),
            failures: Mutex::default(),
            has_failures: AtomicBool::new(false),
            registry: Mutex::default(),
            listeners: Mutex::default(),
        }
    }

    pub(super) fn host(&self) -> Host {
        self.host.clone()
    }

    pub(super) fn screen(&self) -> Screen {
        let mut screen = locked(&self.screen).clone();
        screen.onlooker = self.onlooker.get().cloned();
        screen
    }

    /// Sets the observer of dialogs; the first one is kept.
    pub(super) fn set_onlooker(&self, onlooker: Arc<dyn Onlooker>) {
        self.onlooker.get_or_init(|| onlooker);
    }

    pub(super) fn set_ui(&self, ui: Arc<dyn Ui>) {
        *locked(&self.screen) = Screen::new(ui);
    }

    /// Binds the extensions to a session; older contexts become stale.
    pub(super) fn bind(&self, actions: Option<Arc<dyn SessionActions>>) {
        let mut bound = locked(&self.bound);
        bound.generation += 1;
        bound.actions = actions;
        bound.cancel = Cancel::new();
    }

    /// Invalidates earlier contexts because the session has another conversation.
    pub(super) fn renew(&self) {
        locked(&self.bound).generation += 1;
    }

    /// Returns the current generation, with the cancellation token of the current prompt.
    pub(super) fn current(&self) -> Option<(u64, Cancel)> {
        let bound = locked(&self.bound);
        bound.actions.is_some().then(|| (bound.generation, bound.cancel.clone()))
    }

    pub(super) fn set_cancel(&self, cancel: Cancel) {
        locked(&self.bound).cancel = cancel;
    }

    pub(super) fn actions(&self, generation: u64) -> Option<Arc<dyn SessionActions>> {
        let bound = locked(&self.bound);
        bound.actions.clone().filter(|_| bound.generation == generation)
    }

    pub(super) fn report(&self, extension: &str, event: &str, error: &ExtensionError) {
        tracing::warn!(extension, event, %error, "an extension failed");
        let failure =
            ExtensionFailure { extension: extension.to_owned(), event: event.to_owned(), error: error.to_string() };
        let mut failures = locked(&self.failures);
        if failures.len() >= MAX_FAILURES {
            failures.pop_front();
        }
        failures.push_back(failure);
        self.has_failures.store(true, Ordering::Release);
    }

    pub(super) fn take_failures(&self) -> Vec<ExtensionFailure> {
        // Checked at every event: loading is cheaper than swapping.
        if !self.has_failures.load(Ordering::Acquire) || !self.has_failures.swap(false, Ordering::AcqRel) {
            return Vec::new();
        }
        locked(&self.failures).drain(..).collect()
    }

    /// Stores an extension's registrations. Returns descriptions of rejected ones.
    pub(super) fn take_in(&self, extension: &Arc<str>, brought: Registrations) -> Vec<String> {
        let mut problems = Vec::new();
        for tool in brought.tools {
            problems.extend(self.add_tool(extension, tool).err());
        }
        let mut registry = locked(&self.registry);
        for flag in brought.flags {
            match registry.flags.iter().find(|(_, known)| known.name == flag.name) {
                Some((owner, _)) => problems.push(format!("Flag \"--{}\" conflicts with {owner}", flag.name)),
                None => registry.flags.push((Arc::clone(extension), flag)),
            }
        }
        let owned = |extension: &Arc<str>| Arc::clone(extension);
        registry.commands.extend(brought.commands.into_iter().map(|command| (owned(extension), command)));
        registry.shortcuts.extend(brought.shortcuts.into_iter().map(|shortcut| (owned(extension), shortcut)));
        registry.renderers.extend(brought.renderers.into_iter().map(|renderer| (owned(extension), renderer)));
        drop(registry);
        for change in brought.providers {
            self.change_provider(extension, change);
        }
        problems
    }

    /// Adds a tool, replacing the same extension's tool of that name.
    ///
    /// # Errors
    /// Fails if another extension has a tool of that name, or there are too many.
    pub(super) fn add_tool(&self, extension: &Arc<str>, tool: Arc<dyn Tool>) -> Result<(), String> {
        let name = guarded_now(|| Ok(tool.spec().name.clone())).map_err(|error| error.to_string())?;
        let mut registry = locked(&self.registry);
        let is_full = registry.tools.len() >= MAX_REGISTERED;
        match registry.tools.iter_mut().find(|(_, known)| known.spec().name == name) {
            Some((owner, known)) if owner == extension => *known = tool,
            Some((owner, _)) => return Err(format!("Tool \"{name}\" conflicts with {owner}")),
            None if is_full => return Err("Too many tools".to_owned()),
            None => registry.tools.push((Arc::clone(extension), tool)),
        }
        Ok(())
    }

    /// Removes what extensions have registered, except for the values of flags, and returns it. The listeners of `kept` ones stay.
    pub(super) fn begin_registry(&self, kept: &[Arc<str>]) -> Registry {
        locked(&self.listeners).retain(|(owner, ..)| kept.contains(owner));
        let mut registry = locked(&self.registry);
        let flag_values = registry.flag_values.clone();
        let providers = std::mem::take(&mut registry.providers);
        std::mem::replace(&mut *registry, Registry { flag_values, providers, ..Registry::default() })
    }

    pub(super) fn registry<T>(&self, look: impl FnOnce(&mut Registry) -> T) -> T {
        look(&mut locked(&self.registry))
    }

    pub(super) fn change_provider(&self, extension: &Arc<str>, change: ProviderChange) {
        let mut registry = locked(&self.registry);
        if registry.providers.len() >= MAX_PROVIDER_CHANGES {
            registry.providers.pop_front();
        }
        registry.providers.push_back((Arc::clone(extension), change));
    }

    pub(super) fn take_provider_changes(&self) -> Vec<(Arc<str>, ProviderChange)> {
        locked(&self.registry).providers.drain(..).collect()
    }

    /// Applies the pending provider changes, unless that is up to the owner of the session.
    pub(super) fn apply_provider_changes(&self) {
        let Some(actions) = self.current().and_then(|(generation, _)| self.actions(generation)) else { return };
        let models = actions.models();
        for (extension, change) in self.take_provider_changes() {
            match models.change(&change) {
                Ok(true) => {}
                Ok(false) => self.change_provider(&extension, change),
                Err(error) => self.report(&extension, "load", &error),
            }
        }
    }

    /// Returns all commands with the names users call them by.
    pub(super) fn commands(&self) -> Vec<FoundCommand> {
        let commands = locked(&self.registry).commands.clone();
        let mut total: HashMap<&str, usize> = HashMap::new();
        commands.iter().for_each(|(_, command)| *total.entry(command.name()).or_default() += 1);
        let mut seen: HashMap<&str, usize> = HashMap::new();
        let found = commands.iter().map(|(extension, command)| {
            let name = command.name();
            let nth = seen.entry(name).or_default();
            *nth += 1;
            let name = if total[name] > 1 { format!("{name}:{nth}") } else { name.to_owned() };
            FoundCommand { name, extension: Arc::clone(extension), command: Arc::clone(command) }
        });
        found.collect()
    }

    /// Returns the value of a flag for the extension that owns it.
    pub(super) fn flag(&self, extension: &Arc<str>, name: &str) -> Option<FlagValue> {
        let registry = locked(&self.registry);
        let (_, flag) = registry.flags.iter().find(|(owner, flag)| owner == extension && flag.name == name)?;
        registry.flag_values.get(name).cloned().or_else(|| flag.kind.default_value())
    }

    pub(super) fn listen(&self, extension: &Arc<str>, topic: &str, heard: BusListener) {
        let mut listeners = locked(&self.listeners);
        if listeners.len() < MAX_REGISTERED {
            listeners.push((Arc::clone(extension), topic.to_owned(), heard));
        }
    }

    /// Calls all listeners; one that panics is reported, and the others are still called.
    pub(super) fn emit(&self, topic: &str, data: &Value) {
        let of_topic = |(_, known, _): &&(Arc<str>, String, BusListener)| known == topic;
        let listeners: Vec<_> = locked(&self.listeners).iter().filter(of_topic).cloned().collect();
        for (extension, _, heard) in listeners {
            let called = guarded_now(|| {
                heard(data);
                Ok(())
            });
            if let Err(error) = called {
                self.report(&extension, topic, &error);
            }
        }
    }
}
