//! The content of models.json by provider, part of which may not be parsed yet.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use pinch_llm::catalog::{Catalog, canonical_provider};
use pinch_llm::ids::ProviderId;
use serde_json::Value;

use super::definition::{self, Definition, FindingKind, ModelProblem, ModelProblems};
use super::outline::{self, ModelsOutline, Sketch};
use super::schema;
use crate::document::{self, Problem};

/// Maximum bytes of a document that is parsed and checked as a whole. In longer ones, the models of a provider are parsed on first use.
const AT_ONCE: usize = 256 * 1024;

/// A document's definition of one provider.
#[derive(Debug)]
pub(super) struct Defined {
    head: Definition,
    rest: Option<Rest>,
}

/// The part not parsed yet.
#[derive(Debug)]
struct Rest {
    id: ProviderId,
    /// The provider's position.
    at: String,
    file: PathBuf,
    is_built_in: bool,
    sketch: Sketch,
    whole: OnceLock<(Definition, Vec<ModelProblem>)>,
    is_told: AtomicBool,
}

impl Defined {
    /// Returns the definition, possibly without models.
    pub(super) fn head(&self) -> &Definition {
        &self.head
    }

    /// Returns the complete definition.
    pub(super) fn whole(&self) -> &Definition {
        self.rest.as_ref().map_or(&self.head, |rest| &rest.read().0)
    }
}

impl Rest {
    fn read(&self) -> &(Definition, Vec<ModelProblem>) {
        self.whole.get_or_init(|| {
            let mut findings = ModelProblems { file: &self.file, all: Vec::new() };
            let config = self.sketch.read().unwrap_or_else(|error| {
                findings.note(
                    FindingKind::Shape,
                    &self.at,
                    format!("cannot be read: {error}"),
                    "The models are ignored",
                );
                Value::Object(self.sketch.head.clone())
            });
            let read = Definition::read(&self.id, &self.at, config, self.is_built_in, &mut findings);
            (read.unwrap_or_default(), findings.all)
        })
    }
}

/// The content of a document.
#[derive(Clone, Debug, Default)]
pub(super) struct ModelsDocument {
    pub(super) providers: Vec<(ProviderId, Arc<Defined>)>,
    file: PathBuf,
    /// The problems in document order; unparsed parts have a placeholder.
    reported: Vec<Reported>,
}

#[derive(Clone, Debug)]
enum Reported {
    Finding(ModelProblem),
    Of(Arc<Defined>),
}

impl ModelsDocument {
    /// Reads a file; a missing one is empty.
    ///
    /// # Errors
    /// Returns the problem with the document as a whole.
    pub(super) fn read(file: &Path, catalog: Option<&Catalog>) -> Result<Self, Problem> {
        let Some(text) = document::read_long_text(file)? else { return Ok(Self::default()) };
        if text.len() > AT_ONCE
            && let Some(outline) = ModelsOutline::of(&text)
        {
            return Ok(Self::of_outline(outline, catalog, file));
        }
        document::value_of(file, outline::as_str(&text)).map(|root| Self::of_value(root, catalog, file))
    }

    /// Creates a document from a value in memory.
    pub(super) fn of_value(root: Value, catalog: Option<&Catalog>, file: &Path) -> Self {
        let mut findings = ModelProblems { file, all: Vec::new() };
        let read = definition::read_document(root, catalog, &mut findings);
        let whole = |(id, head)| (id, Arc::new(Defined { head, rest: None }));
        let reported = findings.all.into_iter().map(Reported::Finding).collect();
        Self { providers: read.into_iter().map(whole).collect(), file: file.to_owned(), reported }
    }

    fn of_outline(outline: ModelsOutline, catalog: Option<&Catalog>, file: &Path) -> Self {
        let mut document = Self { file: file.to_owned(), ..Self::default() };
        for (name, sketch) in outline.providers {
            let id = ProviderId::new(canonical_provider(&name));
            let is_built_in = catalog.is_some_and(|catalog| catalog.n_models(&name) > 0);
            let at = format!("providers.{name}");
            let mut misfits = Vec::new();
            schema::provider(&at, &sketch.head, &mut misfits);
            let head = Definition::of(sketch.head.clone()).0;
            // Whether the definition is valid may depend on its models, unless there is a URL for all of them.
            if misfits.is_empty() && head.base_url.is_some() && sketch.has_good_parts() {
                let (file, whole, is_told) = (file.to_owned(), OnceLock::new(), AtomicBool::new(false));
                let rest = Rest { id: id.clone(), at, file, is_built_in, sketch, whole, is_told };
                let defined = Arc::new(Defined { head, rest: Some(rest) });
                document.reported.push(Reported::Of(Arc::clone(&defined)));
                document.providers.push((id, defined));
                continue;
            }
            let mut findings = ModelProblems { file, all: Vec::new() };
            let config = sketch.read().unwrap_or_else(|_| Value::Object(sketch.head.clone()));
            let read = Definition::read(&id, &at, config, is_built_in, &mut findings);
            document.reported.extend(findings.all.into_iter().map(Reported::Finding));
            document.providers.extend(read.map(|head| (id, Arc::new(Defined { head, rest: None }))));
        }
        document
    }

    /// Returns the problems found so far.
    pub(super) fn problems_so_far(&self) -> Vec<Problem> {
        let so_far = self.reported.iter().flat_map(|reported| match reported {
            Reported::Finding(finding) => std::slice::from_ref(finding),
            Reported::Of(defined) => {
                defined.rest.as_ref().and_then(|rest| rest.whole.get()).map_or(&[][..], |(_, all)| all)
            }
        });
        so_far.map(|finding| finding.problem.clone()).collect()
    }

    /// Returns the problems of parts parsed since the last call.
    pub(super) fn new_problems(&self) -> Vec<Problem> {
        let rests = self.providers.iter().filter_map(|(_, defined)| defined.rest.as_ref());
        let new = rests.filter(|rest| rest.whole.get().is_some() && !rest.is_told.swap(true, Ordering::Relaxed));
        new.flat_map(|rest| &rest.read().1).map(|finding| finding.problem.clone()).collect()
    }

    /// Returns all problems, parsing the remaining parts.
    pub(super) fn findings(&self) -> Vec<ModelProblem> {
        let all = self.reported.iter().flat_map(|reported| match reported {
            Reported::Finding(finding) => std::slice::from_ref(finding),
            Reported::Of(defined) => defined.rest.as_ref().map_or(&[][..], |rest| &rest.read().1),
        });
        all.cloned().collect()
    }

    /// Returns all problems that prevent something from being used, in pi's words.
    pub(super) fn error(&self) -> Option<String> {
        definition::error_text(&self.findings(), &self.file)
    }
}
