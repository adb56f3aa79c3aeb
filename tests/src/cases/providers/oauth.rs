//! Cases of the area `oauth`: logins whose requests are answered here.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use futures::future::BoxFuture;
use pinch_llm::catalog::Catalog;
use pinch_llm::http::Outgoing;
use pinch_llm::model::Model;
use pinch_llm::oauth::transport::OAuthResponse;
use pinch_llm::oauth::{
    LoginChoice, LoginPrompt, LoginUi, OAuthCredential, OAuthCx, OAuthError, OAuthFlow, OAuthRegistry, OAuthTransport,
    SignInPage, copilot,
};
use pinch_llm::stdx::cancel::Cancel;
use pinch_llm::stdx::host::Host;
use pinch_testing::cases::compare::same;
use serde_json::{Map, Value, json};

use super::wanted;
use crate::cases::{Case, CaseOutcome};

/// The time of logins, in Unix milliseconds.
const NOW: i64 = 1_700_000_000_000;

/// Runs a case.
pub(super) fn run(case: &Case<'_>) -> CaseOutcome {
    let (given, expect) = (&case.case["given"], wanted(&case.case["expect"]));
    let has = |name: &str| given.get(name).is_some();
    if let Some(list) = given.as_array() {
        return one_by_one(list, expect);
    }
    if has("models") {
        return modify_models(given, expect).into();
    }
    if has("token") && expect.is_string() {
        return same(expect, &base_url(given).into()).into();
    }
    let Some(flow) = flow(given, expect) else { return CaseOutcome::NotImplemented };
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build() {
        Ok(runtime) => runtime,
        Err(why) => return CaseOutcome::Failed(why.to_string()),
    };
    if has("credential") {
        return runtime.block_on(refresh(&*flow, given, expect)).into();
    }
    runtime.block_on(login(&*flow, given, expect)).into()
}

/// Checks values separately: tokens with the URLs they resolve to, or texts with the domains they name.
fn one_by_one(list: &[Value], expect: &Value) -> CaseOutcome {
    let actual: Value = match list.first() {
        Some(Value::String(_)) => {
            list.iter().map(|typed| copilot::normalize_domain(typed.as_str().unwrap_or_default())).collect()
        }
        Some(first) if first.get("token").is_some() => list.iter().map(base_url).collect(),
        _ => return CaseOutcome::NotImplemented,
    };
    same(expect, &actual).into()
}

fn base_url(given: &Value) -> String {
    copilot::base_url(given["token"].as_str().unwrap_or_default(), given["enterpriseDomain"].as_str())
}

fn modify_models(given: &Value, expect: &Value) -> Result<(), String> {
    let credential = stored(&given["credential"])?;
    let catalog = Catalog::built_in();
    let model = |name: &Value| -> Result<Model, String> {
        let (provider, id) = name.as_str().and_then(|name| name.split_once('/')).ok_or("a model without a provider")?;
        let found = catalog.find(provider, id).map(|model| (**model).clone());
        found.or_else(|| elsewhere(&catalog, provider, id)).ok_or_else(|| format!("the catalog has no {name}"))
    };
    let models = given["models"].as_array().into_iter().flatten().map(model);
    let mut models: Vec<Model> = models.collect::<Result<_, _>>()?;
    OAuthRegistry::built_in().modify_models("github-copilot", &credential, &mut models);
    let actual: Value = models.iter().map(|model| json!([model.provider.as_str(), model.base_url])).collect();
    same(expect, &actual)
}

/// A model that the provider no longer has, made from another one of the provider: only its URL matters here.
fn elsewhere(catalog: &Catalog, provider: &str, id: &str) -> Option<Model> {
    let mut model = (**catalog.models(provider).first()?).clone();
    model.id = id.into();
    Some(model)
}

fn stored(given: &Value) -> Result<OAuthCredential, String> {
    let mut whole = Map::from_iter([
        ("refresh".to_owned(), json!("")),
        ("access".to_owned(), json!("")),
        ("expires".to_owned(), json!(0)),
    ]);
    whole.extend(given.as_object().cloned().unwrap_or_default());
    OAuthCredential::from_value(&Value::Object(whole)).ok_or_else(|| format!("no credential: {given}"))
}

/// The flow of a case: cases identify it by the client name.
fn flow(given: &Value, expect: &Value) -> Option<Box<dyn OAuthFlow>> {
    let (text, provider) = (expect.to_string(), given["provider"].as_str());
    let is = |id: &str, client: &str| provider == Some(id) || text.contains(client);
    if given.get("deviceResponse").is_some() || is("github-copilot", "api.github.com") {
        return Some(Box::new(copilot::Copilot::with_models(copilot_models(expect))));
    }
    if is("openai-codex", "app_EMoamEEZ73f0CkXaXp7hrann") || text.contains("auth.openai.com") {
        return Some(Box::new(pinch_llm::oauth::codex::CodexLogin::default()));
    }
    if is("anthropic", "9d1c250a-e61b-44d9-88ed-5944d1962f5e") || text.contains("claude.") {
        return Some(Box::new(pinch_llm::oauth::anthropic::AnthropicLogin::default()));
    }
    None
}

/// As many models as when the case was recorded, the one that it names first: the catalog has changed since.
fn copilot_models(expect: &Value) -> Vec<String> {
    let requests = expect["requests"].as_array().map_or(&[][..], Vec::as_slice);
    let is_policy = |request: &&Value| request["url"].as_str().is_some_and(|url| url.ends_with("/policy"));
    let named = requests.iter().filter(is_policy).filter_map(|request| request["url"].as_str()?.rsplit('/').nth(1));
    let mut ids: Vec<String> = named.map(str::to_owned).collect();
    let before = requests.len() - ids.len();
    let n = expect["totalRequests"].as_u64().and_then(|n| usize::try_from(n).ok()).map_or(usize::MAX, |n| n - before);
    let catalog = Catalog::built_in();
    for model in catalog.models("github-copilot") {
        if !ids.iter().any(|id| model.id == **id) {
            ids.push(model.id.to_string());
        }
    }
    ids.truncate(n);
    ids
}

/// Answers requests in order (policy requests with 200), and records them.
#[derive(Default)]
struct ScriptedTransport {
    answers: Mutex<VecDeque<Value>>,
    asked: Mutex<Vec<Outgoing>>,
}

impl OAuthTransport for ScriptedTransport {
    fn send(&self, request: Outgoing) -> BoxFuture<'_, Result<OAuthResponse, String>> {
        Box::pin(async move {
            let body = if request.url.ends_with("/policy") {
                Some(json!({}))
            } else {
                self.answers.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
            };
            self.asked.lock().unwrap_or_else(PoisonError::into_inner).push(request);
            let body = body.ok_or("nobody answers")?;
            Ok(OAuthResponse { status: 200, body: body.to_string().into_bytes() })
        })
    }
}

impl ScriptedTransport {
    fn new(answers: impl IntoIterator<Item = Value>) -> Self {
        Self { answers: Mutex::new(answers.into_iter().collect()), asked: Mutex::default() }
    }

    fn asked(&self) -> Vec<Outgoing> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The user of a case.
#[derive(Default)]
struct CasePerson {
    answer: String,
    shown: Mutex<Option<SignInPage>>,
}

impl CasePerson {
    fn page(&self) -> Option<SignInPage> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The state parameter in the URL that was shown.
    fn state(&self) -> String {
        let url = self.page().map(|page| page.url).unwrap_or_default();
        let state = url.split(['?', '&']).find_map(|pair| pair.strip_prefix("state="));
        state.unwrap_or_default().to_owned()
    }
}

impl LoginUi for CasePerson {
    fn show(&self, page: &SignInPage) {
        *self.shown.lock().unwrap_or_else(PoisonError::into_inner) = Some(page.clone());
    }

    fn prompt<'a>(&'a self, _: &'a LoginPrompt) -> BoxFuture<'a, Option<String>> {
        Box::pin(async { Some(self.answer.replace("<state>", &self.state())) })
    }

    fn select<'a>(&'a self, choice: &'a LoginChoice) -> BoxFuture<'a, Option<String>> {
        Box::pin(async { choice.options.first().map(|option| option.id.clone()) })
    }

    fn pasted(&self) -> Option<BoxFuture<'_, Option<String>>> {
        Some(Box::pin(async { Some(self.answer.replace("<state>", &self.state())) }))
    }
}

async fn refresh(flow: &dyn OAuthFlow, given: &Value, expect: &Value) -> Result<(), String> {
    let (host, cancel) = (Host::builder().clock(NOW, 0).seed(1).build(), Cancel::new());
    let answer = given.get("tokenResponse").cloned();
    let answer = answer.unwrap_or_else(|| json!({"access_token": "a", "refresh_token": "r", "expires_in": 60}));
    let transport = ScriptedTransport::new([answer]);
    let cx = OAuthCx { transport: &transport, host: &host, cancel: &cancel };
    let credential = stored(&given["credential"])?;
    let fresh = flow.refresh(&credential, cx).await;
    let asked = transport.asked();
    for (name, expected) in expect.as_object().into_iter().flatten() {
        let result = match name.as_str() {
            "body" => same(expected, &asked.first().map(body).unwrap_or_default()),
            "request" => contains_request(expected, asked.first()),
            "credential" => same_credential(expected, &fresh),
            other => Err(format!(": nobody compares {other}")),
        };
        result.map_err(|why| format!("{name}{why}"))?;
    }
    Ok(())
}

async fn login(flow: &dyn OAuthFlow, given: &Value, expect: &Value) -> Result<(), String> {
    let (host, cancel) = (Host::builder().clock(NOW, 0).seed(1).build(), Cancel::new());
    let names = ["deviceResponse", "accessTokenResponse", "copilotTokenResponse", "tokenResponse"];
    let transport = ScriptedTransport::new(names.iter().filter_map(|name| given.get(*name).cloned()));
    let answer = given["pasted"].as_str().or(given["domainInput"].as_str()).unwrap_or_default();
    let person = CasePerson { answer: answer.to_owned(), ..CasePerson::default() };
    let cx = OAuthCx { transport: &transport, host: &host, cancel: &cancel };
    let credential = flow.login(&person, cx).await;
    let (asked, page) = (transport.asked(), person.page());
    let url = page.as_ref().map(|page| page.url.clone());
    let instructions = page.as_ref().and_then(|page| page.instructions.clone());
    for (name, expected) in expect.as_object().into_iter().flatten() {
        let result = match name.as_str() {
            "authorizeUrl" => same(&as_pattern(expected), &url.clone().into()),
            "instructions" if expected == "$any" => {
                instructions.as_ref().filter(|text| !text.is_empty()).map(|_| ()).ok_or_else(|| ": none".to_owned())
            }
            "instructions" => same(expected, &instructions.clone().into()),
            "stateHexLength" => {
                let state = person.state();
                let is_hex = state.bytes().all(|b| b.is_ascii_hexdigit());
                same(expected, &if is_hex { state.len().into() } else { Value::from(state) })
            }
            "shown" => same(expected, &json!({"url": url, "instructions": instructions})),
            "tokenRequest" => token_request(expected, asked.first()),
            "requests" => expected.as_array().into_iter().flatten().enumerate().try_for_each(|(at, expected)| {
                contains_request(expected, asked.get(at)).map_err(|why| format!("/{at}{why}"))
            }),
            "totalRequests" => same(expected, &asked.len().into()),
            "credential" => same_credential(expected, &credential),
            other => Err(format!(": nobody compares {other}")),
        };
        result.map_err(|why| format!("{name}{why}"))?;
    }
    Ok(())
}

/// `*` in a URL matches any value.
fn as_pattern(expected: &Value) -> Value {
    let escaped = regex::escape(expected.as_str().unwrap_or_default()).replace(r"\*", "[^/&]+");
    format!("$re:^{escaped}$").into()
}

fn header(request: &Outgoing, name: &str) -> Option<String> {
    request.headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
}

fn body(request: &Outgoing) -> Value {
    match request.body.is_empty() {
        true => Value::Null,
        false => String::from_utf8_lossy(&request.body).into_owned().into(),
    }
}

fn token_request(expected: &Value, request: Option<&Outgoing>) -> Result<(), String> {
    let request = request.ok_or(": no request")?;
    let text = String::from_utf8_lossy(&request.body).into_owned();
    let keys: Vec<String> = match serde_json::from_str::<Map<String, Value>>(&text) {
        Ok(members) => members.keys().cloned().collect(),
        Err(_) => text.split('&').filter_map(|pair| Some(pair.split_once('=')?.0.to_owned())).collect(),
    };
    let content_type = header(request, "content-type");
    same(expected, &json!({"url": request.url, "contentType": content_type, "bodyKeys": keys}))
}

/// Compares the named fields of a request.
fn contains_request(expected: &Value, request: Option<&Outgoing>) -> Result<(), String> {
    let request = request.ok_or(": no request")?;
    for (name, value) in expected.as_object().into_iter().flatten() {
        let result = match name.as_str() {
            "url" => same(value, &request.url.as_str().into()),
            "method" => same(value, &request.method.as_str().into()),
            "contentType" => same(value, &header(request, "content-type").into()),
            "headers" => value.as_object().into_iter().flatten().try_for_each(|(name, value)| {
                same(value, &header(request, name).into()).map_err(|why| format!("/{name}{why}"))
            }),
            "body" if value.is_object() => {
                same(value, &serde_json::from_slice::<Value>(&request.body).unwrap_or_default())
            }
            "body" => same(value, &body(request)),
            other => Err(format!(": nobody compares {other}")),
        };
        result.map_err(|why| format!("/{name}{why}"))?;
    }
    Ok(())
}

/// Compares the credential; `expiresInSeconds` may differ by five seconds.
fn same_credential(expected: &Value, got: &Result<OAuthCredential, OAuthError>) -> Result<(), String> {
    let got = got.as_ref().map_err(|why| format!(": {why}"))?.to_value();
    for (name, value) in expected.as_object().into_iter().flatten() {
        let result = match (name.as_str(), value.as_f64(), got["expires"].as_i64()) {
            ("expiresInSeconds", Some(seconds), Some(expires)) => {
                let actual = (expires - NOW) as f64 / 1_000.0;
                ((actual - seconds).abs() <= 5.0).then_some(()).ok_or_else(|| format!(": {actual}, expected {seconds}"))
            }
            _ => same(value, &got[name]),
        };
        result.map_err(|why| format!("/{name}{why}"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use regex::Regex;

    use super::*;

    #[test]
    fn stars_stand_for_values() {
        let pattern = as_pattern(&json!("https://x/?a=*&b=1"));
        let pattern = pattern.as_str().and_then(|text| text.strip_prefix("$re:")).unwrap();
        assert!(Regex::new(pattern).unwrap().is_match("https://x/?a=7f&b=1"));
        assert!(!Regex::new(pattern).unwrap().is_match("https://x/?a=&b=1"));
    }
}
