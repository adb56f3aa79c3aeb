//! The cost of a sandbox: entering it, and starting a command in it compared with starting one without.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::bail;
use pinch_coding_agent::machine::{CommandSpec, LocalMachine, Machine, ProcessEnd};
use pinch_sandbox::choose::sandboxes;
use pinch_sandbox::confinement::Confinement;
use pinch_stdx::cancel::Cancel;

use super::{Figure, median};

const TIMES: usize = 100;
/// Milliseconds that a command may take in addition to an unsandboxed one, by backend.
const BUDGETS: [(&str, f64); 2] = [("landlock", 3.0), ("bubblewrap", 15.0)];

/// Starts a command without a sandbox and in each sandbox that works here.
pub(super) fn measure() -> anyhow::Result<Vec<Figure>> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(measure_all())
}

async fn measure_all() -> anyhow::Result<Vec<Figure>> {
    let dir = tempfile::tempdir()?;
    let asked = Confinement::new(dir.path());
    let mut figures = vec![Figure::shown("command, plain", commands(&LocalMachine, &dir).await?, "ms")];
    let path = std::env::var("PATH").unwrap_or_default();
    for sandbox in sandboxes(&path) {
        let name = sandbox.name();
        let began = Instant::now();
        let machine = match sandbox.enter(&asked).await {
            Ok(machine) => machine,
            Err(error) => {
                println!("{name} is not measured: {error}");
                continue;
            }
        };
        let entered = began.elapsed().as_secs_f64() * 1e3;
        figures.push(Figure::shown(format!("entering {name}"), entered, "ms"));
        // Measured again each time: the machine may have become slower or faster meanwhile.
        let plain = commands(&LocalMachine, &dir).await?;
        let over = (commands(&*machine, &dir).await? - plain).max(0.0);
        let what = format!("command in {name}, over plain");
        let budget = BUDGETS.iter().find(|(backend, _)| *backend == name);
        figures.push(match budget {
            Some((_, budget)) => Figure::at_most(what, over, *budget, "ms"),
            None => Figure::shown(what, over, "ms"),
        });
    }
    Ok(figures)
}

/// The median time in milliseconds of a command that does nothing.
async fn commands(machine: &dyn Machine, dir: &tempfile::TempDir) -> anyhow::Result<f64> {
    let mut times = Vec::with_capacity(TIMES);
    for _ in 0..TIMES {
        let command = CommandSpec::new(PathBuf::from("/bin/true"), Vec::new(), dir.path().to_owned(), Vec::new());
        let began = Instant::now();
        let mut process = machine.spawn(command).await?;
        let end = process.pump(&Cancel::new(), Some(Duration::from_secs(10)), Duration::ZERO, &mut |_| {}).await?;
        times.push(began.elapsed().as_secs_f64() * 1e3);
        match end {
            ProcessEnd::Exited(exit) if exit.is_success() => {}
            other => bail!("/bin/true ended with {other:?}"),
        }
    }
    Ok(median(times))
}
