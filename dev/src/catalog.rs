//! The model catalog, which `cargo xtask codegen` writes or checks.

mod checks;

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use pinch_llm::catalog::pack;
use serde_json::Value;

use crate::cargo;

const CATALOG: &str = "crates/llm/src/catalog/models.bin";

/// Arguments for the catalog.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// A JSON file of model records, by provider and ID; without it, only check that the catalog can be read
    #[arg(long)]
    models: Option<PathBuf>,
    /// Write nothing, and fail if a file is out of date
    #[arg(long)]
    check: bool,
}

/// Writes or checks the model catalog; returns true if it is valid and up to date.
pub(crate) fn run(args: &Args) -> anyhow::Result<bool> {
    let path = &cargo::root().join(CATALOG);
    let Some(models) = &args.models else {
        let file = std::fs::read(path).with_context(|| format!("cannot read {CATALOG}"))?;
        return Ok(report(&read_packed(&file)?));
    };
    let models = read_models(models)?;
    if !report(&models) {
        return Ok(false);
    }
    let new = pack::pack(&models)?;
    if args.check {
        let is_same = std::fs::read(path).is_ok_and(|old| old == new);
        println!("{CATALOG}: {}", if is_same { "up to date" } else { "stale" });
        return Ok(is_same);
    }
    std::fs::write(path, &new).with_context(|| format!("cannot write {CATALOG}"))?;
    println!("{CATALOG}: {} bytes", new.len());
    Ok(true)
}

/// Providers and their records as embedded in the program.
fn read_packed(file: &[u8]) -> anyhow::Result<Vec<(String, Vec<Value>)>> {
    let mut models = Vec::new();
    for entry in pack::index(file)? {
        let records = pack::unpack(&file[entry.place.clone()])?;
        if records.len() != entry.n_models {
            bail!("{CATALOG}: {} has {} models, its index says {}", entry.provider, records.len(), entry.n_models);
        }
        models.push((entry.provider, records));
    }
    Ok(models)
}

/// Checks prices and limits and prints the findings; returns true if there are no errors.
fn report(models: &[(String, Vec<Value>)]) -> bool {
    let mut findings = checks::CatalogFindings::default();
    for (provider, records) in models {
        checks::check(provider, records, &mut findings);
    }
    for note in &findings.notes {
        println!("note: {note}");
    }
    for error in &findings.errors {
        println!("error: {error}");
    }
    let n_models: usize = models.iter().map(|(_, records)| records.len()).sum();
    println!("{} providers, {n_models} models, {} errors", models.len(), findings.errors.len());
    findings.errors.is_empty()
}

/// Providers and their records, in file order.
fn read_models(path: &Path) -> anyhow::Result<Vec<(String, Vec<Value>)>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let providers: serde_json::Map<String, Value> = serde_json::from_str(&text).context("not JSON by provider")?;
    let records = |(provider, models): (String, Value)| match models {
        Value::Object(models) => Ok((provider, models.into_iter().map(|(_, record)| record).collect())),
        _ => bail!("the models of {provider} are no object"),
    };
    providers.into_iter().map(records).collect()
}
