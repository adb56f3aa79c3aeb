//! Selecting the initial model and thinking level of a session.

use std::sync::Arc;

use pinch_llm::catalog::default_ids;
use pinch_llm::ids::{ModelId, ProviderId};
use pinch_llm::model::Model;
use pinch_llm::thinking::ThinkingLevel;

use super::{CreateError, ModelChoice, SessionOptions};
use crate::models::initial::{self, InitialModelOptions};
use crate::models::pattern::{self, ModelMatch};
use crate::models::{local_servers, scope};
use crate::services::Services;
use crate::session::ScopedModel;
use crate::session_log::{Context, SessionLog};
use crate::settings::Settings;

/// Selects a model for the first conversation of a session and for those that replace it.
#[derive(Clone, Debug)]
pub(crate) struct Chooser {
    model: ModelChoice,
    thinking: Option<ThinkingLevel>,
    scope: Option<Vec<String>>,
    /// Whether there are credentials for every model.
    given_for_all: bool,
}

/// A selected model and related choices.
pub(super) struct ChosenModel<M = Arc<Model>> {
    pub(super) model: M,
    /// The thinking level requested with it.
    thinking: Option<ThinkingLevel>,
    pub(super) scope: Vec<ScopedModel>,
    /// The conversation's model, if it is no longer available.
    lost: Option<(ProviderId, ModelId)>,
}

impl Chooser {
    pub(crate) fn of(options: &SessionOptions) -> Self {
        Self {
            model: options.model.clone(),
            thinking: options.thinking,
            scope: options.scope.clone(),
            given_for_all: options.api_key.is_some() || options.provider.is_some(),
        }
    }

    /// Selects the model and level for a conversation that replaces another one. The level is `None` to use the conversation's; the result
    /// is `None` if there is no model.
    pub(crate) fn choose_again(
        &self,
        services: &Services,
        log: &SessionLog,
    ) -> Option<(Arc<Model>, Option<ThinkingLevel>)> {
        let settings = services.settings().settings();
        let ChosenModel { model, thinking, scope, lost } =
            self.choose(services, &settings, &log.context(), &mut Vec::new()).ok()?;
        let choice = ChosenModel { model: model?, thinking, scope, lost };
        let level = choice.level(&settings, log);
        Some((choice.model, level))
    }

    /// Selects the model for a session. If no other one is available, it is one of the local server in `options`, or else of a local server
    /// that responds, if `options` allow to look for one.
    pub(super) async fn choose_found(
        &self,
        services: &Services,
        settings: &Settings,
        context: &Context,
        options: &SessionOptions,
        notes: &mut Vec<String>,
    ) -> Result<ChosenModel, CreateError> {
        let ChosenModel { model, thinking, scope, lost } = self.choose(services, settings, context, notes)?;
        let model = match model {
            None => {
                let server = match &options.local_server {
                    Some(server) => Some(server.clone()),
                    None if options.look_for_local_servers => {
                        local_servers::find(services.host()).await.into_iter().next()
                    }
                    None => None,
                };
                server.and_then(|server| server.register(services.models()))
            }
            found => found,
        };
        if let Some((provider, id)) = &lost {
            notes.push(initial::not_restored(provider.as_str(), id.as_str(), model.as_deref()));
        }
        match model {
            Some(model) => Ok(ChosenModel { model, thinking, scope, lost }),
            None => Err(CreateError::NoModel { models_json: services.agent_dir().map(|dir| dir.join("models.json")) }),
        }
    }

    fn choose(
        &self,
        services: &Services,
        settings: &Settings,
        context: &Context,
        notes: &mut Vec<String>,
    ) -> Result<ChosenModel<Option<Arc<Model>>>, CreateError> {
        let registry = services.models();
        let has_auth = |provider: &ProviderId| self.given_for_all || services.auth().is_configured(provider);
        let patterns = self.scope.as_ref().or(settings.enabled_models.as_ref());
        let available = || registry.available(&has_auth);
        let scoped: Vec<ModelMatch> = match patterns {
            Some(patterns) if !patterns.is_empty() => {
                let (scoped, warnings) = scope::choose(&available(), patterns);
                notes.extend(warnings);
                scoped
            }
            _ => Vec::new(),
        };
        let scope =
            scoped.iter().map(|one| ScopedModel { model: Arc::clone(&one.model), thinking: one.thinking }).collect();
        let chosen = |model: Option<Arc<Model>>, thinking: Option<ThinkingLevel>, lost| {
            Ok(ChosenModel { model, thinking: self.thinking.or(thinking), scope, lost })
        };
        match &self.model {
            ModelChoice::Exact(model) => return chosen(Some(Arc::clone(model)), None, None),
            ModelChoice::Named { provider, pattern } => {
                let found = pattern::resolve(registry, provider.as_deref(), pattern, &has_auth)?;
                notes.extend(found.warning);
                return chosen(Some(found.model), found.thinking, None);
            }
            ModelChoice::Default => {}
        }
        // An empty conversation has no model to keep.
        let is_continued = !context.messages.is_empty();
        let saved = context.model.as_ref().filter(|_| is_continued);
        if let Some(saved) = saved
            && let Some(model) = registry.find(&saved.provider, saved.model_id.as_str())
            && has_auth(&model.provider)
        {
            return chosen(Some(model), None, None);
        }
        let default = settings.default_provider.as_deref().zip(settings.default_model.as_deref());
        // The catalog is large: look up the configured model directly, and providers one by one.
        let configured = default.and_then(|(provider, id)| registry.find(&provider.into(), id));
        let is_configured = |one: &&ModelMatch| {
            configured.as_ref().is_some_and(|model| model.provider == one.model.provider && model.id == one.model.id)
        };
        let of_scope = scoped.iter().find(is_configured).or(scoped.first()).filter(|_| !is_continued);
        let (model, thinking) = match of_scope {
            Some(one) => (Some(Arc::clone(&one.model)), one.thinking),
            None => (
                configured
                    .filter(|model| has_auth(&model.provider))
                    .or_else(|| usual_model(services, &has_auth))
                    .or_else(|| initial::choose(&available(), &InitialModelOptions::default()).model),
                None,
            ),
        };
        chosen(model, thinking, saved.map(|saved| (saved.provider.clone(), saved.model_id.clone())))
    }
}

impl ChosenModel {
    /// Returns the thinking level; `None` uses the conversation's.
    pub(super) fn level(&self, settings: &Settings, log: &SessionLog) -> Option<ThinkingLevel> {
        self.thinking.or_else(|| {
            let of_model = settings.model_thinking.get(&format!("{}/{}", self.model.provider, self.model.id));
            let usual = of_model.copied().or(settings.default_thinking).unwrap_or(ThinkingLevel::Medium);
            let is_new = log.context().messages.is_empty();
            (is_new || !log.active_branch().has_level()).then_some(usual)
        })
    }
}

/// Returns the default model of the first preferred provider with credentials.
fn usual_model(services: &Services, has_auth: &dyn Fn(&ProviderId) -> bool) -> Option<Arc<Model>> {
    let preferred = default_ids().map(|(provider, _)| ProviderId::new(provider));
    preferred.filter(|provider| has_auth(provider)).find_map(|provider| services.models().default_model(&provider))
}
