//! The way out for one command.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::net::unix::pipe;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::namespace::listen_in;
use super::proxy::serve;
use crate::domains::DomainList;

/// Port of the proxy, as commands see it.
const PORT: u16 = 3128;
/// How long the start of a command may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// Delay before the loopback interface is tried again.
const SETUP_PAUSE: Duration = Duration::from_millis(2);
/// Maximum bytes that `bwrap` reports.
const MAX_REPORT: u64 = 16 * 1024;
/// Servers that commands reach without the proxy: those that they start themselves.
const DIRECT: &str = "localhost,127.0.0.1,::1";

/// Holds back a command of `bwrap` until its proxy listens in its network namespace.
///
/// `bwrap` reports the command's process to one pipe and waits for another. If this process ends first, the command starts without a proxy,
/// and reaches nothing.
pub(crate) struct EgressGate {
    list: Arc<DomainList>,
    dir: TempDir,
    report: pipe::Receiver,
    release: pipe::Sender,
}

/// The proxy of a command. Dropping it closes all connections.
pub(crate) struct EgressProxy(#[expect(dead_code, reason = "ends the proxy when it is dropped")] JoinSet<()>);

impl EgressGate {
    /// Creates the pipes for a command.
    ///
    /// # Errors
    /// Returns the error of creating them.
    pub(crate) fn new(list: Arc<DomainList>) -> io::Result<Self> {
        let dir = tempfile::tempdir()?;
        for name in ["report", "release"] {
            mknodat(CWD, dir.path().join(name), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
        }
        let report = pipe::OpenOptions::new().open_receiver(dir.path().join("report"))?;
        let release = pipe::OpenOptions::new().read_write(true).open_sender(dir.path().join("release"))?;
        Ok(Self { list, dir, report, release })
    }

    /// Returns the path of the pipe that `bwrap` reports to.
    pub(crate) fn report(&self) -> PathBuf {
        self.path("report")
    }

    /// Returns the path of the pipe that `bwrap` waits for.
    pub(crate) fn release(&self) -> PathBuf {
        self.path("release")
    }

    fn path(&self, name: &str) -> PathBuf {
        Path::new(self.dir.path()).join(name)
    }

    /// Makes programs use the proxy.
    pub(crate) fn set_variables(env: &mut Vec<(String, String)>) {
        env.retain(|(name, _)| {
            let name = name.to_lowercase();
            !matches!(name.as_str(), "http_proxy" | "https_proxy" | "all_proxy" | "ftp_proxy" | "no_proxy")
        });
        let proxy = format!("http://127.0.0.1:{PORT}");
        let mut set = |name: &str, value: &str| env.push((name.to_owned(), value.to_owned()));
        for name in ["http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"] {
            set(name, &proxy);
        }
        set("no_proxy", DIRECT);
        set("NO_PROXY", DIRECT);
        // Node.js ignores the others without it.
        set("NODE_USE_ENV_PROXY", "1");
    }

    /// Starts the proxy of a command that has just been started, and lets it run. Returns `None` if the command has failed to start, which
    /// its own output explains.
    ///
    /// # Errors
    /// Fails if the proxy cannot be started; the command must then be stopped.
    pub(crate) async fn open(mut self) -> io::Result<Option<EgressProxy>> {
        let Some(process) = timeout(PATIENCE, reported_process(&mut self.report)).await?? else { return Ok(None) };
        let listener = timeout(PATIENCE, listener_of(process)).await??;
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        let mut proxy = JoinSet::new();
        proxy.spawn(serve(listener, self.list));
        self.release.write_all(b"x").await?;
        Ok(Some(EgressProxy(proxy)))
    }
}

/// Opens the listening socket of the proxy.
async fn listener_of(process: u32) -> io::Result<std::net::TcpListener> {
    loop {
        let listening =
            tokio::task::spawn_blocking(move || listen_in(process, PORT)).await.map_err(io::Error::other)?;
        match listening {
            // `bwrap` reports the process before it has set up the loopback interface.
            Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable => sleep(SETUP_PAUSE).await,
            done => return done,
        }
    }
}

/// Reads the process id from the report of `bwrap`.
async fn reported_process(report: &mut pipe::Receiver) -> io::Result<Option<u32>> {
    // Without this, reading before `bwrap` has opened the pipe would look like its end.
    report.readable().await?;
    let mut text = Vec::new();
    let mut limited = report.take(MAX_REPORT);
    loop {
        if limited.read_buf(&mut text).await? == 0 {
            return Ok(None);
        }
        if let Ok(report) = serde_json::from_slice::<Value>(&text) {
            let process = report["child-pid"].as_u64().and_then(|process| u32::try_from(process).ok());
            return process.map(Some).ok_or_else(|| io::Error::other("bwrap does not report the command's process"));
        }
    }
}
