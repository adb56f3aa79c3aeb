//! The floor of [`many`](super::many): reading the same streams and doing nothing else. No program that reads each delta when it arrives can
//! handle more of them on this machine.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, bail};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::steady::{RATE, raise_file_limit};
use crate::bench::process;

/// Number of streams that are read.
const N: usize = 600;

/// Duration of a measurement.
pub(super) const WATCHED: Duration = Duration::from_secs(4);

/// Starts the measured process and returns the largest number of streams that can be read on this share of a core.
pub(super) fn most(url: &str, cores: f64) -> anyhow::Result<f64> {
    let output = Command::new(std::env::current_exe()?).args(["bench", "--bare", "--server", url]).output()?;
    let line = String::from_utf8_lossy(&output.stdout);
    let Ok(microseconds) = line.trim().parse::<f64>() else {
        bail!("reading the streams failed: {}", String::from_utf8_lossy(&output.stderr));
    };
    Ok(cores * 1e6 / microseconds / RATE as f64)
}

/// The measured process: runs on a single thread, and prints the processor time per delta in microseconds.
pub(in crate::bench) fn run(url: &str) -> anyhow::Result<()> {
    raise_file_limit();
    let address = url.strip_prefix("http://").context("no address of a server")?.to_owned();
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
        let n_read = Arc::new(AtomicUsize::new(0));
        let mut streams = JoinSet::new();
        for at in 0..N {
            streams.spawn(read(address.clone(), Arc::clone(&n_read)));
            if at % 20 == 19 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        let (before, used) = (n_read.load(Ordering::Relaxed), process::used_ms());
        tokio::time::sleep(WATCHED).await;
        let used = process::used_ms() - used;
        let n = n_read.load(Ordering::Relaxed) - before;
        anyhow::ensure!(n > 0, "nothing was read");
        println!("{:.3}", used * 1e3 / n as f64);
        streams.abort_all();
        anyhow::Ok(())
    })
}

async fn read(address: String, n_read: Arc<AtomicUsize>) -> std::io::Result<()> {
    let mut stream = TcpStream::connect(&address).await?;
    stream.write_all(b"POST / HTTP/1.1\r\nhost: bench\r\ncontent-length: 2\r\n\r\n{}").await?;
    let mut piece = [0; 4096];
    while stream.read(&mut piece).await? > 0 {
        n_read.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}
