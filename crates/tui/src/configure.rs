//! Enables and disables resources in a terminal: extensions, skills, prompt templates and themes, for the user or for the project.

mod entries;
mod view;

use std::io;
use std::path::PathBuf;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use futures::future::FusedFuture as _;
use pinch_coding_agent::resources::themes::Theme as ThemeFile;
use pinch_coding_agent::resources::{ListedResource, ProjectOverride, ResourceKind, ResourceSwitches};
use pinch_stdx::cancel::Cancel;
use pinch_stdx::host::Host;
use pinch_stdx::text::with_causes;

use self::view::{ConfigureView, ViewEvent, has_room_for_notices};
use crate::Row;
use crate::dialog::DialogCx;
use crate::figures::short_path;
use crate::front::{Front, FrontEvent, ScreenFrame};
use crate::hyperlink::Hyperlinks;
use crate::keymap::Keymap;
use crate::terminal::{Cursor, DeviceError, TerminalCapabilities, TerminalInput};
use crate::theme::Palette;
use crate::tmux::{self, NoticePlace, TmuxKeys};

/// Options of the configuration list.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ConfigureOptions {
    /// Clock, environment and home directory.
    pub host: Host,
    /// The directory of `keybindings.json`.
    pub agent_dir: PathBuf,
    /// Name of a theme; `None`: the one that fits the terminal.
    pub theme: Option<String>,
    /// Whether to begin with the settings of the project, if it is trusted.
    pub begins_with_project: bool,
}

impl ConfigureOptions {
    /// Creates options that begin with the user's settings.
    pub fn new(host: Host, agent_dir: impl Into<PathBuf>) -> Self {
        Self { host, agent_dir: agent_dir.into(), theme: None, begins_with_project: false }
    }
}

/// How the list was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigureEnd {
    /// The user exited, or it was stopped.
    Exited,
    /// The terminal is gone.
    HungUp,
}

/// Which settings are changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WriteScope {
    Global,
    Project,
}

/// The list and its data.
struct Configure<'a> {
    switches: &'a mut ResourceSwitches,
    host: Host,
    view: ConfigureView,
    scope: WriteScope,
}

impl Configure<'_> {
    /// Fills the list from the current settings.
    fn fill(&mut self) {
        let home = self.host.home();
        let (entries, file) = match self.scope {
            WriteScope::Global => (entries::global(self.switches, home), Some(self.switches.global_file())),
            WriteScope::Project => (entries::project(self.switches, home), self.switches.project_file()),
        };
        let file = short_path(&file.unwrap_or_default(), home);
        self.view.set_entries(entries, self.scope == WriteScope::Project, file);
    }

    /// Enables or disables a resource, or cycles its project setting.
    fn switch(&mut self, at: usize) {
        let done = match self.scope {
            WriteScope::Global => {
                let is_enabled = self.switches.global().get(at).is_some_and(|resource| resource.is_enabled);
                self.switches.set_global(at, !is_enabled)
            }
            WriteScope::Project => match self.switches.project().get(at) {
                Some(resource) => {
                    let next = next_override(self.switches, resource);
                    self.switches.set_override(at, next)
                }
                None => Ok(()),
            },
        };
        let problem = done.err().map(|error| with_causes(&error));
        self.fill();
        self.view.set_problem(problem);
    }

    fn change_scope(&mut self) {
        if self.switches.has_project() {
            self.scope = match self.scope {
                WriteScope::Global => WriteScope::Project,
                WriteScope::Project => WriteScope::Global,
            };
            self.fill();
            self.view.set_problem(None);
        }
    }
}

/// Returns the next project setting: first the opposite of what is inherited, then the same, then none.
fn next_override(switches: &ResourceSwitches, resource: &ListedResource) -> ProjectOverride {
    let is_inherited_on = switches.inherited_state(resource);
    match (switches.override_of(resource), is_inherited_on) {
        (ProjectOverride::Inherit, true) | (ProjectOverride::Load, false) => ProjectOverride::Unload,
        (ProjectOverride::Inherit, false) | (ProjectOverride::Unload, true) => ProjectOverride::Load,
        (ProjectOverride::Unload, false) | (ProjectOverride::Load, true) => ProjectOverride::Inherit,
    }
}

/// Returns the theme with a name: a built-in one, or a file of the user.
fn theme_file(name: &str, switches: &ResourceSwitches) -> Option<ThemeFile> {
    let files = || switches.global().iter().filter(|one| one.kind == ResourceKind::Theme && one.is_enabled);
    let mut themes = ThemeFile::builtin().into_iter().chain(files().filter_map(|one| ThemeFile::read(&one.path).ok()));
    themes.find(|theme| theme.name == name)
}

/// Shows the resources until the user exits or `stop` is cancelled. Changes are written immediately.
///
/// The terminal is restored before it returns.
///
/// # Errors
/// If the terminal cannot be used.
pub fn configure<'a>(
    options: ConfigureOptions,
    switches: &'a mut ResourceSwitches,
    stop: &'a Cancel,
) -> BoxFuture<'a, Result<ConfigureEnd, DeviceError>> {
    Box::pin(async move {
        let mut capabilities = TerminalCapabilities::of(options.host.env());
        let (keymap, problems) = Keymap::load(&options.agent_dir);
        let chosen = options.theme.as_deref().and_then(|name| theme_file(name, switches));
        let palette = |capabilities: &TerminalCapabilities| match &chosen {
            Some(file) => Palette::new(file, capabilities.depth),
            None => Palette::builtin(Palette::name_for(capabilities.light_background), capabilities.depth),
        };
        let mut theme = palette(&capabilities);
        let mut front = Front::new(capabilities.clone(), Hyperlinks::default())?;
        let is_project = options.begins_with_project && switches.has_project();
        let scope = if is_project { WriteScope::Project } else { WriteScope::Global };
        let view = ConfigureView::new(switches.has_project());
        let mut list = Configure { switches, host: options.host, view, scope };
        list.fill();
        list.view.set_problem(problems.first().map(ToString::to_string));
        let place = has_room_for_notices(front.size().height()).then_some(NoticePlace::Resources);
        let mut tmux = std::pin::pin!(tmux::examine(options.agent_dir, list.host.clone(), place).fuse());
        let end = loop {
            let event = tokio::select! {
                event = front.next(None) => event,
                Some((keys, is_first)) = &mut tmux, if !tmux.is_terminated() => {
                    let done = match keys {
                        TmuxKeys::Extended => front.request_modified_keys(),
                        keys => {
                            list.view.set_notice(keys.remedy().filter(|_| is_first));
                            Ok(())
                        }
                    };
                    if done.is_err() {
                        break ConfigureEnd::HungUp;
                    }
                    front.mark();
                    continue;
                }
                _ = stop.cancelled() => break ConfigureEnd::Exited,
            };
            let cx = |theme, host: &Host, front: &Front| DialogCx {
                theme,
                keymap: &keymap,
                max_rows: front.size().height().saturating_sub(1),
                columns: front.size().width(),
                now_ms: host.now_ms(),
            };
            match event {
                FrontEvent::ScreenFrame => {
                    let drawn = list.view.rows(cx(&theme, &list.host, &front));
                    if draw(&mut front, drawn).is_err() {
                        break ConfigureEnd::HungUp;
                    }
                }
                FrontEvent::TerminalInput(TerminalInput::Closed) => break ConfigureEnd::HungUp,
                FrontEvent::TerminalInput(TerminalInput::Report(report)) => {
                    capabilities.apply_report(&report);
                    theme = palette(&capabilities);
                    front.mark();
                }
                FrontEvent::TerminalInput(TerminalInput::Paste(text)) => {
                    list.view.paste(&text);
                    front.mark();
                }
                FrontEvent::TerminalInput(TerminalInput::Key(press)) => {
                    match list.view.key(&press, cx(&theme, &list.host, &front)) {
                        ViewEvent::Stay => {}
                        ViewEvent::Switch(at) => list.switch(at),
                        ViewEvent::ChangeScope => list.change_scope(),
                        ViewEvent::Close => break ConfigureEnd::Exited,
                    }
                    front.mark();
                }
                FrontEvent::TerminalInput(_) => {}
            }
        };
        // A terminal that is gone cannot be restored.
        let left = front.leave(&[]);
        Ok(if left.is_err() { ConfigureEnd::HungUp } else { end })
    })
}

fn draw(front: &mut Front, (live, cursor): (Vec<Row>, Option<(usize, usize)>)) -> io::Result<()> {
    let cursor = cursor.map(Cursor::from);
    let frame = ScreenFrame { live, cursor, title: "pinch config".to_owned(), ..ScreenFrame::default() };
    front.draw(&frame, 0)
}

#[cfg(test)]
mod tests;
