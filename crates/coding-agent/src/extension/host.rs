//! Combining several extensions.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock, Weak};
use std::time::Duration;

use futures::future::BoxFuture;
use pinch_agent_core::{Tool, ToolSet};
use pinch_stdx::cancel::Cancel;
use pinch_stdx::host::Host;

use super::actions::SessionActions;
use super::command_cx::CommandCx;
use super::core::{Core, FoundCommand, FoundShortcut};
use super::cx::{ExtensionCx, ExtensionHandle};
use super::error::ExtensionError;
use super::limit::{Stopwatch, guarded, guarded_now};
use super::points::{Point, Points};
use super::register::{Flag, FlagKind, FlagValue, ProviderChange, Registrations, Shortcut};
use super::rendering::Renderers;
use super::ui::{Dialog, NoUi, Onlooker, Ui, UiUpdate};
use super::{Extension, HANDLER_LIMIT, HandlerFuture, Notification};
use crate::event::ExtensionFailure;

mod ask;

pub use ask::InputOutcome;
pub(crate) use ask::header_texts;

/// The extensions of one session. Clones share them.
#[derive(Clone)]
pub struct Extensions(Arc<Loaded>);

struct Loaded {
    core: Arc<Core>,
    running: RwLock<CalledExtensions>,
}

/// The extensions that are called; others take their place when the session is replaced.
#[derive(Default)]
struct CalledExtensions {
    extensions: Vec<One>,
    points: Points,
}

/// A loaded extension.
#[derive(Clone)]
struct One {
    name: Arc<str>,
    points: Points,
    extension: Arc<dyn Extension>,
}

/// A flag from the command line, with its value if it has one.
pub type GivenFlag = (String, Option<String>);

impl Default for Extensions {
    fn default() -> Self {
        Self::load(&Host::builder().build(), [])
    }
}

impl Extensions {
    /// Loads extensions: they are registered, and later called, in this order. Problems are kept for [`Extensions::take_failures`]; an
    /// extension that fails here is skipped.
    pub fn load(host: &Host, extensions: impl IntoIterator<Item = Arc<dyn Extension>>) -> Self {
        let core = Arc::new(Core::new(host.clone(), Arc::new(NoUi)));
        let extensions: Vec<One> = extensions.into_iter().filter_map(|one| register(&core, one)).collect();
        let loaded = Arc::new(Loaded { core, running: RwLock::new(CalledExtensions::of(extensions)) });
        loaded.core.set_onlooker(Arc::new(Watches(Arc::downgrade(&loaded))));
        Self(loaded)
    }

    /// Starts the extensions anew for the next session: see [`Extension::restart`]. They keep their order and the flags of the command
    /// line. One that fails is reported and left out.
    pub(crate) async fn restart(&self) {
        let core = &self.0.core;
        let before = self.running(|running| running.extensions.clone());
        let restart = async |one: &One| {
            let watch = Stopwatch::start();
            guarded(|| one.extension.restart(), &watch, Some(HANDLER_LIMIT)).await
        };
        let restarted = futures::future::join_all(before.iter().map(restart)).await;
        let is_unchanged = |done: &Result<Option<Arc<dyn Extension>>, ExtensionError>| matches!(done, Ok(None));
        if restarted.iter().all(is_unchanged) {
            return;
        }
        let kept: Vec<Arc<str>> = before
            .iter()
            .zip(&restarted)
            .filter(|(_, done)| is_unchanged(done))
            .map(|(one, _)| Arc::clone(&one.name))
            .collect();
        let mut former = core.begin_registry(&kept);
        let mut extensions = Vec::new();
        for (one, done) in before.into_iter().zip(restarted) {
            match done {
                Ok(None) => {
                    core.registry(|registry| registry.adopt(&one.name, &mut former));
                    extensions.push(one);
                }
                Ok(Some(next)) => extensions.extend(register(core, next)),
                Err(error) => report_load(core, &one.name, &error),
            }
        }
        *self.0.running.write().unwrap_or_else(PoisonError::into_inner) = CalledExtensions::of(extensions);
        core.apply_provider_changes();
    }

    fn running<T>(&self, look: impl FnOnce(&CalledExtensions) -> T) -> T {
        look(&self.0.running.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Sets the user interface for dialogs; until then, dialogs are unanswered.
    pub fn set_ui(&self, ui: Arc<dyn Ui>) {
        self.0.core.set_ui(ui);
    }

    /// Removes from the user interface what the extensions of the previous session showed.
    pub(crate) fn reset_ui(&self) {
        self.0.core.screen().ui.show(UiUpdate::Reset);
    }

    /// Returns whether any extension handles a point.
    pub fn wants(&self, point: Point) -> bool {
        self.running(|running| running.points.has(point))
    }

    /// Returns whether there are no extensions.
    pub fn is_empty(&self) -> bool {
        self.running(|running| running.extensions.is_empty())
    }

    /// Returns the names of the extensions, in order.
    pub fn names(&self) -> impl Iterator<Item = Arc<str>> + use<> {
        let names: Vec<_> =
            self.running(|running| running.extensions.iter().map(|one| Arc::clone(&one.name)).collect());
        names.into_iter()
    }

    /// Returns the failures not reported yet, oldest first. A session emits them as events.
    pub fn take_failures(&self) -> Vec<ExtensionFailure> {
        self.0.core.take_failures()
    }

    /// Reports a failure.
    pub(crate) fn report(&self, extension: &str, event: &str, error: &ExtensionError) {
        self.0.core.report(extension, event, error);
    }

    /// Returns the tools of all extensions.
    pub fn tools(&self) -> ToolSet {
        self.0.core.registry(|registry| registry.tools.iter().map(|(_, tool)| Arc::clone(tool)).collect())
    }

    /// Returns the tools of all extensions, each with the name of its extension.
    pub fn owned_tools(&self) -> Vec<(Arc<str>, Arc<dyn Tool>)> {
        self.0.core.registry(|registry| registry.tools.clone())
    }

    /// Returns these tools with those of the extensions: a tool with the same name is replaced, others are appended.
    pub fn over(&self, built_in: &ToolSet) -> ToolSet {
        let theirs = self.tools();
        let name = |tool: &Arc<dyn Tool>| tool.spec().name.clone();
        let own = built_in.iter().map(|tool| theirs.get(&name(tool)).unwrap_or(tool));
        own.chain(theirs.iter().filter(|tool| built_in.get(&name(tool)).is_none())).cloned().collect()
    }

    /// Returns all commands with the names users call them by.
    pub fn commands(&self) -> Vec<FoundCommand> {
        self.0.core.commands()
    }

    /// Finds the command at the start of a text, and returns it with the arguments.
    pub fn find_command(&self, text: &str) -> Option<(FoundCommand, String)> {
        let text = text.strip_prefix('/')?;
        let (name, args) = text.split_once(' ').unwrap_or((text, ""));
        let found = self.commands().into_iter().find(|found| found.name == name)?;
        Some((found, args.to_owned()))
    }

    /// Runs a command. A failure is reported, not returned.
    pub async fn run_command(&self, found: &FoundCommand, args: &str) {
        let core = &self.0.core;
        let handle = ExtensionHandle::new(core, Arc::clone(&found.extension));
        let run = || async {
            let cx = CommandCx::new(handle.cx()?);
            found.command.run(args, &cx).await
        };
        if let Err(error) = guarded(run, &Stopwatch::start(), None).await {
            core.report(&format!("command:{}", found.name), "command", &error);
        }
    }

    /// Returns the flags that extensions define.
    pub fn flags(&self) -> Vec<Flag> {
        self.0.core.registry(|registry| registry.flags.iter().map(|(_, flag)| flag.clone()).collect())
    }

    /// Sets flags from the command line. Returns error messages for the user.
    pub fn set_flags(&self, given: &[GivenFlag]) -> Vec<String> {
        self.0.core.registry(|registry| {
            let mut problems = Vec::new();
            let mut unknown = Vec::new();
            for (name, value) in given {
                let Some((_, flag)) = registry.flags.iter().find(|(_, flag)| flag.name == *name) else {
                    unknown.push(format!("--{name}"));
                    continue;
                };
                let value = match (&flag.kind, value) {
                    (FlagKind::Boolean { .. }, _) => FlagValue::Boolean(true),
                    (FlagKind::Text { .. }, Some(value)) => FlagValue::Text(value.clone()),
                    (FlagKind::Text { .. }, None) => {
                        problems.push(format!("Extension flag \"--{name}\" requires a value"));
                        continue;
                    }
                };
                registry.flag_values.insert(name.clone(), value);
            }
            if !unknown.is_empty() {
                let word = if unknown.len() == 1 { "option" } else { "options" };
                problems.push(format!("Unknown {word}: {}", unknown.join(", ")));
            }
            problems
        })
    }

    /// Returns the effective shortcuts and warnings. `reserved` keys are refused; `used` ones cause a warning. If several extensions use a
    /// key, the last one wins.
    pub fn shortcuts(&self, reserved: &[&str], used: &[&str]) -> (Vec<FoundShortcut>, Vec<String>) {
        let all = self.0.core.registry(|registry| registry.shortcuts.clone());
        let (mut held, mut problems): (Vec<FoundShortcut>, Vec<String>) = Default::default();
        for (extension, Shortcut { key, command }) in all {
            let is_same = |other: &str| normal_key(other) == normal_key(&key);
            if reserved.iter().copied().any(is_same) {
                problems.push(format!(
                    "Extension shortcut \"{key}\" from {extension} conflicts with a built-in shortcut; it is ignored"
                ));
                continue;
            }
            if used.iter().copied().any(is_same) {
                problems.push(format!("Extension shortcut \"{key}\" from {extension} overrides a built-in shortcut"));
            }
            if let Some(at) = held.iter().position(|other| is_same(&other.key)) {
                let older = held.remove(at).command.extension;
                problems.push(format!("Extension shortcut \"{key}\" of {older} is taken by {extension}"));
            }
            let command = FoundCommand { name: command.name().to_owned(), extension, command };
            held.push(FoundShortcut { key, command });
        }
        (held, problems)
    }

    /// Returns what extensions draw of a conversation. Tools and their renderers that are registered later are missing.
    pub fn renderers(&self) -> Renderers {
        self.0.core.registry(|registry| Renderers::of(registry.renderers.iter().map(|(_, renderer)| renderer)))
    }

    /// Returns the pending provider changes with the name of the extension, for the owner of the models.
    pub fn take_provider_changes(&self) -> Vec<(String, ProviderChange)> {
        let changes = self.0.core.take_provider_changes();
        changes.into_iter().map(|(extension, change)| (extension.to_string(), change)).collect()
    }

    /// Shuts down the extensions and their processes in an orderly way. They are not called afterwards. Dropping the last handle kills them
    /// immediately.
    pub async fn close(&self) {
        let close = async |one: &One| {
            let watch = Stopwatch::start();
            if let Err(error) = guarded(|| one.extension.close(), &watch, Some(HANDLER_LIMIT)).await {
                self.report(&one.name, "close", &error);
            }
        };
        let all = self.running(|running| running.extensions.clone());
        futures::future::join_all(all.iter().map(close)).await;
    }

    /// Binds the extensions to a session, or `None` when it is closed. Earlier contexts become stale.
    pub(crate) fn bind(&self, actions: Option<Arc<dyn SessionActions>>) {
        self.0.core.bind(actions);
    }

    /// Invalidates earlier contexts because the session has another conversation.
    pub(crate) fn renew(&self) {
        self.0.core.renew();
    }

    /// Sets the cancellation token of new contexts.
    pub(crate) fn set_cancel(&self, cancel: &Cancel) {
        self.0.core.set_cancel(cancel.clone());
    }

    fn wanting(&self, point: Point) -> Vec<One> {
        self.running(|running| match running.points.has(point) {
            true => running.extensions.iter().filter(|one| one.points.has(point)).cloned().collect(),
            false => Vec::new(),
        })
    }

    fn call(&self, one: &One, point: Point) -> HandlerCall<'_> {
        let core = &self.0.core;
        let (generation, cancel) = core.current().unwrap_or_default();
        let watch = Stopwatch::start();
        let (name, clock) = (Arc::clone(&one.name), Some(Arc::clone(&watch)));
        let mut cx = ExtensionCx::new(Arc::clone(core), name, generation, clock, cancel);
        // A dialog opened by a dialog listener does not notify that listener again.
        cx.is_watched = !matches!(point, Point::UiPromptStart | Point::UiPromptEnd);
        HandlerCall { core, point, cx, watch, limit: one.extension.handler_limit() }
    }
}

impl CalledExtensions {
    fn of(extensions: Vec<One>) -> Self {
        let points = extensions.iter().fold(Points::NONE, |points, one| points.and(one.points));
        Self { extensions, points }
    }
}

/// Registers an extension. Returns `None` if that fails, which is reported.
fn register(core: &Arc<Core>, extension: Arc<dyn Extension>) -> Option<One> {
    let Ok(name) = guarded_now(|| Ok(Arc::<str>::from(extension.name()))) else {
        let error = ExtensionError::new("The extension panicked when it was asked for its name");
        core.report("unknown", "load", &error);
        return None;
    };
    let mut brought = Registrations::default();
    let handle = ExtensionHandle::new(core, Arc::clone(&name));
    let registered = guarded_now(|| {
        extension.register(&mut brought, &handle)?;
        Ok(extension.points())
    });
    match registered {
        Ok(points) => {
            for problem in core.take_in(&name, brought) {
                core.report(&name, "load", &ExtensionError::new(problem));
            }
            Some(One { name, points, extension })
        }
        Err(error) => {
            report_load(core, &name, &error);
            None
        }
    }
}

fn report_load(core: &Core, name: &str, error: &ExtensionError) {
    core.report(name, "load", &ExtensionError::new(format!("Failed to load extension: {error}")));
}

/// Notifies extensions of the dialogs of others.
struct Watches(Weak<Loaded>);

impl Onlooker for Watches {
    fn dialog<'a>(&'a self, dialog: &'a Dialog, is_over: bool) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            if let Some(loaded) = self.0.upgrade() {
                let notification =
                    if is_over { Notification::DialogEnd(dialog) } else { Notification::DialogStart(dialog) };
                Extensions(loaded).notify(notification).await;
            }
        })
    }
}

/// A call of one extension at one point.
struct HandlerCall<'h> {
    core: &'h Core,
    point: Point,
    cx: ExtensionCx,
    watch: Arc<Stopwatch>,
    limit: Option<Duration>,
}

impl HandlerCall<'_> {
    /// Calls the handler; a failure is also reported.
    async fn ask<'a, T>(&self, make: impl FnOnce() -> HandlerFuture<'a, T>) -> Result<T, ExtensionError> {
        let answer = guarded(make, &self.watch, self.limit).await;
        if let Err(error) = &answer {
            self.core.report(self.cx.name(), self.point.name(), error);
        }
        answer
    }

    /// Calls the handler; a failure counts as no answer.
    async fn attempt<'a, T>(&self, make: impl FnOnce() -> HandlerFuture<'a, T>) -> Option<T> {
        self.ask(make).await.ok()
    }
}

impl fmt::Debug for Extensions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

/// Returns a key in lower case, with its modifiers in a fixed order.
fn normal_key(key: &str) -> String {
    let mut parts: Vec<String> = key.trim().to_lowercase().split('+').map(str::to_owned).collect();
    if let Some((_, modifiers)) = parts.split_last_mut() {
        modifiers.sort_unstable();
    }
    parts.join("+")
}
