//! Named styles: the colours of a theme file, at the colour depth of the terminal.

use pinch_coding_agent::resources::themes::{COLORS, Color as ThemeColor, Theme as ThemeFile};
use ratatui_core::style::{Color, Modifier, Style};

use crate::hyperlink::Hyperlinks;

/// Colour depth of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ColorDepth {
    /// No colours, only attributes such as bold and reverse.
    None,
    /// The 16 ANSI colours.
    Ansi16,
    /// The 256 colours of xterm.
    Ansi256,
    /// 24-bit colours.
    True,
}

macro_rules! tokens {
    ($($(#[$doc:meta])* $token:ident),* $(,)?) => {
        /// The purpose of a colour, named as in theme files.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(usize)]
        pub enum ColorRole { $(#[doc = concat!("The colour `", stringify!($token), "` of a theme.")] $(#[$doc])* $token),* }

        #[cfg(test)]
        const TOKENS: &[ColorRole] = &[$(ColorRole::$token),*];
    };
}

// In the order of `COLORS`; a test compares the names.
tokens! {
    Accent, Border, BorderAccent, BorderMuted, Success, Error, Warning, Muted, Dim, Text, ThinkingText, SelectedBg, UserMessageBg,
    UserMessageText, CustomMessageBg, CustomMessageText, CustomMessageLabel, ToolPendingBg, ToolSuccessBg, ToolErrorBg, ToolTitle,
    ToolOutput, MdHeading, MdLink, MdLinkUrl, MdCode, MdCodeBlock, MdCodeBlockBorder, MdQuote, MdQuoteBorder, MdHr, MdListBullet,
    ToolDiffAdded, ToolDiffRemoved, ToolDiffContext, SyntaxComment, SyntaxKeyword, SyntaxFunction, SyntaxVariable, SyntaxString,
    SyntaxNumber, SyntaxType, SyntaxOperator, SyntaxPunctuation, ThinkingOff, ThinkingMinimal, ThinkingLow, ThinkingMedium,
    ThinkingHigh, ThinkingXhigh, BashMode,
}

/// The colours of a theme, converted for a terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Palette {
    name: String,
    depth: ColorDepth,
    colors: [Color; COLORS.len()],
    links: Option<Hyperlinks>,
}

impl Palette {
    /// Creates the palette of a theme file for a terminal of this depth.
    pub fn new(file: &ThemeFile, depth: ColorDepth) -> Self {
        let colors = COLORS.map(|name| {
            file.colors.get(name).map_or(Color::Reset, |color| match *color {
                ThemeColor::Default => Color::Reset,
                ThemeColor::Index(index) => indexed(index, depth),
                ThemeColor::Rgb(red, green, blue) => rgb([red, green, blue], depth),
            })
        });
        Self { name: file.name.clone(), depth, colors, links: None }
    }

    /// Returns the built-in theme that fits a background; `None`: unknown background.
    pub(crate) fn name_for(light_background: Option<bool>) -> &'static str {
        if light_background == Some(true) { "light" } else { "dark" }
    }

    /// Returns the built-in theme `dark` or `light`; `dark` for other names.
    pub fn builtin(name: &str, depth: ColorDepth) -> Self {
        let files = ThemeFile::builtin();
        let file =
            files.iter().find(|file| file.name == name).or_else(|| files.iter().find(|file| file.name == "dark"));
        file.map_or_else(
            || Self { name: name.to_owned(), depth, colors: [Color::Reset; COLORS.len()], links: None },
            |file| Self::new(file, depth),
        )
    }

    /// Enables or disables clickable links. The code that writes rows to the terminal needs the same table.
    #[must_use]
    pub fn with_links(mut self, links: Option<Hyperlinks>) -> Self {
        self.links = links;
        self
    }

    /// Returns the style of a link to a URL; `None` if it cannot be clickable.
    pub fn link(&self, url: &str, style: Style) -> Option<Style> {
        self.links.as_ref()?.link(url, style)
    }

    /// Returns the name of the theme.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the colour depth it was converted for.
    pub fn depth(&self) -> ColorDepth {
        self.depth
    }

    /// Returns whether backgrounds are distinguishable. If not, boxes have a bar on their left side instead.
    pub fn has_backgrounds(&self) -> bool {
        self.depth != ColorDepth::None
    }

    /// Returns a colour.
    pub fn color(&self, token: ColorRole) -> Color {
        self.colors[token as usize]
    }

    /// Returns the style of text in a colour.
    pub fn fg(&self, token: ColorRole) -> Style {
        match self.color(token) {
            Color::Reset => Style::new(),
            color => Style::new().fg(color),
        }
    }

    /// Returns all colours with their names in theme files.
    pub(crate) fn named_colors(&self) -> impl Iterator<Item = (&'static str, Color)> {
        COLORS.into_iter().zip(self.colors)
    }

    /// Returns a colour as this terminal can show it; `None`: it cannot.
    pub(crate) fn shown(&self, color: Color) -> Option<Color> {
        let shown = match color {
            Color::Indexed(index) => indexed(index, self.depth),
            Color::Rgb(red, green, blue) => rgb([red, green, blue], self.depth),
            other => other,
        };
        (self.depth != ColorDepth::None).then_some(shown)
    }

    /// Returns the style of bold text in a colour.
    pub fn bold(&self, token: ColorRole) -> Style {
        self.fg(token).add_modifier(Modifier::BOLD)
    }

    /// Returns the style of a background in a colour.
    pub fn bg(&self, token: ColorRole) -> Style {
        match self.color(token) {
            Color::Reset => Style::new(),
            color => Style::new().bg(color),
        }
    }
}

fn indexed(index: u8, depth: ColorDepth) -> Color {
    match depth {
        ColorDepth::None => Color::Reset,
        ColorDepth::Ansi16 if index >= 16 => nearest_16(from_256(index)),
        _ => Color::Indexed(index),
    }
}

fn rgb(rgb: [u8; 3], depth: ColorDepth) -> Color {
    match depth {
        ColorDepth::None => Color::Reset,
        ColorDepth::Ansi16 => nearest_16(rgb),
        ColorDepth::Ansi256 => Color::Indexed(nearest_256(rgb)),
        ColorDepth::True => Color::Rgb(rgb[0], rgb[1], rgb[2]),
    }
}

/// Levels of the colour cube in xterm's 256 colours.
const LEVELS: [u8; 6] = [0, 95, 135, 175, 215, 255];

fn distance(a: [u8; 3], b: [u8; 3]) -> u32 {
    // The eye is most sensitive to green, and least to blue.
    let weights = [3, 6, 1];
    (0..3).map(|i| weights[i] * u32::from(a[i].abs_diff(b[i])).pow(2)).sum()
}

fn from_256(index: u8) -> [u8; 3] {
    match index {
        0..=15 => ANSI[usize::from(index)],
        16..=231 => {
            let index = usize::from(index) - 16;
            [LEVELS[index / 36], LEVELS[index / 6 % 6], LEVELS[index % 6]]
        }
        232..=255 => [8 + (index - 232) * 10; 3],
    }
}

fn nearest_256(rgb: [u8; 3]) -> u8 {
    let nearest = (16..=255).min_by_key(|index| distance(rgb, from_256(*index)));
    nearest.unwrap_or(15)
}

/// The 16 colours of VGA.
const ANSI: [[u8; 3]; 16] = [
    [0, 0, 0],
    [170, 0, 0],
    [0, 170, 0],
    [170, 85, 0],
    [0, 0, 170],
    [170, 0, 170],
    [0, 170, 170],
    [170, 170, 170],
    [85, 85, 85],
    [255, 85, 85],
    [85, 255, 85],
    [255, 255, 85],
    [85, 85, 255],
    [255, 85, 255],
    [85, 255, 255],
    [255, 255, 255],
];

fn nearest_16(rgb: [u8; 3]) -> Color {
    let nearest = (0..16u8).min_by_key(|index| distance(rgb, ANSI[usize::from(*index)]));
    Color::Indexed(nearest.unwrap_or(7))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_have_the_names_used_in_theme_files() {
        let names = TOKENS.iter().map(|token| {
            let name = format!("{token:?}");
            name[..1].to_lowercase() + &name[1..]
        });
        assert_eq!(names.collect::<Vec<_>>(), COLORS);
    }

    #[test]
    fn colours_map_to_the_nearest_available_ones() {
        let file = ThemeFile::builtin().remove(0);
        let at = |depth| {
            let mut file = file.clone();
            file.colors.insert("accent".to_owned(), ThemeColor::Rgb(0x8a, 0xbe, 0xb7));
            Palette::new(&file, depth).color(ColorRole::Accent)
        };
        assert_eq!(at(ColorDepth::True), Color::Rgb(0x8a, 0xbe, 0xb7));
        assert_eq!(at(ColorDepth::Ansi256), Color::Indexed(109));
        assert_eq!(at(ColorDepth::Ansi16), Color::Indexed(7));
        assert_eq!(at(ColorDepth::None), Color::Reset);
    }
}
