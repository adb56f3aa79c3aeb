//! Conformance suites for the traits of `pinch-ports`.
//!
//! ```
//! # #[derive(Debug, Default)]
//! # struct Memory(std::sync::Mutex<pinch_ports::HealthRecords>);
//! # impl pinch_ports::HealthStore for Memory {
//! #     fn load(&self) -> futures::future::BoxFuture<'_, Result<pinch_ports::HealthRecords, pinch_ports::PortError>> {
//! #         let records = self.0.lock().unwrap().clone();
//! #         Box::pin(async { Ok(records) })
//! #     }
//! #     fn update(
//! #         &self,
//! #         change: pinch_ports::HealthChange,
//! #     ) -> futures::future::BoxFuture<'_, Result<pinch_ports::HealthRecords, pinch_ports::PortError>> {
//! #         let mut records = self.0.lock().unwrap();
//! #         change(&mut records);
//! #         let records = records.clone();
//! #         Box::pin(async { Ok(records) })
//! #     }
//! # }
//! use std::sync::Arc;
//!
//! use pinch_testing::suites::ports::health;
//!
//! // Called once per scenario; each gets an empty store, and opens it once per process.
//! health::check(|| {
//!     let store = Arc::new(Memory::default());
//!     move || store.clone() as _
//! });
//! ```

use std::fmt::{Debug, Display};
use std::time::Duration;

use futures::future::BoxFuture;

pub mod health;
pub mod index;
pub mod leases;

/// A scenario of a suite: its law, and the check.
type Scenario<'a> = (&'static str, BoxFuture<'a, Result<(), String>>);

/// Time limit for things that must happen, and how long to watch for things that must not.
const SOON: Duration = Duration::from_secs(10);
const A_MOMENT: Duration = Duration::from_millis(50);

/// Runs scenarios one after another and panics with all that fail.
fn run(scenarios: Vec<Scenario<'_>>) {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => panic!("no runtime: {error}"),
    };
    let failed = scenarios.into_iter().filter_map(|(name, scenario)| {
        let outcome = runtime.block_on(async { tokio::time::timeout(SOON * 3, scenario).await });
        match outcome {
            Ok(Ok(())) => None,
            Ok(Err(why)) => Some(format!("{name}: {why}")),
            Err(_) => Some(format!("{name}: it hangs")),
        }
    });
    let failed: Vec<String> = failed.collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

fn text(error: impl Display) -> String {
    error.to_string()
}

fn ensure(holds: bool, why: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(why.to_owned()) }
}

fn equal<T: PartialEq + Debug>(what: &str, actual: T, expected: T) -> Result<(), String> {
    if actual == expected { Ok(()) } else { Err(format!("{what}: expected {expected:?}, got {actual:?}")) }
}
