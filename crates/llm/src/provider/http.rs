//! Wire formats over HTTP, as providers.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::future::Either;
#[cfg(feature = "zstd")]
use http::HeaderMap;
use http::Method;
use pinch_http::idle::{Interrupted, Watch};
use pinch_http::url_parts;
use pinch_http::{HttpClient, HttpError, IncomingResponse, Outgoing};
use pinch_stdx::cancel::Cancel;
use pinch_stdx::json::write;
use pinch_stdx::pull::{Pulled, pulled};
use tokio::time::{Instant, timeout};

use super::Provider;
use super::budget::ResponseBudget;
use crate::cloud::AmbientCredentials;
use crate::error::{LlmError, LlmErrorKind, retry};
use crate::event::{Emit, EventStream, StreamEvent};
use crate::frame::{FrameError, Frames};
use crate::redact::Secrets;
use crate::request::Request;
use crate::wire::{Decoder, Encoding, FrameKind, HttpRequest, Signing, WireCall, WireFormat, address};

/// Maximum bytes of an error body that are read.
const MAX_REFUSAL_BYTES: usize = 1024 * 1024;
/// Time limit for reading an error body.
const REFUSAL_TIME: Duration = Duration::from_secs(30);
/// Time limit for the end of the connection after the end of the answer, so that it can be reused.
const REST_TIME: Duration = Duration::from_millis(5);
/// Minimum size of a compressed body.
#[cfg(feature = "zstd")]
const LEAST_COMPRESSED: usize = 4 * 1024;
/// Maximum number of conversations remembered for a rejected encoding.
const MAX_REMEMBERED: usize = 10_000;

/// A provider that speaks one wire format over HTTP.
#[derive(Clone)]
pub struct HttpProvider(Arc<HttpShared>);

struct HttpShared {
    wire: Box<dyn WireFormat>,
    client: Arc<HttpClient>,
    /// Source of credentials for requests without any.
    ambient: Option<Arc<dyn AmbientCredentials>>,
    /// Encodings that conversations need because the provider rejected the usual one: avoids a failed request in later calls.
    encodings: Mutex<HashMap<String, Encoding>>,
}

impl fmt::Debug for HttpProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HttpProvider").field(&self.0.wire.api()).finish()
    }
}

impl HttpProvider {
    /// Creates a provider for a wire format, with a shared client.
    pub fn new(wire: Box<dyn WireFormat>, client: Arc<HttpClient>) -> Self {
        Self::with_ambient(wire, client, None)
    }

    /// Like [`Self::new`], with ambient credentials of the machine for requests without any.
    pub fn with_ambient(
        wire: Box<dyn WireFormat>,
        client: Arc<HttpClient>,
        ambient: Option<Arc<dyn AmbientCredentials>>,
    ) -> Self {
        Self(Arc::new(HttpShared { wire, client, ambient, encodings: Mutex::default() }))
    }
}

impl Provider for HttpProvider {
    fn stream(&self, request: Request, cancel: Cancel) -> EventStream {
        let request = request.with_own_env();
        let timestamp = request.host.now_ms();
        let model = Arc::clone(&request.model);
        EventStream::new(&model, timestamp, run(Arc::clone(&self.0), request, cancel, timestamp))
    }
}

/// Runs the call from its start to its only end.
fn run(shared: Arc<HttpShared>, mut request: Request, cancel: Cancel, timestamp: i64) -> Pulled<'static, StreamEvent> {
    pulled(move |emitter| async move {
        let began = Instant::now();
        let mut watch = Watch::start(request.options.timeouts);
        let authorised = Box::pin(shared.authorise(&mut request, &watch, &cancel)).await;
        let mut call = WireCall { request: &request, timestamp, encoding: shared.encoding_for(&request) };
        let mut decoder = shared.wire.decoder(&call);
        let mut emit = Emit::default();
        let mut sent = Secrets::default();
        let opened = match authorised {
            // Boxed so that everything needed for sending is freed before the answer streams.
            Ok(()) => Box::pin(shared.open(&mut call, &mut sent, &mut watch, &cancel)).await,
            Err(error) => Err(error),
        };
        let mut body = match opened {
            Ok(incoming) => Some(incoming),
            Err(error) => {
                decoder.fail(error, &mut emit);
                None
            }
        };
        let mut frames = Frames::new(shared.wire.framing());
        let mut budget = ResponseBudget::of(&request);
        loop {
            let paused = if emit.is_empty() { None } else { watch.pause() };
            while let Some(mut event) = emit.pop() {
                let is_end = matches!(event, StreamEvent::End(_));
                if let StreamEvent::End(finished) = &mut event {
                    finished.hide(&request, std::mem::take(&mut sent));
                    finished.limit_text();
                    // Release the connection of a failed call immediately.
                    if let Some(body) = body.take().filter(|_| finished.is_ok()) {
                        Box::pin(read_rest(*body)).await;
                    }
                    let ms = began.elapsed().as_millis();
                    Arc::make_mut(&mut finished.message).duration_ms = i64::try_from(ms).ok();
                }
                emitter.emit(event).await;
                if is_end {
                    return;
                }
            }
            watch.resume(paused);
            match frames.next_frame() {
                // Waiting for more checks this itself.
                Ok(Some(_)) if cancel.is_cancelled() => {
                    decoder.fail(stopped(&request, Interrupted::Cancelled), &mut emit);
                    continue;
                }
                Ok(Some(frame)) => {
                    let (n_bytes, n_before) = (frame.data.len(), emit.len());
                    if decoder.push(frame, &mut emit) == FrameKind::Content {
                        watch.content_arrived();
                        if let Err(too_large) = budget.take(&request, n_bytes, &emit, n_before) {
                            decoder.fail(too_large, &mut emit);
                        }
                    }
                    continue;
                }
                Ok(None) => {}
                Err(broken) => {
                    decoder.fail(no_frames(&request, &broken), &mut emit);
                    continue;
                }
            }
            let Some(incoming) = &mut body else {
                // The decoder must emit the end; if it does not, the stream does.
                return;
            };
            match watch.for_body(&cancel, incoming.chunk()).await {
                Ok(Ok(Some(chunk))) => frames.push(&chunk),
                Ok(Ok(None)) => {
                    body = None;
                    finish(&request, &mut frames, &mut *decoder, &mut emit);
                }
                Ok(Err(error)) => decoder.fail(network(&request, error), &mut emit),
                Err(why) => decoder.fail(stopped(&request, why), &mut emit),
            }
        }
    })
}

impl HttpShared {
    /// Adds the machine's own credentials if the request has none.
    async fn authorise(&self, request: &mut Request, watch: &Watch, cancel: &Cancel) -> Result<(), LlmError> {
        let Some(ambient) = self.ambient.as_ref().filter(|ambient| ambient.is_wanted(request)) else { return Ok(()) };
        let resolving = ambient.resolve(request, &self.client);
        let found = watch.for_other(cancel, resolving).await.map_err(|why| stopped(request, why))??;
        if let Some(found) = found {
            request.auth.lay_under(found);
        }
        Ok(())
    }

    /// Sends the request, in another form if the provider rejects the first one, and returns a successful response.
    async fn open(
        &self,
        call: &mut WireCall<'_>,
        sent: &mut Secrets,
        watch: &mut Watch,
        cancel: &Cancel,
    ) -> Result<Box<IncomingResponse>, LlmError> {
        let request = call.request;
        if !self.wire.serves(&request.model.api) {
            let text = format!("Mismatched api: {} expected {}", request.model.api, self.wire.api());
            return Err(LlmError::new(provider_of(request), LlmErrorKind::InvalidRequest, text));
        }
        loop {
            cancel.check().map_err(|_| stopped(request, Interrupted::Cancelled))?;
            let mut made = self.wire.encode(call)?;
            observe_payload(call, &mut made, watch, cancel).await?;
            let mut outgoing = outgoing(request, made)?;
            let Outgoing { url, headers, body, .. } = &mut outgoing;
            self.wire.sign(call, Signing { url, headers, body })?;
            sent.add_sent(headers);
            let (env, connect) = (request.host.env(), watch.connect());
            let sending = match self.wire.needs_http1(call) {
                true => Either::Left(self.client.send_http1(outgoing, env, connect)),
                false => Either::Right(self.client.send(outgoing, env, connect)),
            };
            let answered = watch.for_headers(cancel, sending).await.map_err(|why| stopped(request, why))?;
            let mut incoming = answered.map_err(|error| network(request, error))?;
            watch.headers_arrived();
            if let Some(observer) = &request.options.observer {
                let seeing = observer.on_response(incoming.status(), incoming.headers(), &request.model);
                watch.for_other(cancel, seeing).await.map_err(|why| stopped(request, why))??;
            }
            if incoming.status().is_success() {
                incoming.forget_headers();
                return Ok(Box::new(incoming));
            }
            let error = self.refusal(call, &mut incoming, watch, cancel).await?;
            match self.wire.reencode(call, &error) {
                Some(encoding) if call.encoding == Encoding::Usual => {
                    self.remember(request, encoding);
                    call.encoding = encoding;
                }
                _ => return Err(error),
            }
        }
    }

    async fn refusal(
        &self,
        call: &WireCall<'_>,
        incoming: &mut IncomingResponse,
        watch: &Watch,
        cancel: &Cancel,
    ) -> Result<LlmError, LlmError> {
        let request = call.request;
        let reading = timeout(REFUSAL_TIME, incoming.text_up_to(MAX_REFUSAL_BYTES));
        let body = watch.for_other(cancel, reading).await.map_err(|why| stopped(request, why))?;
        let (status, headers) = (incoming.status(), incoming.headers());
        let mut error = self.wire.refusal(call, status, headers, &body.unwrap_or_default());
        error.retry_after = retry::retry_after(headers, call.timestamp).or(error.retry_after);
        Ok(error)
    }

    fn encoding_for(&self, request: &Request) -> Encoding {
        let encodings = self.encodings.lock().unwrap_or_else(PoisonError::into_inner);
        conversation(request).and_then(|key| encodings.get(&key).copied()).unwrap_or_default()
    }

    fn remember(&self, request: &Request, encoding: Encoding) {
        let mut encodings = self.encodings.lock().unwrap_or_else(PoisonError::into_inner);
        if encodings.len() >= MAX_REMEMBERED {
            encodings.clear();
        }
        encodings.extend(conversation(request).map(|key| (key, encoding)));
    }
}

/// Identifies a conversation with one model.
fn conversation(request: &Request) -> Option<String> {
    let session = request.options.session_id.as_ref()?;
    Some(format!("{}\n{}\n{session}", request.model.provider, request.model.id))
}

pub(super) async fn observe_payload(
    call: &WireCall<'_>,
    made: &mut HttpRequest,
    watch: &Watch,
    cancel: &Cancel,
) -> Result<(), LlmError> {
    let request = call.request;
    let Some(observer) = &request.options.observer else { return Ok(()) };
    let seeing = observer.on_payload(&made.body, &request.model);
    let replaced = watch.for_other(cancel, seeing).await.map_err(|why| stopped(request, why))??;
    if let Some(body) = replaced {
        made.body = body;
    }
    let seeing = observer.on_headers(&mut made.headers, &request.model);
    watch.for_other(cancel, seeing).await.map_err(|why| stopped(request, why))??;
    Ok(())
}

fn outgoing(request: &Request, made: HttpRequest) -> Result<Outgoing, LlmError> {
    let body = write::to_vec(&made.body).map_err(|why| {
        LlmError::new(provider_of(request), LlmErrorKind::InvalidRequest, format!("Invalid request: {why}"))
    })?;
    let HttpRequest { url, headers, .. } = made;
    #[cfg(feature = "zstd")]
    let (body, headers) = compressed(body, headers);
    Ok(Outgoing { method: Method::POST, url, headers, body: Bytes::from(body) })
}

/// Compresses the body if the headers say so. For a small body, the header is removed instead.
#[cfg(feature = "zstd")]
fn compressed(body: Vec<u8>, mut headers: HeaderMap) -> (Vec<u8>, HeaderMap) {
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};
    let is_wanted = headers.get(http::header::CONTENT_ENCODING).is_some_and(|coding| coding == "zstd");
    if is_wanted && body.len() >= LEAST_COMPRESSED {
        return (compress_to_vec(body.as_slice(), CompressionLevel::Fastest), headers);
    }
    if is_wanted {
        headers.remove(http::header::CONTENT_ENCODING);
    }
    (body, headers)
}

/// Ends the input: the last event may lack its blank line.
fn finish(request: &Request, frames: &mut Frames, decoder: &mut dyn Decoder, emit: &mut Emit) {
    match frames.finish() {
        Ok(last) => {
            if let Some(frame) = last {
                decoder.push(frame, emit);
            }
            decoder.finish(emit);
        }
        Err(broken) => decoder.fail(no_frames(request, &broken), emit),
    }
}

fn no_frames(request: &Request, error: &FrameError) -> LlmError {
    let kind = if error.is_cut_off() { LlmErrorKind::StreamCut } else { LlmErrorKind::Protocol };
    LlmError::new(provider_of(request), kind, error.to_string())
}

/// Reads the rest of the connection if it arrives immediately: a connection that was read to the end can be reused.
async fn read_rest(mut body: IncomingResponse) {
    let rest = async { while let Ok(Some(_)) = body.chunk().await {} };
    if timeout(REST_TIME, rest).await.is_err() {
        tracing::debug!("the provider keeps the connection open after the end of its answer");
    }
}

fn provider_of(request: &Request) -> crate::ids::ProviderId {
    request.model.provider.clone()
}

pub(super) fn stopped(request: &Request, why: Interrupted) -> LlmError {
    let (kind, text) = match why {
        Interrupted::Cancelled => (LlmErrorKind::Aborted, "Request was aborted"),
        Interrupted::Late => (LlmErrorKind::Timeout, "Request timed out."),
        Interrupted::Idle => (LlmErrorKind::Timeout, "Stream idle timeout"),
    };
    LlmError::new(provider_of(request), kind, text)
}

fn network(request: &Request, error: HttpError) -> LlmError {
    let kind = match &error {
        HttpError::Connect { .. } | HttpError::Reset { .. } => LlmErrorKind::Connect,
        HttpError::Cut { .. } => LlmErrorKind::StreamCut,
        HttpError::Coding { .. } => LlmErrorKind::Protocol,
        // `Url`, `Invalid`, and variants added later.
        _ => LlmErrorKind::InvalidRequest,
    };
    let text = match &error {
        HttpError::Url { cause } => format!(
            "Invalid base URL {:?} of provider {}: {cause}. Set baseUrl of the provider in models.json to a URL that begins with \
             http:// or https://.",
            url_parts::without_secrets(address::base(request)),
            request.model.provider
        ),
        other => other.to_string(),
    };
    LlmError { source: Some(Arc::new(error)), ..LlmError::new(provider_of(request), kind, text) }
}
