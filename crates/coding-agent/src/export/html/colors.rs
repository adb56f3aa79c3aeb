//! A theme as colours of a page: each has a value for bright and for dark surroundings.

use crate::resources::themes::{COLORS, Color, EXPORT_COLORS, Theme};

/// The colours of a page.
#[derive(Clone, Copy, Debug)]
pub struct Look<'a> {
    /// The theme. It takes the side it is made for, bright or dark; the other side has the colours of the built-in theme.
    pub theme: &'a Theme,
    /// The page begins in the theme's surroundings, and not in those that the reader's system is set to.
    pub is_fixed: bool,
}

impl<'a> Look<'a> {
    /// A page in these colours that follows the reader's system.
    pub fn new(theme: &'a Theme) -> Self {
        Self { theme, is_fixed: false }
    }

    /// The same, beginning in the surroundings that the theme is made for.
    #[must_use]
    pub fn fixed(self) -> Self {
        Self { is_fixed: true, ..self }
    }
}

type Rgb = (u8, u8, u8);

/// Whether a theme is for dark surroundings.
pub(super) fn is_dark(theme: &Theme) -> bool {
    brightness(page(theme)) < 128
}

/// The definitions of all colours, for the style of the page. The theme takes the side it is made for, the other one has the built-in
/// colours.
pub(super) fn variables(theme: &Theme) -> String {
    let builtin = Theme::builtin();
    let other = |dark: bool| builtin.iter().find(|theme| is_dark(theme) == dark).unwrap_or(theme);
    let (light, dark) = if is_dark(theme) { (other(false), theme) } else { (theme, other(true)) };
    let mut css = String::new();
    for name in COLORS.iter().chain(&EXPORT_COLORS) {
        let (light, dark) = (hex(color(light, name)), hex(color(dark, name)));
        css.push_str(&format!("--{name}:light-dark({light},{dark});"));
    }
    css
}

/// A colour of a theme; pages have no terminal whose colours could stand in for those that are left open.
fn color(theme: &Theme, name: &str) -> Rgb {
    let page = page(theme);
    let is_dark = brightness(page) < 128;
    let card = || rgb(theme.export.get("cardBg")).unwrap_or_else(|| mix(page, shade(is_dark), 12));
    match name {
        "pageBg" => page,
        "cardBg" => card(),
        "infoBg" => rgb(theme.export.get(name)).unwrap_or_else(|| mix(card(), (200, 160, 40), 40)),
        name => rgb(theme.colors.get(name)).unwrap_or_else(|| match name {
            name if name.ends_with("Bg") => card(),
            _ if is_dark => (0xe5, 0xe5, 0xe7),
            _ => (0, 0, 0),
        }),
    }
}

/// The page's background; a theme without one has that of what the user says, nearer to black or white.
fn page(theme: &Theme) -> Rgb {
    let derived = || {
        let said = rgb(theme.colors.get("userMessageBg")).unwrap_or((0x2e, 0x33, 0x3d));
        if brightness(said) < 128 { mix(said, (0, 0, 0), 128) } else { mix(said, (255, 255, 255), 160) }
    };
    rgb(theme.export.get("pageBg")).unwrap_or_else(derived)
}

/// What a card differs from the page by.
fn shade(is_dark: bool) -> Rgb {
    if is_dark { (255, 255, 255) } else { (0, 0, 0) }
}

fn brightness((red, green, blue): Rgb) -> u32 {
    (u32::from(red) * 299 + u32::from(green) * 587 + u32::from(blue) * 114) / 1000
}

/// A colour with so many 256ths of another one.
fn mix(a: Rgb, b: Rgb, part: u16) -> Rgb {
    let one = |a: u8, b: u8| ((u16::from(a) * (256 - part) + u16::from(b) * part) / 256) as u8;
    (one(a.0, b.0), one(a.1, b.1), one(a.2, b.2))
}

fn rgb(color: Option<&Color>) -> Option<Rgb> {
    match color? {
        Color::Default => None,
        Color::Rgb(red, green, blue) => Some((*red, *green, *blue)),
        Color::Index(index) => Some(indexed(*index)),
    }
}

/// One of a terminal's 256 colours: the named ones, a cube, and greys.
fn indexed(index: u8) -> Rgb {
    const NAMED: [Rgb; 16] = [
        (0, 0, 0),
        (205, 0, 0),
        (0, 205, 0),
        (205, 205, 0),
        (0, 0, 238),
        (205, 0, 205),
        (0, 205, 205),
        (229, 229, 229),
        (127, 127, 127),
        (255, 0, 0),
        (0, 255, 0),
        (255, 255, 0),
        (92, 92, 255),
        (255, 0, 255),
        (0, 255, 255),
        (255, 255, 255),
    ];
    let step = |n: u8| if n == 0 { 0 } else { 55 + 40 * n };
    match index {
        0..16 => NAMED[usize::from(index)],
        16..232 => (step((index - 16) / 36), step((index - 16) / 6 % 6), step((index - 16) % 6)),
        232.. => {
            let grey = 8 + 10 * (index - 232);
            (grey, grey, grey)
        }
    }
}

fn hex((red, green, blue): Rgb) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_theme_takes_its_own_side() {
        let mut themes = Theme::builtin();
        assert_eq!(themes.iter().map(is_dark).collect::<Vec<_>>(), [true, false]);
        assert_eq!(variables(&themes[0]), variables(&themes[1]));
        let light = &mut themes[1];
        light.colors.insert("accent".into(), Color::Index(196));
        light.colors.insert("text".into(), Color::Default);
        light.export.clear();
        let css = variables(light);
        assert!(css.contains("--accent:light-dark(#ff0000,#f2836b);"), "{css}");
        assert!(css.contains("--text:light-dark(#000000,#e5e5e7);"), "{css}");
        assert!(css.contains("--pageBg:light-dark(#f4f5f7,#15181d);"), "{css}");
        assert_eq!(css.matches("light-dark(").count(), COLORS.len() + EXPORT_COLORS.len());
    }

    #[test]
    fn colours_of_terminals() {
        assert_eq!(
            [15, 16, 21, 231, 232, 255].map(|index| hex(indexed(index))),
            ["#ffffff", "#000000", "#0000ff", "#ffffff", "#080808", "#eeeeee"]
        );
    }
}
