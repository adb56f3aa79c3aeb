//! Prints the body of a URL as it arrives, and gives up after ten seconds without data.
//!
//! ```sh
//! cargo run -p pinch-http --example fetch -- https://example.com/
//! ```

use std::io::Write as _;
use std::time::Duration;

use pinch_http::idle::Watch;
use pinch_http::{HttpClient, Outgoing, Timeouts};
use pinch_stdx::cancel::Cancel;
use pinch_stdx::host::Host;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::args().nth(1).ok_or("usage: fetch URL")?;
    let (cancel, limit) = (Cancel::new(), Some(Duration::from_secs(10)));
    let timeouts = Timeouts::default().with_headers(limit).with_first_content(limit).with_idle(limit);
    let mut watch = Watch::start(timeouts);

    // The environment names proxies.
    let (client, env) = (HttpClient::new(), Host::system().env().clone());
    let request = client.send(Outgoing::get(url, http::HeaderMap::new()), &env, watch.connect());
    let mut answer = watch.for_headers(&cancel, request).await.map_err(|end| format!("no answer: {end:?}"))??;
    writeln!(std::io::stderr(), "{}", answer.status())?;
    watch.headers_arrived();
    while let Some(chunk) =
        watch.for_body(&cancel, answer.chunk()).await.map_err(|end| format!("the body stopped: {end:?}"))??
    {
        watch.content_arrived();
        std::io::stdout().write_all(&chunk)?;
    }
    Ok(())
}
