//! Colours and links.

use pinch_coding_agent::services::Services;

use super::App;
use crate::hyperlink::Hyperlinks;
use crate::theme::Palette;

/// Name of the theme that is light or dark as the terminal is.
pub(super) const SYSTEM_THEME: &str = "system";

impl App {
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
        self.use_palette(Palette::new(file, self.depth));
        true
    }

    /// Uses these colours, and links according to the settings.
    pub(super) fn use_palette(&mut self, theme: Palette) {
        let (links, is_known) = &self.links;
        let set = self.interface.as_ref().and_then(|interface| interface.terminal.hyperlinks);
        let theme = theme.with_links(set.unwrap_or(*is_known).then(|| links.clone()));
        if theme != self.theme {
            self.theme = theme;
            self.transcript.invalidate();
        }
    }

    /// Returns the URLs of the links on the screen.
    pub(crate) fn links(&self) -> Hyperlinks {
        self.links.0.clone()
    }
}
