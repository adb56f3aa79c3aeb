//! The colours of a page, as values: where they come from is the caller's business.

/// The colors of a page, and whether it starts light or dark.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// The colours. Their names are those of pi's themes (`accent`, `mdHeading`, `syntaxString`, …) besides `pageBg`, `cardBg` and `infoBg`; what
    /// has no colour looks as its surroundings do.
    pub colors: Vec<PageColor>,
    /// Whether the page starts light or dark.
    pub begins: Begins,
}

/// A colour of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageColor {
    /// Its name: letters only.
    pub name: &'static str,
    /// What it is in bright surroundings.
    pub light: Rgb,
    /// What it is in dark ones.
    pub dark: Rgb,
}

/// Red, green, blue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rgb(pub u8, pub u8, pub u8);

/// Whether a page starts light or dark; the reader can switch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Begins {
    /// Those that the reader's system is set to.
    #[default]
    System,
    /// Bright ones.
    Light,
    /// Dark ones.
    Dark,
}

impl Look {
    /// The definitions of all colours, for the style of the page.
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
    fn colors_are_css_variables_for_both_surroundings() {
        let color = PageColor { name: "accent", light: Rgb(1, 2, 255), dark: Rgb(0, 0, 0) };
        let look = Look { colors: vec![color], begins: Begins::System };
        assert_eq!(look.variables(), "--accent:light-dark(#0102ff,#000000);");
    }
}
