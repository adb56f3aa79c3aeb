//! `cargo xtask features`: each feature of each crate compiles alone, and each crate without any.
//!
//! Checks of the whole workspace have all features at once, where one feature can lean on what another one brings.

use anyhow::Context;
use serde_json::Value;

use crate::cargo;

/// What `cargo xtask features` takes: nothing.
#[derive(clap::Args)]
pub(crate) struct Args {}

/// Runs the command; true when everything compiles.
pub(crate) fn run(_: &Args) -> anyhow::Result<bool> {
    let metadata = cargo::metadata()?;
    let packages = metadata["packages"].as_array().context("cargo metadata names no packages")?;
    let all: Vec<(&str, &str)> = packages.iter().flat_map(combinations).collect();
    let mut failed = Vec::new();
    for (package, feature) in &all {
        let check = ["check", "--quiet", "--locked", "--package", package, "--no-default-features"];
        let with: &[&str] = if feature.is_empty() { &[] } else { &["--features", feature] };
        if !cargo::run(&[&check, with].concat(), &[])? {
            failed.push(match *feature {
                "" => format!("{package} without features"),
                feature => format!("{package} with {feature} alone"),
            });
        }
    }
    for what in &failed {
        println!("error [features] {what} does not compile");
    }
    println!("\nfeatures: {} combinations of {} crates checked, {} errors", all.len(), packages.len(), failed.len());
    Ok(failed.is_empty() && all.len() > packages.len())
}

/// A package with each of its features, and with none.
fn combinations(package: &Value) -> Vec<(&str, &str)> {
    let name = package["name"].as_str().unwrap_or_default();
    let features = package["features"].as_object().into_iter().flatten().map(|(feature, _)| feature.as_str());
    std::iter::once("").chain(features.filter(|feature| *feature != "default")).map(|feature| (name, feature)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_feature_is_alone_once_and_the_default_is_none() {
        let package = json!({"name": "p", "features": {"default": ["b"], "a": [], "b": ["a"]}});
        assert_eq!(combinations(&package), [("p", ""), ("p", "a"), ("p", "b")]);
    }
}
