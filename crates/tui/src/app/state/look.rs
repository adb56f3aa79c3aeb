//! Colours and links.

use pinch_coding_agent::services::Services;

use super::App;
use crate::hyperlink::Hyperlinks;
use crate::theme::Palette;

impl App {
    /// Selects the theme: from the command line, else from the settings, else the one that fits the terminal.
    pub(super) fn choose_theme(&mut self, services: &Services) {
        let set = self.interface.as_ref().and_then(|interface| interface.theme.clone());
        let by_terminal = || Palette::name_for(self.light_background).to_owned();
        let name = self.options.theme.clone().or(set).unwrap_or_else(by_terminal);
        if !self.use_theme(&name, services) && self.theme.name() != name {
            self.warning(&format!("There is no theme {name:?}; /theme lists them"));
        }
    }

    /// Uses a theme, if there is one with this name.
    pub(crate) fn use_theme(&mut self, name: &str, services: &Services) -> bool {
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
