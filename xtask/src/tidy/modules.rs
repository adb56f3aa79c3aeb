//! Which module of a crate may use which: `mod` lines are in dependency order, and a module uses only modules above it.
//!
//! A parent may use its own children, and children may use items defined in their parent.

use std::collections::BTreeMap;

use super::{SourceFile, TidyReport};

mod paths;

/// The modules of one crate.
struct ModuleTree<'a> {
    /// Children of a module, in the order of their `mod` lines.
    children: BTreeMap<Vec<String>, Vec<String>>,
    /// Names that a module re-exports from below, with the paths where they are defined.
    passed_on: BTreeMap<(Vec<String>, String), Vec<String>>,
    files: Vec<(Vec<String>, &'a SourceFile)>,
}

/// File stems of the root of a library and of a program.
const ROOTS: [&str; 2] = ["lib", "main"];

/// Checks the modules of every library and every program.
pub(super) fn check(sources: &[SourceFile]) -> TidyReport {
    let mut report = TidyReport::default();
    let roots = ROOTS.iter().flat_map(|name| {
        let end = format!("/src/{name}.rs");
        sources.iter().filter_map(move |source| Some((source.path.strip_suffix(&end)?, *name)))
    });
    let roots: Vec<(&str, &str)> = roots.collect();
    for (root, name) in &roots {
        let tree = ModuleTree::of(sources, root, name);
        for (module, source) in &tree.files {
            for path in paths::of(source.without_tests(), module) {
                let used = tree.resolve(&path);
                let Some((own, other, is_above)) = tree.compare(module, &used) else { continue };
                report.n_checked += 1;
                if !is_above {
                    let text = format!(
                        "{}: {own} uses {other}, which stands below it (crate::{})",
                        source.path,
                        path.join("::")
                    );
                    if !report.errors.contains(&text) {
                        report.errors.push(text);
                    }
                }
            }
        }
    }
    report.checked = format!("{} edges between modules of {} libraries and programs", report.n_checked, roots.len());
    report
}

impl<'a> ModuleTree<'a> {
    fn of(sources: &'a [SourceFile], root: &str, name: &str) -> Self {
        let prefix = format!("{root}/src/");
        let mut tree = Self { children: BTreeMap::new(), passed_on: BTreeMap::new(), files: Vec::new() };
        for source in sources.iter().filter(|source| source.is_rust() && !source.is_test()) {
            let Some(rest) = source.path.strip_prefix(&prefix).and_then(|rest| rest.strip_suffix(".rs")) else {
                continue;
            };
            let module: Vec<String> = match rest {
                rest if rest == name => Vec::new(),
                rest if ROOTS.contains(&rest) => continue,
                rest => rest.split('/').map(str::to_owned).collect(),
            };
            tree.children.insert(module.clone(), mod_lines(source.without_tests()));
            tree.files.push((module, source));
        }
        // A directory may contain a library and a program: files not reachable from this root belong to the other one.
        let ModuleTree { children, files, .. } = &mut tree;
        files.retain(|(module, _)| {
            (0..module.len()).all(|at| children.get(&module[..at]).is_some_and(|known| known.contains(&module[at])))
        });
        for (module, source) in &tree.files {
            for path in paths::passed_on(source.without_tests(), module, &tree.children) {
                if let Some(name) = path.last() {
                    tree.passed_on.insert((module.clone(), name.clone()), path.clone());
                }
            }
        }
        tree
    }

    /// Returns the module that contains the item at a path.
    fn resolve(&self, path: &[String]) -> Vec<String> {
        let mut module = Vec::new();
        for (at, name) in path.iter().enumerate() {
            if self.children.get(&module).is_some_and(|children| children.contains(name)) {
                module.push(name.clone());
                continue;
            }
            if let Some(true_path) = self.passed_on.get(&(module.clone(), name.clone()))
                && true_path.len() > module.len()
                && true_path[..] != path[..=at]
            {
                return self.resolve(true_path);
            }
            break;
        }
        module
    }

    /// Finds where two modules diverge: the name on either side, and whether the other one is above; `None` if one contains the other.
    fn compare(&self, own: &[String], other: &[String]) -> Option<(String, String, bool)> {
        let n_common = own.iter().zip(other).take_while(|(a, b)| a == b).count();
        let (a, b) = (own.get(n_common)?, other.get(n_common)?);
        let siblings = self.children.get(&own[..n_common])?;
        let place = |name: &String| siblings.iter().position(|sibling| sibling == name);
        let is_above = matches!((place(a), place(b)), (Some(a), Some(b)) if b < a);
        Some((own[..=n_common].join("::"), other[..=n_common].join("::"), is_above))
    }
}

/// The names of `mod name;` lines.
fn mod_lines(text: &str) -> Vec<String> {
    let name = |line: &str| {
        let line = line.trim_end().strip_suffix(';')?;
        let line = line.strip_prefix("pub(crate) ").or_else(|| line.strip_prefix("pub(super) ")).unwrap_or(line);
        let line = line.strip_prefix("pub ").unwrap_or(line);
        Some(line.strip_prefix("mod ")?.to_owned())
    };
    text.lines().filter_map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errors(files: &[(&str, &str)]) -> Vec<String> {
        let source =
            |(path, text): &(&str, &str)| SourceFile { path: format!("c/src/{path}"), text: (*text).to_owned() };
        let report = check(&files.iter().map(source).collect::<Vec<_>>());
        assert!(report.n_checked > 0);
        report.errors
    }

    #[test]
    fn a_module_uses_modules_above_it() {
        let lib = ("lib.rs", "pub mod a;\npub mod b;\npub use b::Thing;\n");
        assert_eq!(errors(&[lib, ("a.rs", ""), ("b.rs", "use crate::a::X;\n")]), [""; 0]);
        let below = errors(&[lib, ("a.rs", "use crate::{b::{X, Y}};\n"), ("b.rs", "")]);
        assert_eq!(
            below,
            [
                "c/src/a.rs: a uses b, which stands below it (crate::b::X)",
                "c/src/a.rs: a uses b, which stands below it (crate::b::Y)",
            ]
        );
        let passed_on = errors(&[lib, ("a.rs", "fn f(_: crate::Thing) {}\n"), ("b.rs", "")]);
        assert_eq!(passed_on, ["c/src/a.rs: a uses b, which stands below it (crate::Thing)"]);
        let circle = [
            ("main.rs", "mod a;\nmod c;\n"),
            ("lib.rs", "pub mod b;\n"),
            ("a.rs", "use crate::c::X;\n"),
            ("b.rs", "use crate::c::X;\n"),
            ("c.rs", "use super::a;\n"),
        ];
        assert_eq!(errors(&circle), ["c/src/a.rs: a uses c, which stands below it (crate::c::X)"]);
        let in_tests = ("a.rs", "\n#[cfg(test)]\nmod tests { use crate::b::X; }\n");
        assert_eq!(errors(&[lib, in_tests, ("b.rs", "use super::a;\n")]), [""; 0]);
    }
}
