//! The colors of a page, as values supplied by the caller.

/// The colors of a page, and whether it starts light or dark.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageTheme {
    /// The colors. Their names are those of pi's themes (`accent`, `mdHeading`, `syntaxString`, …) plus `pageBg`, `cardBg` and `infoBg`;
    /// elements without a color inherit one.
    pub colors: Vec<PageColor>,
    /// Whether the page starts light or dark.
    pub scheme: ColorScheme,
}

/// A color of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageColor {
    /// Its name: letters only.
    pub name: &'static str,
    /// Its value in light mode.
    pub light: Rgb,
    /// Its value in dark mode.
    pub dark: Rgb,
}

/// Red, green, blue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rgb(pub u8, pub u8, pub u8);

/// Whether a page starts light or dark; the reader can switch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ColorScheme {
    /// The setting of the reader's system.
    #[default]
    System,
    /// Light.
    Light,
    /// Dark.
    Dark,
}

impl PageTheme {
    /// Returns the CSS variables for all colors.
    pub(super) fn variables(&self) -> String {
        let mut css = String::new();
        for PageColor { name, light, dark } in &self.colors {
            css.push_str(&format!("--{name}:light-dark({},{});", light.hex(), dark.hex()));
        }
        css
    }
}

impl Rgb {
    fn hex(self) -> String {
        let Self(red, green, blue) = self;
        format!("#{red:02x}{green:02x}{blue:02x}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colors_are_css_variables_for_light_and_dark() {
        let color = PageColor { name: "accent", light: Rgb(1, 2, 255), dark: Rgb(0, 0, 0) };
        let theme = PageTheme { colors: vec![color], scheme: ColorScheme::System };
        assert_eq!(theme.variables(), "--accent:light-dark(#0102ff,#000000);");
    }
}
