//! Requests to Azure: address and deployment.

use http::Uri;
use serde_json::Value;

use crate::error::{LlmError, LlmErrorKind};
use crate::request::Request;
use crate::wire::headers::{self, HeaderLayers};
use crate::wire::responses::models::Relative;
use crate::wire::responses::request;
use crate::wire::{HttpRequest, WireCall};

const NO_BASE_URL: &str = "Azure OpenAI base URL is required. Set AZURE_OPENAI_BASE_URL or AZURE_OPENAI_RESOURCE_NAME, or pass azureBaseUrl, \
                           azureResourceName, or model.baseUrl.";
/// Azure's own hosts.
const HOSTS: [&str; 2] = [".openai.azure.com", ".cognitiveservices.azure.com"];

pub(super) fn encode(call: &WireCall<'_>) -> Result<HttpRequest, LlmError> {
    let request = call.request;
    let key = headers::key(request)?;
    let url = url(request)?;
    let body = request::body(call, deployment(request), Relative::Azure)?;
    let mut layers = HeaderLayers::new(&request.model);
    headers::common(&mut layers)?;
    if let Some(key) = key {
        layers.set("api-key", key.reveal())?;
    }
    layers.lay(&request.model.headers)?;
    layers.lay(&request.auth.headers)?;
    headers::provider_quirks(&mut layers, request)?;
    layers.lay(&request.options.headers)?;
    Ok(HttpRequest { url, headers: layers.finish(), body })
}

/// Returns a setting: from the call, else from the environment.
fn setting<'r>(request: &'r Request, option: &str, variable: &str) -> Option<&'r str> {
    let given =
        request.options.native.get(option).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty());
    given.or_else(|| request.host.env().non_empty(variable).map(str::trim).filter(|text| !text.is_empty()))
}

fn url(request: &Request) -> Result<String, LlmError> {
    let version = setting(request, "azureApiVersion", "AZURE_OPENAI_API_VERSION").unwrap_or("v1");
    let base = base_url(request)?;
    let (path, query) =
        base.split_once('?').map_or((base.as_str(), String::new()), |(path, query)| (path, format!("{query}&")));
    Ok(format!("{}/responses?{query}api-version={version}", path.trim_end_matches('/')))
}

fn base_url(request: &Request) -> Result<String, LlmError> {
    let fail = |text: String| Err(LlmError::new(request.model.provider.clone(), LlmErrorKind::InvalidRequest, text));
    let of_resource = || {
        let name = setting(request, "azureResourceName", "AZURE_OPENAI_RESOURCE_NAME")?;
        Some(format!("https://{name}.openai.azure.com/openai/v1"))
    };
    let of_model = || request.auth.base_url.as_deref().unwrap_or(&request.model.base_url).to_owned();
    let base = setting(request, "azureBaseUrl", "AZURE_OPENAI_BASE_URL").map(str::to_owned);
    let base = base.or_else(of_resource).unwrap_or_else(of_model);
    if base.trim().is_empty() {
        return fail(NO_BASE_URL.to_owned());
    }
    match normalised(&base) {
        Some(base) => Ok(base),
        None => fail(format!("Invalid Azure OpenAI base URL: {base}")),
    }
}

/// Returns the base URL for requests, or `None` if it is not a URL. The path may be omitted for Azure's own hosts.
fn normalised(base: &str) -> Option<String> {
    let base = base.trim().trim_end_matches('/');
    let uri: Uri = base.parse().ok()?;
    let (scheme, authority) = (uri.scheme_str()?, uri.authority()?);
    let is_azure = HOSTS.iter().any(|host| authority.host().to_ascii_lowercase().ends_with(host));
    let is_bare = matches!(uri.path().trim_end_matches('/'), "" | "/openai");
    if is_azure && is_bare { Some(format!("{scheme}://{authority}/openai/v1")) } else { Some(base.to_owned()) }
}

/// Returns the deployment name of the model.
fn deployment(request: &Request) -> &str {
    let model = request.model.id.as_str();
    let given = request.options.native.get("azureDeploymentName").and_then(Value::as_str);
    let given = given.map(str::trim).filter(|name| !name.is_empty());
    let mapped = || {
        let map = request.host.env().non_empty("AZURE_OPENAI_DEPLOYMENT_NAME_MAP")?;
        let pairs = map.split(',').filter_map(|pair| pair.split_once('='));
        pairs
            .map(|(name, deployment)| (name.trim(), deployment.trim()))
            .find(|(name, deployment)| *name == model && !deployment.is_empty())
            .map(|(_, deployment)| deployment)
    };
    given.or_else(mapped).unwrap_or(model)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_urls_are_normalised() {
        let check = |base: &str, expect: Option<&str>| assert_eq!(normalised(base).as_deref(), expect, "{base}");
        check("https://r.openai.azure.com", Some("https://r.openai.azure.com/openai/v1"));
        check(
            " https://r.cognitiveservices.azure.com/openai/?x=1 ",
            Some("https://r.cognitiveservices.azure.com/openai/v1"),
        );
        check("https://r.openai.azure.com/openai/v1/", Some("https://r.openai.azure.com/openai/v1"));
        check("https://proxy.test/openai", Some("https://proxy.test/openai"));
        check("https://evilopenai.azure.com", Some("https://evilopenai.azure.com"));
        check("not a url", None);
        check("/openai/v1", None);
    }
}
