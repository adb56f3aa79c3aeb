//! The linker script.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt;
use std::sync::LazyLock;

use regex::Regex;

use super::map::CodeSection;

/// The part of a symbol that differs between compilations: the hash of a function, or that of a crate.
static HASH: LazyLock<Regex> = LazyLock::new(|| {
    #[expect(clippy::expect_used, reason = "a constant pattern, which a test compiles")]
    Regex::new("17h[0-9a-f]{16}E.*|Cs[0-9A-Za-z]+_").expect("a valid pattern")
});

/// A name of functions and the crate in which they were compiled. It stands for every instance of a generic function in the crate.
type CodeName = (String, String);

/// Names of functions to place together, in their order.
pub(super) struct LinkOrder {
    tiers: Vec<LinkTier>,
}

/// Functions that a run calls, and that no run before it calls.
pub(super) struct LinkTier {
    pub(super) run: &'static str,
    names: BTreeSet<CodeName>,
    /// Bytes of the functions that were called.
    pub(super) called: u64,
    /// Bytes of all functions that have the names of those.
    pub(super) placed: u64,
}

impl LinkOrder {
    /// Each run has the symbols of the functions that it calls.
    pub(super) fn new(sections: &[CodeSection<'_>], runs: Vec<(&'static str, HashSet<String>)>) -> Self {
        let mut sizes: BTreeMap<CodeName, u64> = BTreeMap::new();
        for section in sections {
            *sizes.entry(code_name(section)).or_default() += section.size;
        }
        let tier = |(run, symbols): (&'static str, HashSet<String>)| {
            let mut tier = LinkTier { run, names: BTreeSet::new(), called: 0, placed: 0 };
            for section in sections.iter().filter(|section| symbols.contains(section.symbol())) {
                // What is placed already has no size any more.
                if let Some(size) = sizes.remove(&code_name(section)) {
                    tier.placed += size;
                    tier.names.insert(code_name(section));
                }
                if tier.names.contains(&code_name(section)) {
                    tier.called += section.size;
                }
            }
            tier
        };
        Self { tiers: runs.into_iter().map(tier).collect() }
    }

    pub(super) fn tiers(&self) -> &[LinkTier] {
        &self.tiers
    }
}

impl LinkTier {
    pub(super) fn n_names(&self) -> usize {
        self.names.len()
    }
}

impl fmt::Display for LinkOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "/* Written by `cargo xtask codegen --link-order`: the functions that usual runs call, by the crate\n",
        )?;
        f.write_str("   in which they were compiled. build.rs says what for. */\n")?;
        f.write_str("SECTIONS\n{\n  .text.hot :\n  {\n")?;
        for tier in &self.tiers {
            writeln!(f, "    /* pinch {} */", tier.run)?;
            let names: Vec<&CodeName> = tier.names.iter().collect();
            for of_unit in names.chunk_by(|one, other| one.0 == other.0) {
                match of_unit[0].0.as_str() {
                    "pinch" => f.write_str("    */pinch-*.rcgu.o(\n")?,
                    library => writeln!(f, "    *lib{library}-*.rlib:*(")?,
                }
                for (_, name) in of_unit {
                    writeln!(f, "      .text.{name}")?;
                }
                f.write_str("    )\n")?;
            }
        }
        f.write_str("  }\n}\nINSERT BEFORE .text;\n")
    }
}

fn code_name(section: &CodeSection<'_>) -> CodeName {
    (section.unit.to_owned(), pattern(section.name))
}

/// A pattern that matches a function's section in every compilation.
fn pattern(name: &str) -> String {
    let replaced = HASH.replace_all(name, |hash: &regex::Captures<'_>| match hash[0].starts_with("Cs") {
        true => "Cs*_",
        false => "17h*",
    });
    replaced.into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lose_what_differs_between_compilations() {
        for (name, expect) in [
            ("_ZN3one17h0123456789abcdefE", "_ZN3one17h*"),
            ("unlikely._ZN3one17h0123456789abcdefE.llvm.123", "unlikely._ZN3one17h*"),
            ("_RNvNtCslNYArtu3iFV_5alloc3fmt6format", "_RNvNtCs*_5alloc3fmt6format"),
            ("memcpy", "memcpy"),
        ] {
            assert_eq!(pattern(name), expect);
        }
    }

    #[test]
    fn a_function_has_its_place_in_the_first_run_that_calls_it() {
        let section = |unit, name, size| CodeSection { unit, name, size };
        let (one, other) = ("_ZN3one17h0000000000000000E", "_ZN3one17h1111111111111111E");
        let sections = [section("a", one, 10), section("a", other, 5), section("b", other, 3), section("b", "two", 2)];
        let runs =
            vec![("first", HashSet::from([one.to_owned()])), ("second", [one.to_owned(), "two".to_owned()].into())];
        let order = LinkOrder::new(&sections, runs);
        let figures: Vec<_> = order.tiers().iter().map(|tier| (tier.n_names(), tier.called, tier.placed)).collect();
        assert_eq!(figures, [(1, 10, 15), (1, 2, 2)]);
        let expect = "    /* pinch first */\n    *liba-*.rlib:*(\n      .text._ZN3one17h*\n    )\n    \
                      /* pinch second */\n    *libb-*.rlib:*(\n      .text.two\n    )\n";
        assert!(order.to_string().contains(expect), "{order}");
    }
}
