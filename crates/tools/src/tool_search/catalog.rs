//! The deferred tools of a run.

use std::sync::{Arc, OnceLock};

use pinch_agent_core::tool::{Tool, ToolSet};
use pinch_stdx::text::shortened;
use serde_json::{Value, json};

use super::properties::property_names;
use super::rank::{SearchText, ToolIndex};
use super::reply::{BoundedText, first_line};
use super::{DEFAULT_LIMIT, MAX_LIMIT};

/// Maximum characters of a reply with hits.
pub(super) const MAX_REPLY: usize = 4_000;
/// Maximum number of hits considered for a reply.
const MAX_CANDIDATES: usize = 50;
/// Maximum characters of a reply with descriptions, of one description, and of one schema.
const MAX_DESCRIBED: usize = 24_000;
const MAX_DESCRIPTION: usize = 6_000;
const MAX_SCHEMA: usize = 12_000;
/// Maximum bytes of a query or a name that is repeated in a reply.
const MAX_ECHO: usize = 80;
/// Characters reserved for the notes of a reply, and for the note of one query.
const NOTES: usize = 200;
const GROUP_NOTE: usize = 50;
/// How similar a name must be to be suggested, from 0 to 1, and how many are suggested.
const SIMILAR: f64 = 0.7;
const MAX_SUGGESTED: usize = 3;

/// Tools that a model is not told about, but can find and call.
#[derive(Debug)]
pub struct ToolCatalog {
    tools: ToolSet,
    listed: ToolSet,
    /// Names of the tools that the model calls directly.
    direct: Vec<String>,
    limit: usize,
    index: OnceLock<ToolIndex>,
}

/// A reply to the model, and the same data for programs.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CatalogReply {
    pub(super) text: String,
    pub(super) details: Value,
}

impl ToolCatalog {
    /// Creates a catalog of tools with unique names. `listed`: those that a system prompt may list. `direct`: names of the tools that the
    /// model calls directly.
    pub fn new(tools: ToolSet, listed: ToolSet, direct: impl IntoIterator<Item = String>) -> Self {
        let direct = direct.into_iter().collect();
        Self { tools, listed, direct, limit: DEFAULT_LIMIT, index: OnceLock::new() }
    }

    /// Sets how many hits a query returns unless it says otherwise, at most [`MAX_LIMIT`].
    #[must_use]
    pub fn with_limit(self, limit: usize) -> Self {
        Self { limit: limit.clamp(1, MAX_LIMIT), ..self }
    }

    /// Returns the tools.
    pub fn tools(&self) -> &ToolSet {
        &self.tools
    }

    /// Returns the tools that a system prompt may list.
    pub fn listed(&self) -> &ToolSet {
        &self.listed
    }

    /// Returns the tool with an id, which is its name.
    pub(super) fn find(&self, id: &str) -> Option<&Arc<dyn Tool>> {
        self.tools.get(id.trim())
    }

    fn index(&self) -> &ToolIndex {
        self.index.get_or_init(|| {
            let specs: Vec<_> = self.tools.iter().map(|tool| tool.spec()).collect();
            let parameters: Vec<Vec<&str>> = specs.iter().map(|spec| property_names(spec.parameters.raw())).collect();
            ToolIndex::new(specs.iter().zip(&parameters).map(|(spec, parameters)| SearchText {
                name: &spec.name,
                description: &spec.description,
                parameters,
            }))
        })
    }

    /// Returns the tools that match a query, best first.
    fn hits(&self, query: &str, limit: usize) -> Vec<&Arc<dyn Tool>> {
        let tools: Vec<&Arc<dyn Tool>> = self.tools.iter().collect();
        self.index().search(query, limit).into_iter().map(|at| tools[at]).collect()
    }

    /// Finds tools by words. Every query has the same share of the reply.
    pub(super) fn search(&self, queries: &[&str], limit: Option<usize>) -> CatalogReply {
        let limit = limit.unwrap_or(self.limit).clamp(1, MAX_LIMIT);
        let mut candidates = MAX_CANDIDATES;
        let mut reply = BoundedText::new(MAX_REPLY - NOTES);
        let mut found = Vec::new();
        for (at, query) in queries.iter().enumerate() {
            let n_queries = queries.len() - at;
            let hits = self.hits(query, limit.min(candidates / n_queries).max(1));
            candidates = candidates.saturating_sub(hits.len());
            let mut group = BoundedText::new((reply.room() / n_queries).saturating_sub(GROUP_NOTE));
            if queries.len() > 1 {
                group.add(&format!("{:?}:\n", shortened(query, MAX_ECHO)));
            }
            if hits.is_empty() {
                group.add("No tool matches. Try other words: what the tool does, or what it works on.\n");
            }
            // If there is no room for a description, the best hit is still named.
            let mut add = |(at, tool): &(usize, &&Arc<dyn Tool>)| {
                group.add(&hit_line(tool)) || (*at == 0 && group.add(&format!("- {}\n", tool.spec().name)))
            };
            let n_shown = hits.iter().enumerate().take_while(|hit| add(hit)).count();
            let left_out = hits.len() - n_shown;
            let shown = hits[..n_shown]
                .iter()
                .map(|tool| json!({"id": tool.spec().name, "description": first_line(&tool.spec().description)}));
            found.push(json!({
                "query": shortened(query, MAX_ECHO),
                "hits": shown.collect::<Vec<_>>(),
                "leftOut": left_out,
            }));
            let mut group = group.into_text();
            if left_out > 0 {
                group.push_str(&format!("({left_out} more left out; narrow the query)\n"));
            }
            reply.add(&group);
        }
        let mut text = reply.into_text();
        if found.iter().any(|group| group["hits"].as_array().is_some_and(|hits| !hits.is_empty())) {
            text.push_str("Call a tool with tool_call. Its parameters: tool_describe.");
        }
        CatalogReply { text: text.trim_end().to_owned(), details: json!({"queries": found}) }
    }

    /// Describes tools by id.
    ///
    /// # Errors
    /// Returns a text for the model if there is no tool with one of the ids.
    pub(super) fn describe(&self, ids: &[&str]) -> Result<CatalogReply, String> {
        let mut reply = BoundedText::new(MAX_DESCRIBED - NOTES);
        let (mut described, mut left_out): (Vec<&str>, Vec<&str>) = Default::default();
        for id in ids {
            let tool = self.find(id).ok_or_else(|| self.unknown(id))?;
            let name = tool.spec().name.as_str();
            match reply.add(&description_of(&**tool)) {
                true => described.push(name),
                false => left_out.push(name),
            }
        }
        let mut text = reply.into_text();
        if !left_out.is_empty() {
            text.push_str(&format!("({} of the tools left out; ask for fewer at once)", left_out.len()));
        }
        let details = json!({"described": described, "leftOut": left_out});
        Ok(CatalogReply { text: text.trim_end().to_owned(), details })
    }

    /// Returns why no deferred tool has this id, and what to do.
    pub(super) fn unknown(&self, id: &str) -> String {
        let id = id.trim();
        if self.direct.iter().any(|name| name == id) {
            return format!("{id} is called directly by its name, not through tool_call");
        }
        let nearest = self.nearest(id);
        let suggestion = match nearest.is_empty() {
            true => String::new(),
            false => format!(" Similar: {}.", nearest.join(", ")),
        };
        format!("Unknown tool: {:?}.{suggestion} Find tools with tool_search", shortened(id, MAX_ECHO))
    }

    /// Returns the names that are most similar to a text.
    fn nearest(&self, id: &str) -> Vec<&str> {
        let id = shortened(id, MAX_ECHO).to_lowercase();
        let names = self.tools.iter().map(|tool| tool.spec().name.as_str()).filter(|name| name.len() <= MAX_ECHO);
        let mut near: Vec<(f64, &str)> = names
            .map(|name| (strsim::jaro_winkler(&id, &name.to_lowercase()), name))
            .filter(|(similarity, _)| *similarity >= SIMILAR)
            .collect();
        near.sort_by(|(one, name), (other, other_name)| other.total_cmp(one).then_with(|| name.cmp(other_name)));
        near.into_iter().take(MAX_SUGGESTED).map(|(_, name)| name).collect()
    }
}

fn hit_line(tool: &Arc<dyn Tool>) -> String {
    let spec = tool.spec();
    match first_line(&spec.description) {
        line if line.is_empty() => format!("- {}\n", spec.name),
        line => format!("- {}: {line}\n", spec.name),
    }
}

/// Returns name, description and parameters of a tool. Parts that are too long are cut.
fn description_of(tool: &dyn Tool) -> String {
    let spec = tool.spec();
    let (description, is_cut) = cut(&spec.description, MAX_DESCRIPTION);
    let note = if is_cut { "\n(The description is longer; this is its beginning.)" } else { "" };
    let schema = spec.parameters.raw().to_string();
    let (schema, is_cut) = cut(&schema, MAX_SCHEMA);
    let of_schema = if is_cut { " (too long; this is its beginning)" } else { "" };
    format!("{}\n{description}{note}\nJSON schema of args{of_schema}: {schema}\n\n", spec.name)
}

/// Returns the beginning of a text with at most this many characters, and whether that is not the whole text.
fn cut(text: &str, max: usize) -> (&str, bool) {
    match text.char_indices().nth(max) {
        Some((end, _)) => (&text[..end], true),
        None => (text, false),
    }
}

#[cfg(test)]
mod tests;
