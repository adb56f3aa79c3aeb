//! Sources of AWS credentials.

use std::path::Path;
use std::sync::Arc;

use pinch_llm::cloud::AmbientCredentials;
use pinch_llm::cloud::aws::AwsChain;
use pinch_llm::error::LlmError;
use pinch_llm::http::HttpClient;
use pinch_llm::request::{Auth, Request};
use pinch_llm::stdx::host::Host;
use pinch_testing::server::{Gate, Server, ServerReply};
use serde_json::json;

use crate::support::{model_with, request};

const NOW: i64 = 1_700_000_000_000;

/// A user with an AWS directory.
struct AwsUser(tempfile::TempDir);

impl AwsUser {
    fn new(config: &str, credentials: &str) -> Self {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(home.path().join(".aws/sso/cache")).unwrap();
        std::fs::write(home.path().join(".aws/config"), config).unwrap();
        std::fs::write(home.path().join(".aws/credentials"), credentials).unwrap();
        Self(home)
    }

    fn ask(&self, env: &[(&str, &str)]) -> Request {
        ask_at(Some(self.0.path()), env, NOW)
    }
}

fn ask_at(home: Option<&Path>, env: &[(&str, &str)], now: i64) -> Request {
    let model = model_with("bedrock-converse-stream", "http://localhost", json!({"provider": "amazon-bedrock"}));
    let mut request = request(model);
    request.auth = Auth::default();
    // Do not call a real machine's services.
    let quiet = [("AWS_EC2_METADATA_DISABLED", "true"), ("PATH", "/usr/bin:/bin")];
    let env: pinch_llm::stdx::host::Env = quiet.iter().chain(env).copied().collect();
    let host = Host::builder().clock(now, 0).env(env);
    request.host = match home {
        Some(home) => host.home(home).build(),
        None => host.build(),
    };
    request
}

async fn resolve(chain: &AwsChain, request: &Request) -> Result<Option<Auth>, LlmError> {
    chain.resolve(request, &HttpClient::new()).await
}

/// Returns the id of the key that is found, with its region.
async fn found(request: &Request) -> String {
    in_words(resolve(&AwsChain::new(), request).await)
}

fn in_words(found: Result<Option<Auth>, LlmError>) -> String {
    match found {
        Ok(Some(auth)) => {
            let aws = auth.aws.unwrap();
            let keys = aws.keys.map_or_else(String::new, |keys| {
                let token = keys.session_token.map_or_else(String::new, |token| format!("+{}", token.reveal()));
                format!("{}/{}{token}", keys.access_key_id, keys.secret_access_key.reveal())
            });
            format!("{keys} {}", aws.region.unwrap_or_default())
        }
        Ok(None) => "none".into(),
        Err(error) => error.text,
    }
}

const ENV_KEYS: [(&str, &str); 3] =
    [("AWS_ACCESS_KEY_ID", "ENV"), ("AWS_SECRET_ACCESS_KEY", "es"), ("AWS_SESSION_TOKEN", "et")];

#[tokio::test]
async fn credentials_come_from_variables_and_files() {
    let user = AwsUser::new(
        "[default]\nregion=us-west-2\n[profile p]\nregion=eu-west-1\n[profile empty]\n",
        "[default]\naws_access_key_id=D\naws_secret_access_key=ds\n[p]\naws_access_key_id=P\naws_secret_access_key=ps\n",
    );
    assert_eq!(found(&user.ask(&ENV_KEYS)).await, "ENV/es+et ");
    assert_eq!(found(&user.ask(&[])).await, "D/ds us-west-2");
    let named = [ENV_KEYS.to_vec(), vec![("AWS_PROFILE", "p")]].concat();
    assert_eq!(found(&user.ask(&named)).await, "P/ps eu-west-1", "a named profile beats keys that lie about");
    let mut by_option = user.ask(&ENV_KEYS);
    by_option.options.native = json!({"profile": "p"}).as_object().unwrap().clone();
    assert_eq!(found(&by_option).await, "P/ps eu-west-1");
    assert_eq!(found(&user.ask(&[("AWS_PROFILE", "p"), ("AWS_BEARER_TOKEN_BEDROCK", "t")])).await, " eu-west-1");
    assert_eq!(found(&user.ask(&[("AWS_PROFILE", "empty")])).await, "none");
    let missing = found(&user.ask(&[("AWS_PROFILE", "q")])).await;
    assert!(missing.contains("AWS profile \"q\" is not in ") && missing.contains(".aws/config"), "{missing}");
    assert_eq!(found(&ask_at(None, &[], NOW)).await, "none");
}

#[tokio::test]
async fn keys_in_files_are_reread() {
    let user = AwsUser::new("", "[default]\naws_access_key_id=A\naws_secret_access_key=s\n");
    let chain = AwsChain::new();
    let request = user.ask(&[]);
    assert_eq!(in_words(resolve(&chain, &request).await), "A/s ");
    let rotated = "[default]\naws_access_key_id=B\naws_secret_access_key=s\n";
    std::fs::write(user.0.path().join(".aws/credentials"), rotated).unwrap();
    assert_eq!(in_words(resolve(&chain, &request).await), "B/s ");
}

#[cfg(unix)]
#[tokio::test]
async fn credentials_come_from_a_credential_process() {
    let printed = r#"{"Version":1,"AccessKeyId":"C","SecretAccessKey":"cs","SessionToken":"ct","Expiration":"2023-11-14T23:13:20Z"}"#;
    let config = format!(
        "[profile good]\ncredential_process = echo x >> ran; echo '{printed}'\n\
         [profile bad]\ncredential_process = echo SECRET; exit 3\n[profile odd]\ncredential_process = echo SECRET\n"
    );
    let user = AwsUser::new(&config, "");
    let chain = AwsChain::new();
    let good = user.ask(&[("AWS_PROFILE", "good")]);
    assert_eq!(in_words(resolve(&chain, &good).await), "C/cs+ct ");
    assert_eq!(in_words(resolve(&chain, &good).await), "C/cs+ct ");
    let n_runs = || std::fs::read_to_string(user.0.path().join("ran")).unwrap().lines().count();
    assert_eq!(n_runs(), 1, "kept");
    let later = ask_at(Some(user.0.path()), &[("AWS_PROFILE", "good")], NOW + 56 * 60_000);
    assert_eq!(in_words(resolve(&chain, &later).await), "C/cs+ct ");
    assert_eq!(n_runs(), 2, "five minutes before its end it is fetched anew");
    let bad = found(&user.ask(&[("AWS_PROFILE", "bad")])).await;
    assert!(bad.contains("profile \"bad\"") && bad.contains("status 3") && !bad.contains("SECRET"), "{bad}");
    let odd = found(&user.ask(&[("AWS_PROFILE", "odd")])).await;
    assert!(odd.contains("printed no credentials") && !odd.contains("SECRET"), "{odd}");
}

fn sts(name: &str, end: &str) -> ServerReply {
    let xml = format!(
        "<R><Credentials><AccessKeyId>{name}</AccessKeyId><SecretAccessKey>s</SecretAccessKey>\
         <SessionToken>t</SessionToken><Expiration>{end}</Expiration></Credentials></R>"
    );
    ServerReply::status(200).header("content-type", "text/xml").send(xml)
}

#[tokio::test]
async fn roles_are_assumed() {
    let server = Server::start().await.unwrap();
    let url = server.url();
    let user = AwsUser::new(
        "[profile r]\nrole_arn=arn:aws:iam::1:role/x\nsource_profile=s\nexternal_id=e e\nregion=eu-west-1\n\
         [profile r2]\nrole_arn=arn:2\nsource_profile=r2\naws_access_key_id=OWN\naws_secret_access_key=s\n\
         [profile loop]\nrole_arn=arn:3\nsource_profile=loop2\n[profile loop2]\nrole_arn=arn:4\nsource_profile=loop\n\
         [profile mfa]\nrole_arn=arn:5\nsource_profile=s\nmfa_serial=m\n[profile lone]\nrole_arn=arn:6\nsource_profile=nobody\n\
         [profile src]\nrole_arn=arn:7\ncredential_source=Moon\n[profile login]\nlogin_session=x\n",
        "[s]\naws_access_key_id=SRC\naws_secret_access_key=ss\n",
    );
    let with = |profile: &'static str| user.ask(&[("AWS_PROFILE", profile), ("AWS_ENDPOINT_URL_STS", url.as_str())]);
    server.reply(sts("ROLE", "2023-11-14T23:13:20Z")).reply(sts("SELF", "2023-11-14T23:13:20Z"));
    assert_eq!(found(&with("r")).await, "ROLE/s+t eu-west-1");
    assert_eq!(found(&with("r2")).await, "SELF/s+t ");
    let asked = server.requests();
    let form = String::from_utf8(asked[0].body.clone()).unwrap();
    assert!(
        form.contains("Action=AssumeRole&") && form.contains("RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fx"),
        "{form}"
    );
    assert!(form.contains("ExternalId=e%20e"), "{form}");
    let signed = asked[0].header("authorization").unwrap();
    assert!(signed.contains("Credential=SRC/20231114/eu-west-1/sts/aws4_request"), "{signed}");
    assert!(asked[1].header("authorization").unwrap().contains("Credential=OWN/"));
    for (profile, words) in [
        ("loop", "Break the circle"),
        ("mfa", "mfa_serial"),
        ("lone", "\"nobody\" is not there"),
        ("src", "\"Moon\" is not known"),
        ("login", "`aws login`"),
    ] {
        let text = found(&with(profile)).await;
        assert!(text.contains(words) && text.contains(".aws/config"), "{profile}: {text}");
    }
    let refused = "<ErrorResponse><Error><Code>AccessDenied</Code><Message>not you</Message></Error></ErrorResponse>";
    server.reply(ServerReply::status(403).send(refused));
    assert_eq!(found(&with("r")).await, "AWS STS refused to give credentials: 403 AccessDenied not you");
}

#[tokio::test]
async fn web_identity_tokens_are_exchanged() {
    let server = Server::start().await.unwrap();
    let user = AwsUser::new("", "");
    let token = user.0.path().join("token");
    std::fs::write(&token, "jwt\n").unwrap();
    let url = server.url();
    let env = [
        ("AWS_WEB_IDENTITY_TOKEN_FILE", token.to_str().unwrap()),
        ("AWS_ROLE_ARN", "arn:r"),
        ("AWS_ENDPOINT_URL_STS", &url),
    ];
    server.reply(sts("WEB", "2023-11-14T23:13:20Z"));
    assert_eq!(found(&user.ask(&env)).await, "WEB/s+t ");
    let asked = server.requests().remove(0);
    let form = String::from_utf8(asked.body.clone()).unwrap();
    assert!(form.contains("WebIdentityToken=jwt") && asked.header("authorization").is_none(), "{form}");
    std::fs::remove_file(&token).unwrap();
    assert!(found(&user.ask(&env)).await.contains("is missing or empty"));
}

#[tokio::test]
async fn sso_logins_are_used() {
    let server = Server::start().await.unwrap();
    let url = server.url();
    let user = AwsUser::new(
        "[profile s]\nsso_session=corp\nsso_account_id=1\nsso_role_name=Dev\n[profile half]\nsso_session=corp\n\
         [sso-session corp]\nsso_start_url=https://corp/start/\nsso_region=eu-west-1\n",
        "",
    );
    let env = [("AWS_PROFILE", "s"), ("AWS_ENDPOINT_URL_SSO", url.as_str())];
    let cache = |file: &str, end: &str| {
        let token = json!({"startUrl": "https://corp/start", "accessToken": format!("tok-{file}"), "expiresAt": end});
        std::fs::write(user.0.path().join(".aws/sso/cache").join(file), token.to_string()).unwrap();
    };
    cache("old.json", "2023-11-14T22:00:00Z");
    let text = found(&user.ask(&env)).await;
    assert!(text.contains("aws sso login --profile s"), "{text}");
    cache("new.json", "2023-11-15T22:00:00UTC");
    let given =
        json!({"accessKeyId": "SSO", "secretAccessKey": "s", "sessionToken": "t", "expiration": NOW + 3_600_000});
    server.reply(ServerReply::json(200, &json!({"roleCredentials": given})));
    assert_eq!(found(&user.ask(&env)).await, "SSO/s+t ");
    let asked = server.requests().remove(0);
    assert_eq!(asked.path, "/federation/credentials?account_id=1&role_name=Dev");
    assert_eq!(asked.header("x-amz-sso_bearer_token"), Some("tok-new.json"));
    server.reply(ServerReply::json(401, &json!({})));
    assert!(found(&user.ask(&env)).await.contains("aws sso login"));
    assert!(found(&user.ask(&[("AWS_PROFILE", "half")])).await.contains("sso_account_id is missing"));
}

fn agent(name: &str, minutes: i64) -> ServerReply {
    let end = pinch_llm::stdx::host::iso_from_ms(NOW + minutes * 60_000);
    ServerReply::json(200, &json!({"AccessKeyId": name, "SecretAccessKey": "s", "Token": "t", "Expiration": end}))
}

#[tokio::test]
async fn containers_and_machines_provide_credentials() {
    let server = Server::start().await.unwrap();
    let url = format!("{}/creds", server.url());
    let proxy = ("HTTP_PROXY", "http://127.0.0.1:1");
    let env =
        [("AWS_CONTAINER_CREDENTIALS_FULL_URI", url.as_str()), ("AWS_CONTAINER_AUTHORIZATION_TOKEN", "tok"), proxy];
    server.reply(agent("BOX", 60));
    assert_eq!(found(&ask_at(None, &env, NOW)).await, "BOX/s+t ");
    assert_eq!(server.requests()[0].header("authorization"), Some("tok"));
    let far = [("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://far.test/creds")];
    assert!(found(&ask_at(None, &far, NOW)).await.contains("must be https"));

    let machine = Server::start().await.unwrap();
    let url = machine.url();
    machine
        .reply(ServerReply::status(200).send("imds-token"))
        .reply(ServerReply::status(200).send("role x\n"))
        .reply(agent("EC2", 60));
    let env = [("AWS_EC2_METADATA_DISABLED", "false"), ("AWS_EC2_METADATA_SERVICE_ENDPOINT", url.as_str()), proxy];
    assert_eq!(found(&ask_at(None, &env, NOW)).await, "EC2/s+t ");
    let asked = machine.requests();
    assert_eq!((asked[0].method.as_str(), asked[0].path.as_str()), ("PUT", "/latest/api/token"));
    assert_eq!(asked[1].header("x-aws-ec2-metadata-token"), Some("imds-token"));
    assert_eq!(asked[2].path, "/latest/meta-data/iam/security-credentials/role%20x");
}

#[tokio::test]
async fn concurrent_calls_fetch_once() {
    let server = Server::start().await.unwrap();
    let url = server.url();
    let gate = Gate::new();
    let held = json!({"AccessKeyId": "K", "SecretAccessKey": "s", "Expiration": "2023-11-14T23:13:20Z"});
    server.reply(ServerReply::status(200).gate(&gate).send(held.to_string()));
    let env = [("AWS_CONTAINER_CREDENTIALS_FULL_URI", url.as_str())];
    let chain = Arc::new(AwsChain::new());
    let requests: Vec<Request> = (0..8).map(|_| ask_at(None, &env, NOW)).collect();
    let calls = futures::future::join_all(requests.iter().map(|request| resolve(&chain, request)));
    let (found, ()) = tokio::join!(calls, async {
        server.wait_for_requests(1).await;
        gate.open();
    });
    assert!(found.into_iter().all(|found| in_words(found) == "K/s "));
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn old_credentials_are_used_while_new_ones_are_unavailable() {
    let server = Server::start().await.unwrap();
    let url = server.url();
    server.reply(agent("OLD", 60)).reply(ServerReply::status(500)).reply(ServerReply::status(500));
    let env = [("AWS_CONTAINER_CREDENTIALS_FULL_URI", url.as_str())];
    let chain = AwsChain::new();
    let at = |minutes: i64| ask_at(None, &env, NOW + minutes * 60_000);
    assert_eq!(in_words(resolve(&chain, &at(0)).await), "OLD/s+t ");
    assert_eq!(in_words(resolve(&chain, &at(57)).await), "OLD/s+t ");
    assert_eq!(in_words(resolve(&chain, &at(61)).await), "the container's credentials service gave none (500)");
}

#[test]
fn debug_output_shows_no_secrets() {
    let keys = pinch_llm::request::AwsKeys {
        access_key_id: "AK".into(),
        secret_access_key: "hidden".into(),
        session_token: Some("hidden".into()),
    };
    let aws = pinch_llm::request::AwsCredentials { keys: Some(keys), region: None };
    let shown = format!("{:?}", Auth::default().with_aws(aws));
    assert!(shown.contains("AK") && !shown.contains("hidden"), "{shown}");
}
