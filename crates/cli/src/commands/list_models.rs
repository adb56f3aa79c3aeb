//! `pinch --list-models`: a table of the available models.

use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;

use pinch_embed::llm::model::Model;
use pinch_embed::stdx::text::fuzzy;

use crate::exit::{CommandFailure, unwritten};
use crate::output;

/// Prints the models that match the search, or all of them.
pub(crate) fn run(models: Vec<Arc<Model>>, search: Option<&str>) -> Result<ExitCode, CommandFailure> {
    let mut out = output::stdout();
    out.write_all(table(models, search).as_bytes()).map_err(|error| unwritten(&error))?;
    Ok(ExitCode::SUCCESS)
}

fn table(mut models: Vec<Arc<Model>>, search: Option<&str>) -> String {
    if models.is_empty() {
        return "No models available. Set an API key, or add a server to models.json\n".to_owned();
    }
    let name = |model: &Arc<Model>| (model.provider.as_str().to_owned(), model.id.as_str().to_owned());
    if let Some(search) = search {
        models = fuzzy::filter(models, search, |model| format!("{} {}", model.provider, model.id));
        if models.is_empty() {
            return format!("No models matching \"{search}\"\n");
        }
    }
    models.sort_by_key(name);
    let heads = ["provider", "model", "context", "max-out", "thinking", "images"].map(str::to_owned);
    let row = |model: &Arc<Model>| {
        [
            model.provider.as_str().to_owned(),
            model.id.as_str().to_owned(),
            tokens(model.context_window),
            tokens(model.max_tokens),
            yes_or_no(model.reasoning),
            yes_or_no(model.images),
        ]
    };
    let rows: Vec<[String; 6]> = std::iter::once(heads).chain(models.iter().map(row)).collect();
    let widths: Vec<usize> =
        (0..6).map(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default()).collect();
    let line = |row: &[String; 6]| {
        let cells: Vec<String> = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        format!("{}\n", cells.join("  ").trim_end())
    };
    rows.iter().map(line).collect()
}

fn yes_or_no(is: bool) -> String {
    if is { "yes" } else { "no" }.to_owned()
}

/// Formats a count in thousands or millions, with one decimal unless it is whole.
fn tokens(n: u64) -> String {
    let in_units = |unit: f64, sign: &str| {
        let value = (n as f64 / unit * 10.0).round() / 10.0;
        if value.fract() == 0.0 { format!("{value:.0}{sign}") } else { format!("{value:.1}{sign}") }
    };
    match n {
        1_000_000.. => in_units(1e6, "M"),
        1_000.. => in_units(1e3, "K"),
        _ => n.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_abbreviated() {
        assert_eq!([128_000, 16_384, 1_000_000, 1_048_576, 999].map(tokens), ["128K", "16.4K", "1M", "1M", "999"]);
    }
}
