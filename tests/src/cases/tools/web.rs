//! `ssrf`, `external-content`, `html-markdown`, `web-search`.

use pinch_tools::web::address::{check_address, check_host};
use pinch_tools::web::external::{ExternalSource, wrap_external};
use pinch_tools::web::{freshness as period, html};
use serde_json::{Value, json};

use super::super::Case;
use super::only;

pub(super) fn address(input: &Value, _: &Case<'_>) -> Result<Value, String> {
    only(input, &["address", "hostname"])?;
    let blocked = match (input["address"].as_str(), input["hostname"].as_str()) {
        (Some(address), _) => match address.parse() {
            Ok(address) => check_address(address).is_err(),
            Err(_) => check_host(address).is_err(),
        },
        (None, Some(host)) => check_host(host).is_err(),
        (None, None) => return Err("neither an address nor a host".to_owned()),
    };
    Ok(json!({"blocked": blocked}))
}

pub(super) fn external(input: &Value, _: &Case<'_>) -> Result<Value, String> {
    only(input, &["content", "source"])?;
    let source = ExternalSource::parse(input["source"].as_str().unwrap_or_default());
    Ok(json!({"text": wrap_external(input["content"].as_str().ok_or("no content")?, source)}))
}

pub(super) fn page(input: &Value, _: &Case<'_>) -> Result<Value, String> {
    only(input, &["html"])?;
    let page = html::to_markdown(input["html"].as_str().ok_or("no page")?);
    Ok(json!({"text": page.text, "title": page.title}))
}

pub(super) fn freshness(input: &Value, _: &Case<'_>) -> Result<Value, String> {
    only(input, &["freshness"])?;
    Ok(json!({"normalized": period::normalized(input["freshness"].as_str().unwrap_or_default())}))
}
