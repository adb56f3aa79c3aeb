//! The address of requests to Bedrock, and the region of their signature.

use pinch_http::url_parts;

use crate::error::{LlmError, LlmErrorKind};
use crate::request::Request;

/// Region if nothing else determines it.
const DEFAULT_REGION: &str = "us-east-1";

/// Inference profiles by the prefix of their id: the first regions that may serve them, starting with the usual one. An entry that ends in
/// a dash matches all regions with that prefix.
const PROFILES: &[(&str, &[&str])] = &[
    ("us-gov.", &["us-gov-west-1", "us-gov-"]),
    ("us.", &["us-east-1", "us-"]),
    ("eu.", &["eu-central-1", "eu-"]),
    ("apac.", &["ap-southeast-1", "ap-"]),
    ("au.", &["ap-southeast-2", "ap-southeast-"]),
    ("jp.", &["ap-northeast-1", "ap-northeast-"]),
    ("ca.", &["ca-central-1", "ca-"]),
    ("in.", &["ap-south-1", "ap-south-"]),
];

/// The address of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Endpoint {
    /// The URL, without a trailing slash.
    pub(crate) url: String,
    /// The region of the signature.
    pub(crate) region: String,
}

/// Returns a text option of the call.
pub(crate) fn option<'a>(request: &'a Request, name: &str) -> Option<&'a str> {
    request.options.native.get(name).and_then(|value| value.as_str()).filter(|text| !text.is_empty())
}

/// Returns the requested profile in the user's AWS files.
pub(crate) fn profile(request: &Request) -> Option<&str> {
    option(request, "profile").or_else(|| request.host.env().non_empty("AWS_PROFILE"))
}

/// Returns the region set by the caller or the environment.
pub(crate) fn configured_region(request: &Request) -> Option<&str> {
    let env = request.host.env();
    option(request, "region").or_else(|| env.non_empty("AWS_REGION")).or_else(|| env.non_empty("AWS_DEFAULT_REGION"))
}

/// Determines the address, using the first of: the region in the model's own id, the configured one, that of the profile, that of an
/// explicit address, that of the inference profile.
///
/// # Errors
/// Returns an error if the region cannot be part of a host name.
pub(crate) fn find(request: &Request) -> Result<Endpoint, LlmError> {
    let env = request.host.env();
    let base = request.auth.base_url.as_deref().unwrap_or(&request.model.base_url).trim_end_matches('/');
    let standard = standard_host(base);
    let id = request.model.id.as_str();
    let wanted = arn_region(id).or_else(|| configured_region(request)).or_else(|| {
        let profile_region = request.auth.aws.as_ref().and_then(|aws| aws.region.as_deref());
        profile_region.filter(|_| profile(request).is_some())
    });
    let given = standard.as_ref().map(|standard| standard.region);
    let region = wanted.unwrap_or_else(|| match (regions_of_profile(id), given) {
        (Some(regions), Some(given)) if serves(regions, given) => given,
        (Some(regions), _) => regions.first().copied().unwrap_or(DEFAULT_REGION),
        (None, given) => given.unwrap_or(DEFAULT_REGION),
    });
    if region.is_empty() || !region.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-') {
        let text =
            format!("\"{region}\" is not an AWS region: set AWS_REGION or the option \"region\", e.g. to us-east-1");
        return Err(LlmError::new(request.model.provider.clone(), LlmErrorKind::InvalidRequest, text));
    }
    let named = env.non_empty("AWS_ENDPOINT_URL_BEDROCK_RUNTIME").or_else(|| env.non_empty("AWS_ENDPOINT_URL"));
    let url = match (standard, named) {
        // A record without an address means Amazon's own.
        (None, _) if !base.is_empty() => base.to_owned(),
        (_, Some(named)) => named.trim_end_matches('/').to_owned(),
        (Some(standard), None) if standard.region == region => base.to_owned(),
        (standard, None) => {
            let fips = if standard.is_some_and(|standard| standard.is_fips) { "-fips" } else { "" };
            let china = if region.starts_with("cn-") { ".cn" } else { "" };
            format!("https://bedrock-runtime{fips}.{region}.amazonaws.com{china}")
        }
    };
    Ok(Endpoint { url, region: region.to_owned() })
}

/// Amazon's standard address of a region.
struct Standard<'a> {
    region: &'a str,
    is_fips: bool,
}

fn standard_host(url: &str) -> Option<Standard<'_>> {
    let host = url_parts::host(url);
    let middle = host.strip_prefix("bedrock-runtime")?;
    let (is_fips, middle) = middle.strip_prefix("-fips").map_or((false, middle), |rest| (true, rest));
    let middle = middle.strip_prefix('.')?;
    let region = middle.strip_suffix(".amazonaws.com").or_else(|| middle.strip_suffix(".amazonaws.com.cn"))?;
    // Find it in the original URL, from which it can be borrowed.
    let at = url.to_ascii_lowercase().find(region)?;
    let is_region = region.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') && !region.is_empty();
    is_region.then(|| Standard { region: &url[at..at + region.len()], is_fips })
}

/// Returns the region in `arn:PARTITION:bedrock:REGION:…`.
fn arn_region(id: &str) -> Option<&str> {
    let mut parts = id.strip_prefix("arn:")?.split(':');
    let (_partition, service, region) = (parts.next()?, parts.next()?, parts.next()?);
    (service == "bedrock" && !region.is_empty()).then_some(region)
}

fn regions_of_profile(id: &str) -> Option<&'static [&'static str]> {
    PROFILES.iter().find(|(prefix, _)| id.starts_with(prefix)).map(|(_, regions)| *regions)
}

fn serves(regions: &[&str], region: &str) -> bool {
    // Government regions start like the other regions of their country.
    let is_gov = region.starts_with("us-gov-");
    regions.iter().any(|known| {
        *known == region
            || (known.ends_with('-') && region.starts_with(known) && is_gov == known.starts_with("us-gov-"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Model;
    use crate::request::{Auth, AwsCredentials, CallOptions, SystemPrompt};
    use pinch_stdx::host::Host;
    use serde_json::{Value, json};
    use std::sync::Arc;

    const US: &str = "https://bedrock-runtime.us-east-1.amazonaws.com";

    fn found(
        id: &str,
        base: &str,
        env: &[(&str, &str)],
        native: Value,
        profile_region: Option<&str>,
    ) -> (String, String) {
        let record = json!({"id": id, "api": "bedrock-converse-stream", "provider": "amazon-bedrock", "baseUrl": base});
        let aws = AwsCredentials { keys: None, region: profile_region.map(str::to_owned) };
        let request = Request {
            model: Arc::new(Model::from_record(&record).unwrap()),
            system: SystemPrompt::default(),
            messages: Vec::new(),
            tools: Arc::default(),
            options: CallOptions { native: native.as_object().unwrap().clone(), ..CallOptions::default() },
            auth: Auth { aws: Some(aws), ..Auth::default() },
            host: Host::builder().env(env.iter().copied().collect()).build(),
        };
        let endpoint = find(&request).unwrap_or_else(|error| Endpoint { url: error.text, region: String::new() });
        (endpoint.url, endpoint.region)
    }

    #[track_caller]
    fn check(id: &str, base: &str, env: &[(&str, &str)], expect: (&str, &str)) {
        let (url, region) = found(id, base, env, json!({}), None);
        assert_eq!((url.as_str(), region.as_str()), expect);
    }

    fn at(region: &str) -> String {
        format!("https://bedrock-runtime.{region}.amazonaws.com")
    }

    #[test]
    fn the_region_is_found_in_order_of_precedence() {
        check("m", US, &[], (US, "us-east-1"));
        check("m", "http://localhost:1/x/", &[], ("http://localhost:1/x", "us-east-1"));
        check("m", "http://localhost:1", &[("AWS_DEFAULT_REGION", "eu-west-3")], ("http://localhost:1", "eu-west-3"));
        let both = [("AWS_REGION", "eu-west-1"), ("AWS_DEFAULT_REGION", "eu-west-3")];
        check("m", US, &both, (&at("eu-west-1"), "eu-west-1"));
        check("m", "", &[], (US, "us-east-1"));
        check("m", US, &[("AWS_REGION", "cn-north-1")], (&(at("cn-north-1") + ".cn"), "cn-north-1"));
        let fips = "https://bedrock-runtime-fips.us-east-1.amazonaws.com";
        check("m", fips, &[("AWS_REGION", "us-west-2")], (&fips.replace("east-1", "west-2"), "us-west-2"));
        let own = [("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", "http://e/"), ("AWS_ENDPOINT_URL", "http://f")];
        check("m", US, &own, ("http://e", "us-east-1"));
    }

    #[test]
    fn names_of_models_choose_a_region() {
        check("eu.anthropic.x", &at("eu-central-1"), &[], (&at("eu-central-1"), "eu-central-1"));
        check("eu.anthropic.x", &at("eu-west-1"), &[], (&at("eu-west-1"), "eu-west-1"));
        check("jp.anthropic.x", US, &[], (&at("ap-northeast-1"), "ap-northeast-1"));
        check("us.anthropic.x", &at("us-gov-west-1"), &[], (US, "us-east-1"));
        check("us-gov.openai.x", US, &[], (&at("us-gov-west-1"), "us-gov-west-1"));
        check("jp.anthropic.x", US, &[("AWS_REGION", "us-west-2")], (&at("us-west-2"), "us-west-2"));
        let arn = "arn:aws:bedrock:eu-north-1:123:application-inference-profile/abc";
        check(arn, US, &[("AWS_REGION", "us-west-2")], (&at("eu-north-1"), "eu-north-1"));
    }

    #[test]
    fn options_take_precedence_over_profiles() {
        let option = json!({"region": "sa-east-1"});
        assert_eq!(found("m", US, &[("AWS_REGION", "us-west-2")], option, None).1, "sa-east-1");
        assert_eq!(found("m", US, &[("AWS_PROFILE", "p")], json!({}), Some("eu-west-2")).0, at("eu-west-2"));
        assert_eq!(found("m", US, &[], json!({"profile": "p"}), Some("eu-west-2")).1, "eu-west-2");
        assert_eq!(found("m", &at("us-west-2"), &[("AWS_PROFILE", "p")], json!({}), None).1, "us-west-2");
        let (text, _) = found("m", US, &[("AWS_REGION", "evil.example/")], json!({}), None);
        assert!(text.contains("is not an AWS region"), "{text}");
    }
}
