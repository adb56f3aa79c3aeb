//! The guide for a user without a model.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use pinch_coding_agent::models::local_servers::{LOCAL_SERVERS, LocalServer};
use pinch_coding_agent::services::Services;
use pinch_stdx::cancel::Cancel;
use pinch_stdx::host::Host;

use super::bridge::TerminalUi;
use super::console::Console;
use super::{InteractiveOptions, login, open_console};
use crate::dialog::{DialogNews, FirstLoginDialog};
use crate::effect::Effect;
use crate::terminal::DeviceError;

/// Time between two searches for a model server on this machine.
const SEARCH_INTERVAL: Duration = Duration::from_secs(2);
/// How long a search waits for a server. Servers are slow while they load a model.
const SEARCH_LIMIT: Duration = Duration::from_secs(10);

/// How the guide ended.
#[derive(Debug)]
pub enum FirstLogin {
    /// The user logged in to a provider.
    LoggedIn,
    /// The user chose a model server on this machine.
    LocalServer(LocalServer),
    /// The user left.
    Left,
}

/// Searches for model servers on this machine, again and again.
struct ServerSearch {
    host: Host,
    /// The answer of each server to the last request.
    found: [Option<LocalServer>; LOCAL_SERVERS.len()],
    /// A wait and a request for each server; empty: there are no searches.
    work: FuturesUnordered<BoxFuture<'static, (usize, Option<LocalServer>)>>,
}

impl ServerSearch {
    fn new(host: Host, is_offline: bool) -> Self {
        let search = Self { host, found: Default::default(), work: FuturesUnordered::new() };
        if !is_offline {
            (0..LOCAL_SERVERS.len()).for_each(|at| search.begin(at, Duration::ZERO));
        }
        search
    }

    fn begin(&self, at: usize, wait: Duration) {
        let host = self.host.clone();
        self.work.push(Box::pin(async move {
            tokio::time::sleep(wait).await;
            (at, LocalServer::probe(&host, LOCAL_SERVERS[at], SEARCH_LIMIT).await)
        }));
    }

    /// Waits until other servers or models are there than before. Cancel-safe: dropping the future loses nothing.
    async fn changed(&mut self) {
        while let Some((at, server)) = self.work.next().await {
            self.begin(at, SEARCH_INTERVAL);
            let n_models = |server: &Option<LocalServer>| server.as_ref().map(|server| server.models.len());
            let is_news = n_models(&server) != n_models(&self.found[at]);
            self.found[at] = server;
            if is_news {
                return;
            }
        }
        std::future::pending().await
    }

    fn servers(&self) -> Vec<LocalServer> {
        self.found.iter().flatten().cloned().collect()
    }
}

/// Offers a user without a model the providers to log in to, and the model servers that run on this machine. Servers that start meanwhile
/// are added.
///
/// # Errors
/// If the terminal cannot be used.
pub async fn first_login(
    options: InteractiveOptions,
    services: &Arc<Services>,
    stop: &Cancel,
) -> Result<FirstLogin, DeviceError> {
    let mut servers = ServerSearch::new(options.host.clone(), options.offline);
    let mut console = open_console(options, &TerminalUi::new()).await?;
    console.app.welcome();
    open(&mut console, services, &servers).await;
    let done = loop {
        tokio::select! {
            event = console.next() => console.handle(event).await,
            () = servers.changed() => {
                console.app.tell_dialog(DialogNews::LocalServers(servers.servers()));
                console.front.mark();
            }
            _ = stop.cancelled() => console.exiting = true,
        }
        match console.postponed.pop_front() {
            Some(Effect::Login(provider)) => {
                if login::log_in(&mut console, services, &provider, stop).await {
                    break FirstLogin::LoggedIn;
                }
                open(&mut console, services, &servers).await;
            }
            Some(Effect::UseLocalServer(base_url)) => {
                let chosen = servers.servers().into_iter().find(|server| server.base_url == base_url);
                if let Some(server) = chosen {
                    break FirstLogin::LocalServer(server);
                }
                open(&mut console, services, &servers).await;
            }
            _ => {}
        }
        if console.exiting || !console.app.has_dialog() {
            break FirstLogin::Left;
        }
    };
    console.leave(&[]);
    Ok(done)
}

async fn open(console: &mut Console, services: &Arc<Services>, servers: &ServerSearch) {
    let providers = login::providers(services, false).await;
    console.app.open(Box::new(FirstLoginDialog::new(providers, &servers.servers())));
}
