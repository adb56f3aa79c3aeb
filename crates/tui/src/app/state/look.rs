//! Colours and links.

use std::collections::BTreeMap;
use std::path::PathBuf;

use pinch_coding_agent::resources::themes::Theme as ThemeFile;
use pinch_coding_agent::services::Services;

use super::App;
use crate::app::theme_file::{ExaminedTheme, WatchedTheme};
use crate::hyperlink::Hyperlinks;
use crate::theme::Palette;

/// Name of the theme that is light or dark as the terminal is.
pub(super) const SYSTEM_THEME: &str = "system";

/// The files of themes.
#[derive(Default)]
pub(super) struct ThemeFiles {
    /// The one in use; `None`: the theme is built in.
    watched: Option<WatchedTheme>,
    /// The theme in use, as last read; `None`: none was chosen yet.
    in_use: Option<ThemeFile>,
    /// Themes that were read again after the resources had been loaded.
    changed: BTreeMap<PathBuf, ThemeFile>,
    /// The problem that was shown last.
    problem: Option<String>,
}

impl ThemeFiles {
    /// Sets the theme in use, as loaded with the resources. Returns its latest version.
    fn choose(&mut self, theme: &ThemeFile) -> &ThemeFile {
        let path = &theme.info.path;
        let is_file = path.is_absolute() && theme.info.source != "builtin";
        if !is_file {
            self.watched = None;
        } else if self.watched.as_ref().is_none_or(|watched| watched.path != *path) {
            self.watched = Some(WatchedTheme { path: path.clone(), stamp: None });
        }
        let latest = self.latest(theme).clone();
        self.in_use.insert(latest)
    }

    /// Returns the latest version of a theme, as loaded with the resources.
    pub(super) fn latest<'a>(&'a self, theme: &'a ThemeFile) -> &'a ThemeFile {
        self.changed.get(&theme.info.path).unwrap_or(theme)
    }
}

impl App {
    /// Returns the theme file to watch.
    pub(crate) fn watched_theme(&self) -> Option<&WatchedTheme> {
        self.theme_files.watched.as_ref()
    }

    /// Uses a theme file that was examined, if it is still in use and has changed. A problem is shown once, and the theme stays as it was.
    /// Returns whether the interface may have changed.
    pub(crate) fn theme_examined(&mut self, examined: ExaminedTheme) -> bool {
        let ExaminedTheme { watched, read } = examined;
        let is_in_use = self.theme_files.watched.as_ref().is_some_and(|current| current.path == watched.path);
        let Some(read) = read.filter(|_| is_in_use) else { return false };
        let path = watched.path.clone();
        self.theme_files.watched = Some(watched);
        match read {
            Ok(theme) => {
                self.theme_files.problem = None;
                self.use_palette(Palette::new(&theme, self.depth));
                self.theme_files.in_use = Some(theme.clone());
                self.theme_files.changed.insert(path, theme);
            }
            Err(problem) if self.theme_files.problem.as_ref() == Some(&problem) => return false,
            Err(problem) => {
                self.warning(&problem);
                self.theme_files.problem = Some(problem);
            }
        }
        true
    }

    /// Forgets changes of theme files, because the resources were loaded again.
    pub(super) fn themes_reloaded(&mut self) {
        self.theme_files = ThemeFiles::default();
    }

    /// Selects the theme: from the command line, else from the settings, else the one that fits the terminal.
    pub(super) fn choose_theme(&mut self, services: &Services) {
        let name = self.chosen_theme().unwrap_or(Palette::name_for(self.light_background)).to_owned();
        if !self.use_theme(&name, services) && self.theme.name() != name {
            self.warning(&format!("There is no theme {name:?}; /theme lists them"));
        }
    }

    /// Returns the theme chosen on the command line or in the settings; `None`: the terminal decides.
    pub(super) fn chosen_theme(&self) -> Option<&str> {
        let set = || self.interface.as_ref().and_then(|interface| interface.theme.as_deref());
        self.options.theme.as_deref().or_else(set).filter(|name| *name != SYSTEM_THEME)
    }

    /// Uses a theme, if there is one with this name.
    pub(crate) fn use_theme(&mut self, name: &str, services: &Services) -> bool {
        let name = if name == SYSTEM_THEME { Palette::name_for(self.light_background) } else { name };
        let resources = services.resources();
        let Some(file) = resources.themes.iter().find(|theme| theme.name == name) else { return false };
        let palette = Palette::new(self.theme_files.choose(file), self.depth);
        self.use_palette(palette);
        true
    }

    /// Returns the theme in use, as on the screen; until there is one, that of the settings.
    pub(crate) fn theme_in_use(&self, services: &Services) -> Option<ThemeFile> {
        self.theme_files.in_use.clone().or_else(|| services.theme())
    }

    /// Uses these colours, and links according to the settings.
    pub(super) fn use_palette(&mut self, theme: Palette) {
        let (links, is_known) = &self.links;
        let set = self.interface.as_ref().and_then(|interface| interface.terminal.hyperlinks);
        let theme = theme.with_links(set.unwrap_or(*is_known).then(|| links.clone()));
        if theme != self.theme {
            self.theme = theme;
            self.transcript.options.drawings.lock().look_changed();
            self.transcript.invalidate();
        }
    }

    /// Returns the URLs of the links on the screen.
    pub(crate) fn links(&self) -> Hyperlinks {
        self.links.0.clone()
    }
}
