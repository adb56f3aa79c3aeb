//! Address and credentials of requests to Google Cloud.

use pinch_stdx::secret::Secret;
use serde_json::Value;

use crate::error::{LlmError, LlmErrorKind};
use crate::keys;
use crate::request::Request;
use crate::wire::google::request::{all_headers, body, model_id};
use crate::wire::{HttpRequest, WireCall, address, headers};

const METHOD: &str = "streamGenerateContent?alt=sse";

/// A project and the location of its models.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VertexLocation {
    pub(crate) project: String,
    pub(crate) location: String,
}

pub(super) fn encode(call: &WireCall<'_>) -> Result<HttpRequest, LlmError> {
    let request = call.request;
    let key = key(request);
    let id = model_id(request)?;
    let model = if id.starts_with("publishers/") { id.to_owned() } else { format!("publishers/google/models/{id}") };
    let place = if key.is_some() { None } else { Some(place(request)?) };
    let base = Some(address::base(request)).filter(|base| !base.is_empty() && !base.contains("{location}"));
    let url = match (base, &place) {
        (Some(base), _) => {
            let version = if has_version(base) { "" } else { "v1/" };
            address::url_under(request, base, &format!("{version}{model}:{METHOD}"))?
        }
        (None, None) => format!("https://aiplatform.googleapis.com/v1/{model}:{METHOD}"),
        (None, Some(VertexLocation { project, location })) => {
            let host = host(location);
            format!("https://{host}/v1/projects/{project}/locations/{location}/{model}:{METHOD}")
        }
    };
    if key.is_none() && !request.auth.keyless && !headers::brings_authorisation(request) {
        let text = "No Google credentials found. Set GOOGLE_CLOUD_API_KEY, or run `gcloud auth application-default login`, \
                    or name a credentials file in GOOGLE_APPLICATION_CREDENTIALS.";
        return Err(LlmError::new(request.model.provider.clone(), LlmErrorKind::Auth, text));
    }
    let headers = all_headers(request, key.as_ref().map(|key| ("x-goog-api-key", key.reveal())))?;
    Ok(HttpRequest { url, headers, body: body(call)? })
}

/// Returns the key of a request, or that of its environment; none if it is only a placeholder.
pub(crate) fn key(request: &Request) -> Option<Secret> {
    let trimmed = |key: Secret| Secret::new(key.reveal().trim());
    let given = request.auth.key.clone().filter(|key| !keys::is_placeholder(key));
    let found = || {
        let bare = !request.auth.keyless && !headers::brings_authorisation(request);
        let found = keys::look_up(request.model.provider.as_str(), request.host.env()).filter(|_| bare)?;
        Some(found.key).filter(|key| !keys::is_placeholder(key))
    };
    given.or_else(found).map(trimmed)
}

/// Returns project and location of a request.
///
/// # Errors
/// Returns an error if one is unknown, or not valid in an address.
pub(crate) fn place(request: &Request) -> Result<VertexLocation, LlmError> {
    let env = request.host.env();
    let failed = |kind, text: String| Err(LlmError::new(request.model.provider.clone(), kind, text));
    let given = |option: &str, variables: &[&str]| {
        let native = request.options.native.get(option).and_then(Value::as_str).filter(|word| !word.is_empty());
        native.or_else(|| variables.iter().find_map(|name| env.non_empty(name))).map(str::to_owned)
    };
    let Some(project) = given("project", &["GOOGLE_CLOUD_PROJECT", "GCLOUD_PROJECT"]) else {
        let text =
            "Vertex AI requires a project ID. Set GOOGLE_CLOUD_PROJECT/GCLOUD_PROJECT or pass project in options.";
        return failed(LlmErrorKind::Auth, text.into());
    };
    let Some(location) = given("location", &["GOOGLE_CLOUD_LOCATION"]) else {
        let text = "Vertex AI requires a location. Set GOOGLE_CLOUD_LOCATION or pass location in options.";
        return failed(LlmErrorKind::Auth, text.into());
    };
    let is_name = |c: char| c.is_ascii_alphanumeric() || "-_:.".contains(c);
    for (what, name) in [("project", &project), ("location", &location)] {
        if !name.chars().all(is_name) || (what == "location" && name.contains([':', '.'])) {
            return failed(LlmErrorKind::InvalidRequest, format!("\"{name}\" is not a {what} of Google Cloud"));
        }
    }
    Ok(VertexLocation { project, location })
}

fn host(location: &str) -> String {
    match location {
        "global" => "aiplatform.googleapis.com".to_owned(),
        "us" | "eu" => format!("aiplatform.{location}.rep.googleapis.com"),
        region => format!("{region}-aiplatform.googleapis.com"),
    }
}

/// Returns whether a base URL already contains the version: a segment such as `v1` or `v1beta1`.
fn has_version(base: &str) -> bool {
    let is_number = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let is_version = |segment: &str| {
        let Some(rest) = segment.strip_prefix('v') else { return false };
        let (major, beta) = rest.split_once("beta").unwrap_or((rest, ""));
        !major.is_empty() && is_number(major) && is_number(beta)
    };
    let path = base.split_once("://").map_or(base, |(_, rest)| rest);
    path.split('/').skip(1).any(is_version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_api_version_is_taken_from_the_path() {
        for (base, expected) in [
            ("http://h/v1beta1/proxy", true),
            ("http://h/v1", true),
            ("http://v1", false),
            ("http://h/v", false),
            ("http://h/v1alpha", false),
            ("http://h/vertex", false),
        ] {
            assert_eq!(has_version(base), expected, "{base}");
        }
    }

    #[test]
    fn the_host_follows_the_location() {
        assert_eq!(host("global"), "aiplatform.googleapis.com");
        assert_eq!(host("eu"), "aiplatform.eu.rep.googleapis.com");
        assert_eq!(host("us-east1"), "us-east1-aiplatform.googleapis.com");
    }
}
