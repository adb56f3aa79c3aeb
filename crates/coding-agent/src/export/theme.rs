//! Converting a theme into page colors for light and dark mode.

use pinch_export::{ColorScheme, PageColor, PageTheme, Rgb};

use crate::resources::themes::{COLORS, Color, EXPORT_COLORS, Theme};

/// Returns the colors of a page in a theme. The theme supplies the mode it is made for, light or dark; the built-in theme supplies
/// the other one. The page follows the reader's system.
pub fn page_theme(theme: &Theme) -> PageTheme {
    let builtin = Theme::builtin();
    let other = |dark: bool| builtin.iter().find(|theme| is_dark(theme) == dark).unwrap_or(theme);
    let (light, dark) = if is_dark(theme) { (other(false), theme) } else { (theme, other(true)) };
    let names = COLORS.into_iter().chain(EXPORT_COLORS);
    let colors = names.map(|name| PageColor { name, light: color(light, name), dark: color(dark, name) }).collect();
    PageTheme { colors, scheme: ColorScheme::System }
}

/// Returns the colors of a page in a theme that starts in the theme's own mode.
pub fn fixed_page_theme(theme: &Theme) -> PageTheme {
    PageTheme { scheme: if is_dark(theme) { ColorScheme::Dark } else { ColorScheme::Light }, ..page_theme(theme) }
}

/// Returns whether a theme is dark.
fn is_dark(theme: &Theme) -> bool {
    brightness(page(theme)) < 128
}

/// Returns a color of a theme; unlike a terminal, a page has no default colors.
fn color(theme: &Theme, name: &str) -> Rgb {
    let page = page(theme);
    let is_dark = brightness(page) < 128;
    let card = || rgb(theme.export.get("cardBg")).unwrap_or_else(|| mix(page, shade(is_dark), 12));
    match name {
        "pageBg" => page,
        "cardBg" => card(),
        "infoBg" => rgb(theme.export.get(name)).unwrap_or_else(|| mix(card(), Rgb(200, 160, 40), 40)),
        name => rgb(theme.colors.get(name)).unwrap_or_else(|| match name {
            name if name.ends_with("Bg") => card(),
            _ if is_dark => Rgb(0xe5, 0xe5, 0xe7),
            _ => Rgb(0, 0, 0),
        }),
    }
}

/// Returns the page background; by default, the theme's user message background shifted towards black or white.
fn page(theme: &Theme) -> Rgb {
    let derived = || {
        let message_bg = rgb(theme.colors.get("userMessageBg")).unwrap_or(Rgb(0x2e, 0x33, 0x3d));
        if brightness(message_bg) < 128 {
            mix(message_bg, Rgb(0, 0, 0), 128)
        } else {
            mix(message_bg, Rgb(255, 255, 255), 160)
        }
    };
    rgb(theme.export.get("pageBg")).unwrap_or_else(derived)
}

/// Returns the difference between the backgrounds of cards and page.
fn shade(is_dark: bool) -> Rgb {
    if is_dark { Rgb(255, 255, 255) } else { Rgb(0, 0, 0) }
}

fn brightness(Rgb(red, green, blue): Rgb) -> u32 {
    (u32::from(red) * 299 + u32::from(green) * 587 + u32::from(blue) * 114) / 1000
}

/// Mixes `part`/256 of the second color into the first.
fn mix(a: Rgb, b: Rgb, part: u16) -> Rgb {
    let one = |a: u8, b: u8| ((u16::from(a) * (256 - part) + u16::from(b) * part) / 256) as u8;
    Rgb(one(a.0, b.0), one(a.1, b.1), one(a.2, b.2))
}

fn rgb(color: Option<&Color>) -> Option<Rgb> {
    match color? {
        Color::Default => None,
        Color::Rgb(red, green, blue) => Some(Rgb(*red, *green, *blue)),
        Color::Index(index) => Some(indexed(*index)),
    }
}

/// Returns one of the 256 terminal colors: the named ones, a cube, and grays.
fn indexed(index: u8) -> Rgb {
    const NAMED: [Rgb; 16] = [
        Rgb(0, 0, 0),
        Rgb(205, 0, 0),
        Rgb(0, 205, 0),
        Rgb(205, 205, 0),
        Rgb(0, 0, 238),
        Rgb(205, 0, 205),
        Rgb(0, 205, 205),
        Rgb(229, 229, 229),
        Rgb(127, 127, 127),
        Rgb(255, 0, 0),
        Rgb(0, 255, 0),
        Rgb(255, 255, 0),
        Rgb(92, 92, 255),
        Rgb(255, 0, 255),
        Rgb(0, 255, 255),
        Rgb(255, 255, 255),
    ];
    let step = |n: u8| if n == 0 { 0 } else { 55 + 40 * n };
    match index {
        0..16 => NAMED[usize::from(index)],
        16..232 => Rgb(step((index - 16) / 36), step((index - 16) / 6 % 6), step((index - 16) % 6)),
        232.. => {
            let grey = 8 + 10 * (index - 232);
            Rgb(grey, grey, grey)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_theme_supplies_its_own_mode() {
        let mut themes = Theme::builtin();
        assert_eq!(themes.iter().map(is_dark).collect::<Vec<_>>(), [true, false]);
        assert_eq!(page_theme(&themes[0]), page_theme(&themes[1]));
        assert_eq!(
            [&themes[0], &themes[1]].map(|theme| fixed_page_theme(theme).scheme),
            [ColorScheme::Dark, ColorScheme::Light]
        );
        let light = &mut themes[1];
        light.colors.insert("accent".into(), Color::Index(196));
        light.colors.insert("text".into(), Color::Default);
        light.export.clear();
        let page_theme = page_theme(light);
        let color =
            |name| page_theme.colors.iter().find(|color| color.name == name).map(|color| (color.light, color.dark));
        assert_eq!(color("accent"), Some((Rgb(0xff, 0, 0), Rgb(0xf2, 0x83, 0x6b))));
        assert_eq!(color("text"), Some((Rgb(0, 0, 0), Rgb(0xe5, 0xe5, 0xe7))));
        assert_eq!(color("pageBg"), Some((Rgb(0xf4, 0xf5, 0xf7), Rgb(0x15, 0x18, 0x1d))));
        assert_eq!(page_theme.colors.len(), COLORS.len() + EXPORT_COLORS.len());
    }

    #[test]
    fn terminal_colors_are_converted() {
        let grey = |value| Rgb(value, value, value);
        assert_eq!(
            [15, 16, 21, 231, 232, 255].map(indexed),
            [grey(255), grey(0), Rgb(0, 0, 255), grey(255), grey(8), grey(238)]
        );
    }
}
