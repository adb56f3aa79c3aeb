//! A real HTTP/1.1 server on the loopback interface for tests.
//!
//! It answers from a script, holds responses back until the test opens a [`Gate`], breaks off where the script says so, and records
//! requests. A request that the script does not expect gets status 500 and makes the test fail when the server is dropped.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! use pinch_testing::server::{Gate, ServerReply, Server};
//!
//! let server = Server::start().await.unwrap();
//! let gate = Gate::new();
//! server.reply(ServerReply::sse("data: 1\n\n").gate(&gate).send("data: 2\n\n"));
//! let url = server.url(); // the code under test sends its request here, and gets the second event after this:
//! gate.open();
//! # });
//! ```

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinSet;

pub mod faults;
pub mod gate;
pub mod record;
pub mod forward;
#[cfg(feature = "socket")]
pub mod socket;
pub mod script;

pub use faults::Fault;
pub use forward::{Exchange, Upstream};
pub use gate::Gate;
pub use record::Recorded;
pub use script::ServerReply;

/// A server that runs until it is dropped.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    shared: Arc<ServerShared>,
    /// Accepts connections; aborted when dropped.
    _tasks: JoinSet<()>,
}

type Responder = dyn Fn(&Recorded) -> Option<ServerReply> + Send + Sync;

#[derive(Default)]
struct ServerShared {
    state: Mutex<ServerState>,
    asked: Notify,
}

#[derive(Default)]
struct ServerState {
    script: VecDeque<ServerReply>,
    /// Whether the last reply of the script is repeated.
    repeats: bool,
    answer: Option<Arc<Responder>>,
    requests: Vec<Recorded>,
    unforeseen: Vec<String>,
}

impl std::fmt::Debug for ServerShared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("n_requests", &self.lock().requests.len()).finish_non_exhaustive()
    }
}

impl ServerShared {
    fn lock(&self) -> MutexGuard<'_, ServerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a request and finds its reply.
    fn ask(&self, request: Recorded) -> ServerReply {
        let mut state = self.lock();
        let answer = state.answer.clone();
        let scripted = if state.repeats && state.script.len() == 1 {
            state.script.front().cloned()
        } else {
            state.script.pop_front()
        };
        state.requests.push(request.clone());
        drop(state);
        // The closure runs without the lock, because it may inspect the server.
        let reply = scripted.or_else(|| answer.and_then(|answer| answer(&request)));
        let reply = reply.unwrap_or_else(|| {
            let what = format!("{} {}", request.method, request.path);
            let text = format!("the test foresees no request {what}");
            self.lock().unforeseen.push(what);
            ServerReply::status(500).send(text)
        });
        self.asked.notify_waiters();
        reply
    }
}

impl Server {
    /// Starts a server on a free port.
    ///
    /// # Errors
    /// Returns an error if no port can be bound.
    pub async fn start() -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(ServerShared::default());
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, Arc::clone(&shared)));
        Ok(Self { address, shared, _tasks: tasks })
    }

    /// Returns the server's URL without a trailing slash.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the port.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Adds the reply to the next request without one.
    pub fn reply(&self, reply: ServerReply) -> &Self {
        self.shared.lock().script.push_back(reply);
        self
    }

    /// Repeats the last reply of the script.
    pub fn repeat_last(&self) -> &Self {
        self.shared.lock().repeats = true;
        self
    }

    /// Sets a function that answers requests once the script is empty; `None` makes the request unexpected.
    pub fn answer_with(&self, answer: impl Fn(&Recorded) -> Option<ServerReply> + Send + Sync + 'static) -> &Self {
        self.shared.lock().answer = Some(Arc::new(answer));
        self
    }

    /// Returns all requests so far, in order of arrival.
    pub fn requests(&self) -> Vec<Recorded> {
        self.shared.lock().requests.clone()
    }

    /// Waits until there have been `n` requests.
    pub async fn wait_for_requests(&self, n: usize) {
        loop {
            let asked = self.shared.asked.notified();
            if self.shared.lock().requests.len() >= n {
                return;
            }
            asked.await;
        }
    }

    /// Takes the unforeseen requests out, for a test that provokes them.
    pub fn take_unexpected(&self) -> Vec<String> {
        std::mem::take(&mut self.shared.lock().unforeseen)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let unforeseen = self.take_unexpected();
        assert!(unforeseen.is_empty() || std::thread::panicking(), "requests without a reply: {unforeseen:?}");
    }
}

async fn accept(listener: TcpListener, shared: Arc<ServerShared>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => drop(connections.spawn(serve(stream, Arc::clone(&shared)))),
                Err(_) => return,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Serves one connection until either side ends it.
async fn serve(mut stream: TcpStream, shared: Arc<ServerShared>) {
    // Without this, small chunks would be delayed. A socket without support for it works anyway.
    let _result = stream.set_nodelay(true);
    let mut buffer = Vec::new();
    while let Ok(Some(request)) = record::read_request(&mut stream, &mut buffer).await {
        #[cfg(feature = "socket")]
        let key = request.header("sec-websocket-key").map(str::to_owned);
        let reply = shared.ask(request);
        #[cfg(feature = "socket")]
        if let (Some(script), Some(key)) = (reply.socket.clone(), key) {
            // A client that disconnects ends it, too.
            let _result = socket::play(&mut stream, &key, script).await;
            return;
        }
        if !matches!(script::play(&mut stream, reply).await, Ok(script::ConnectionEnd::KeepAlive)) {
            return;
        }
    }
}
