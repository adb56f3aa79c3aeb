//! `cargo xtask features`: checks that each feature of each published crate compiles alone, and each of these crates with no features.
//!
//! Checks of the whole workspace enable all features at once, so one feature can rely on something that another one enables. A feature that
//! only forwards to a dependency's feature, and that the crate's own sources never name, changes nothing in the crate: it is checked in the
//! dependency. Crates that are not published are only ever built as part of the workspace.

use std::path::Path;
use std::time::Instant;

use anyhow::Context;
use serde_json::Value;

use crate::cargo;

/// Arguments of `cargo xtask features`: none.
#[derive(clap::Args)]
pub(crate) struct Args {}

/// Runs the command; returns true when everything compiles.
pub(crate) fn run(_: &Args) -> anyhow::Result<bool> {
    let metadata = cargo::metadata()?;
    let packages = metadata["packages"].as_array().context("cargo metadata names no packages")?;
    let packages: Vec<&Value> = packages.iter().filter(|package| is_published(package)).collect();
    let mut all = Vec::new();
    for &package in &packages {
        let manifest = package["manifest_path"].as_str().context("a package without a manifest")?;
        let sources = sources(&Path::new(manifest).with_file_name("src"))?;
        all.extend(combinations(package, &sources));
    }
    let mut failed = Vec::new();
    for (package, feature) in &all {
        let began = Instant::now();
        let check = ["check", "--quiet", "--locked", "--package", package, "--no-default-features"];
        let with: &[&str] = if feature.is_empty() { &[] } else { &["--features", feature] };
        if !cargo::run(&[&check, with].concat(), &[])? {
            failed.push(match *feature {
                "" => format!("{package} without features"),
                feature => format!("{package} with {feature} alone"),
            });
        }
        let with = if feature.is_empty() { "no features" } else { feature };
        println!("{:5.1} s {package} with {with}", began.elapsed().as_secs_f64());
    }
    for what in &failed {
        println!("error [features] {what} does not compile");
    }
    println!("\nfeatures: {} combinations of {} crates checked, {} errors", all.len(), packages.len(), failed.len());
    Ok(failed.is_empty() && all.len() > packages.len())
}

/// Returns whether a package may be published: `publish = false` is listed as no registries.
fn is_published(package: &Value) -> bool {
    package["publish"].as_array().is_none_or(|registries| !registries.is_empty())
}

/// A package with each feature that affects its own code, and with no features.
fn combinations<'a>(package: &'a Value, sources: &str) -> Vec<(&'a str, &'a str)> {
    let name = package["name"].as_str().unwrap_or_default();
    let is_passed_on = |feature: &str, brings: &Value| {
        let brings = brings.as_array().into_iter().flatten().filter_map(Value::as_str);
        !sources.contains(&format!("feature = \"{feature}\"")) && brings.into_iter().all(|one| one.contains('/'))
    };
    let features = package["features"].as_object().into_iter().flatten();
    let own = features.filter(|(feature, brings)| *feature != "default" && !is_passed_on(feature, brings));
    std::iter::once("").chain(own.map(|(feature, _)| feature.as_str())).map(|feature| (name, feature)).collect()
}

/// All Rust sources of a directory, concatenated.
fn sources(dir: &Path) -> anyhow::Result<String> {
    let mut all = String::new();
    for entry in std::fs::read_dir(dir).with_context(|| format!("cannot list {}", dir.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            all += &sources(&path)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            all += &std::fs::read_to_string(&path)?;
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn features_with_a_meaning_of_their_own_are_alone_once_and_the_default_is_none() {
        let features =
            json!({"default": ["b"], "a": [], "b": ["a"], "c": ["dep/c"], "d": ["dep/d"], "e": ["dep/e", "dep:x"]});
        let package = json!({"name": "p", "features": features, "publish": null});
        let sources = "#[cfg(feature = \"d\")]";
        assert_eq!(combinations(&package, sources), [("p", ""), ("p", "b"), ("p", "d"), ("p", "e")]);
        assert!(is_published(&package) && !is_published(&json!({"name": "p", "publish": []})));
    }
}
