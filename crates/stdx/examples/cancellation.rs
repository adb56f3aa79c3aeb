//! Work that ends at a deadline, or when its caller cancels; the reason says which.
//!
//! ```sh
//! cargo run -p pinch-stdx --example cancellation
//! ```

use std::io::Write as _;
use std::time::Duration;

use pinch_stdx::cancel::{Cancel, CancelReason, Deadline};
use pinch_stdx::host::Host;

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::io::Result<()> {
    let mut out = std::io::stdout();
    // A host with a clock of its own: each reading is a second later than the last.
    let host = Host::builder().clock(1_700_000_000_000, 1_000).build();
    writeln!(out, "{} then {}", host.now_iso(), host.now_iso())?;

    let all = Cancel::new();
    let quick = all.child_until(Deadline::after(Duration::from_millis(50)));
    let slow_work = || tokio::time::sleep(Duration::from_secs(60));
    writeln!(out, "with a deadline: {:?}", quick.run(slow_work()).await)?;

    let child = all.child();
    all.cancel(CancelReason::User);
    writeln!(out, "cancelled by the user: {:?}", child.run(slow_work()).await)
}
