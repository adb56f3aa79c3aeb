//! Writes a file, and runs a shell command that reads it, for at most a minute.
//!
//! ```sh
//! cargo run -p pinch-machine --example run_command -- 'wc -w notes.txt'
//! ```

use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use pinch_machine::{CommandSpec, LocalMachine, Machine};
use pinch_stdx::cancel::{Cancel, Deadline};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let script = std::env::args().nth(1).ok_or("usage: run_command SCRIPT")?;
    let dir = tempfile::tempdir()?;
    LocalMachine.write(&dir.path().join("notes.txt"), "Crabs walk sideways.\n".into()).await?;

    // The environment of a command is what the caller passes, and nothing else.
    let env = vec![("PATH".to_owned(), std::env::var("PATH")?)];
    let args = vec!["-c".to_owned(), script];
    let command = CommandSpec::new(PathBuf::from("/bin/sh"), args, dir.path().to_owned(), env);
    let mut process = LocalMachine.spawn(command).await?;
    let limit = Cancel::new().child_until(Deadline::after(Duration::from_secs(60)));
    let mut show = |output: &[u8]| drop(std::io::stdout().write_all(output));
    let end = process.pump(&limit, None, Duration::from_secs(2), &mut show).await?;
    writeln!(std::io::stdout(), "{end:?}")?;
    Ok(())
}
