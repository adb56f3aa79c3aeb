//! Writing the HTML page of a session alongside everything else.

use std::path::Path;
use std::time::Duration;

use pinch_stdx::cancel::Cancel;
use pinch_stdx::text::with_causes;
use serde_json::json;
use tokio::sync::oneshot;

use super::context::RpcContext;
use super::io::{FinishedTask, Io};
use crate::export::{html, page_theme};
use crate::packages::source::of_client;
use crate::protocol::response::Answerer;
use crate::session::SessionView;
use crate::session_log::SessionLog;

/// How long to wait for pages after the client stopped writing: a pipe may never be read.
const GRACE: Duration = Duration::from_secs(30);

impl RpcContext {
    /// Starts writing a page alongside everything else. The page shows the session passed to the returned function.
    pub(super) fn write_page(
        &self,
        io: &mut Io,
        answerer: Answerer,
        path: Option<String>,
    ) -> impl FnOnce(&SessionView<'_>) + Send + use<> {
        let (send, taken) = oneshot::channel();
        let (context, permits) = (self.clone(), io.pages());
        let (asked, stop) = (io.asked().clone(), io.stop().clone());
        io.start_task(async move {
            let written = async {
                let log = taken.await.map_err(|_| "The session is closed".to_owned())?;
                let permit = permits.acquire_owned().await;
                let done = tokio::task::spawn_blocking(move || {
                    let _permit = permit;
                    let path = path.map(|path| of_client(&path, context.services.host().home()));
                    context.page(&log, path.as_deref())
                });
                done.await.unwrap_or_else(|error| Err(error.to_string()))
            };
            let done = tokio::select! {
                biased;
                done = written => done,
                () = end_of_patience(&asked, &stop) => Err("The program is exiting before the page is written".to_owned()),
            };
            FinishedTask::Page(match done {
                Ok(path) => answerer.with(&json!({ "path": path })),
                Err(why) => answerer.failed(&why),
            })
        });
        // The receiver may have been dropped.
        move |view| drop(send.send(view.log.snapshot()))
    }

    /// Writes a page and returns its path. Blocks.
    fn page(&self, log: &SessionLog, path: Option<&Path>) -> Result<String, String> {
        let theme = self.services.theme().ok_or("No theme found")?;
        let path =
            html::export(log, &page_theme(&theme), path, self.services.cwd()).map_err(|error| with_causes(&error))?;
        Ok(path.to_string_lossy().into_owned())
    }
}

/// Waits until the program should end, or for a while after the client stopped writing.
async fn end_of_patience(asked: &Cancel, stop: &Cancel) {
    let late = async {
        stop.cancelled().await;
        tokio::time::sleep(GRACE).await;
    };
    tokio::select! {
        _ = asked.cancelled() => {}
        () = late => {}
    }
}
