//! Runs a shell command in a sandbox: `cargo run -p pinch-sandbox --example confined -- landlock /path/to/project 'cargo build'`.

use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use pinch_machine::CommandSpec;
use pinch_sandbox::choose::{SandboxBackend, enter};
use pinch_sandbox::config::ContainerConfig;
use pinch_sandbox::confinement::Confinement;
use pinch_sandbox::container::ContainerOptions;
use pinch_stdx::cancel::Cancel;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [backend, project, script] = &args[..] else { return Err("usage: confined BACKEND PROJECT SCRIPT".into()) };
    let backend =
        SandboxBackend::parse(backend).ok_or("the backend is auto, bubblewrap, landlock, docker, podman or runc")?;
    let env: Vec<(String, String)> = std::env::vars().collect();
    let variable = |name: &str| env.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());

    let mut asked = Confinement::new(project);
    if let Some(home) = variable("HOME") {
        asked = asked.toolchains_of(home);
    }
    let containers = ContainerOptions::new(ContainerConfig::default(), "example");
    let sandbox = enter(backend, &variable("PATH").unwrap_or_default(), &containers, &asked).await?;

    let args = vec!["-c".to_owned(), script.clone()];
    let command = CommandSpec::new(PathBuf::from("/bin/sh"), args, PathBuf::from(project), env);
    let mut process = sandbox.machine.spawn(command).await?;
    let mut show = |output: &[u8]| drop(std::io::stdout().write_all(output));
    let end = process.pump(&Cancel::new(), None, Duration::from_secs(2), &mut show).await?;
    writeln!(std::io::stdout(), "{} with {}: {end:?}", script, sandbox.backend)?;
    Ok(())
}
