//! What is left of commands whose host is killed.

use std::path::Path;
use std::time::Duration;

use pinch_testing::child::{TestChild, report, task};

use crate::bench::{SandboxBench, backends, sh};

/// Writes a new number twice a second.
const BEATING: &str = "n=0; while :; do n=$((n + 1)); echo $n > beat; sleep 0.5; done";

/// Not a test by itself: the host that [`a_killed_host_leaves_nothing_running`] kills. Runs commands in the workspace given as its file, in
/// the sandbox given as its task.
#[tokio::test]
async fn child() {
    let Some((name, workspace)) = task() else { return };
    let asked = pinch_sandbox::confinement::Confinement::new(&workspace);
    let sandbox = backends().await.into_iter().find(|sandbox| sandbox.name() == name).unwrap();
    let machine = sandbox.enter(&asked).await.unwrap();
    report("entered");
    // In a session of its own, as daemons are.
    sh(&*machine, &workspace, &format!("setsid sh -c '{BEATING}' & wait")).await;
}

fn beat(workspace: &Path) -> Option<String> {
    std::fs::read_to_string(workspace.join("beat")).ok().filter(|beat| !beat.is_empty())
}

#[tokio::test]
async fn a_killed_host_leaves_nothing_running() {
    for name in backends().await.iter().map(|sandbox| sandbox.name()) {
        let bench = SandboxBench::new();
        let mut host = TestChild::start(name, &bench.workspace);
        host.wait_for("entered").expect("it can be entered");
        while beat(&bench.workspace).is_none() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        host.kill();
        let mut last = None;
        for n in 0.. {
            let now = beat(&bench.workspace);
            if now == last {
                break;
            }
            assert!(n < 20, "{name}: the command is still running");
            last = now;
            tokio::time::sleep(Duration::from_secs(2)).await;
        }
    }
}
