//! An in-process object store with the S3 protocol (`s3s-fs`, over a folder), and faults between it
//! and landfall.

use super::Place;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use s3s::auth::SimpleAuth;
use s3s::service::{S3Service, S3ServiceBuilder};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// The account of the object store.
const ACCOUNT: (&str, &str) = ("landfall", "a-secret-of-the-object-store");
/// The condition of Google Cloud Storage: the generation that an object must have.
const GENERATION: &str = "x-goog-if-generation-match";
/// The bucket of the emulator.
pub const BUCKET: &str = "mirror";

/// A request that the emulator received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedRequest {
    pub method: String,
    /// The key in the bucket.
    pub key: String,
    pub query: String,
    /// The `Range` header.
    pub range: Option<String>,
    /// The generation that the object must have in Google Cloud Storage.
    pub generation: Option<String>,
}

/// How a request is handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Answered with 503 `SlowDown`, without an effect.
    SlowDown,
    /// Takes effect, but is answered with 500.
    LostAnswer,
    /// The connection is cut before anything happens.
    Cut,
    /// Refused, because the clock of the client is wrong.
    Skewed,
    /// Refused, because a part of the upload differs from the one in the request.
    InvalidPart,
    /// Refused, because the store lacks the feature.
    NotImplemented,
    /// Waits until [`ObjectStore::release`], and then takes effect.
    Held,
}

/// The protocol of the emulator.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Protocol {
    #[default]
    S3,
    /// S3 with the differences of Google's XML API: a token instead of a signature, and conditions
    /// by generation instead of etag. There is no usable emulator for Google's API.
    Google,
}

type Judge = Box<dyn FnMut(&RecordedRequest) -> Option<Fault> + Send>;

#[derive(Default)]
struct Shared {
    protocol: Protocol,
    requests: Mutex<Vec<RecordedRequest>>,
    judge: Mutex<Option<Judge>>,
    /// Keys that are added to the listings of their prefixes, because no file can have such a name.
    strange_keys: Mutex<Vec<String>>,
    held: tokio::sync::Notify,
}

/// A running object store. It ends when it is dropped.
pub struct ObjectStore {
    pub address: SocketAddr,
    dir: tempfile::TempDir,
    shared: Arc<Shared>,
    runtime: Option<tokio::runtime::Runtime>,
}

impl ObjectStore {
    pub fn start() -> ObjectStore {
        ObjectStore::of(Protocol::S3)
    }

    /// An object store that behaves like Google Cloud Storage.
    pub fn start_google() -> ObjectStore {
        ObjectStore::of(Protocol::Google)
    }

    fn of(protocol: Protocol) -> ObjectStore {
        let dir = tempfile::tempdir_in(super::scratch()).unwrap();
        std::fs::create_dir(dir.path().join(BUCKET)).unwrap();
        let mut builder = S3ServiceBuilder::new(s3s_fs::FileSystem::new(dir.path()).unwrap());
        if protocol == Protocol::S3 {
            builder.set_auth(SimpleAuth::from_single(ACCOUNT.0, ACCOUNT.1));
        }
        let shared = Arc::new(Shared {
            protocol,
            ..Shared::default()
        });
        let service = builder.build();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let listener = runtime
            .block_on(tokio::net::TcpListener::bind("127.0.0.1:0"))
            .unwrap();
        let address = listener.local_addr().unwrap();
        let state = shared.clone();
        runtime.spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let service = service.clone();
                let state = state.clone();
                let answering =
                    service_fn(move |request| answer(service.clone(), state.clone(), request));
                let serving = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(socket), answering);
                tokio::spawn(async move { drop(serving.await) });
            }
        });
        ObjectStore {
            address,
            dir,
            shared,
            runtime: Some(runtime),
        }
    }

    /// Configures landfall in `place` with the account and the endpoint of this store.
    pub fn introduce_to(&self, place: &Place) {
        place.set("AWS_ACCESS_KEY_ID", ACCOUNT.0);
        place.set("AWS_SECRET_ACCESS_KEY", ACCOUNT.1);
        place.set("AWS_REGION", "eu-west-1");
        place.set("AWS_ENDPOINT_URL", &format!("http://{}", self.address));
        let key = serde_json::json!({
            "client_email": "landfall@example.com", "private_key": "none", "private_key_id": "none",
            "disable_oauth": true, "gcs_base_url": format!("http://{}", self.address),
        });
        place.set("GOOGLE_SERVICE_ACCOUNT_KEY", &key.to_string());
    }

    /// Sets the function that decides how later requests are handled.
    pub fn judge(&self, judge: impl FnMut(&RecordedRequest) -> Option<Fault> + Send + 'static) {
        *self.shared.judge.lock().unwrap() = Some(Box::new(judge));
    }

    /// Removes all faults and recorded requests.
    pub fn reset(&self) {
        *self.shared.judge.lock().unwrap() = None;
        self.shared.requests.lock().unwrap().clear();
    }

    /// Continues the requests that are held.
    pub fn release(&self) {
        self.shared.held.notify_waiters();
    }

    /// Adds these keys to listings.
    pub fn show_keys(&self, keys: &[&str]) {
        *self.shared.strange_keys.lock().unwrap() =
            keys.iter().map(|key| (*key).to_owned()).collect();
    }

    /// The requests since the last reset.
    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.shared.requests.lock().unwrap().clone()
    }

    /// How many requests since the last reset match.
    pub fn count(&self, is_meant: impl Fn(&RecordedRequest) -> bool) -> usize {
        self.shared
            .requests
            .lock()
            .unwrap()
            .iter()
            .filter(|request| is_meant(request))
            .count()
    }

    /// The file of an object.
    pub fn file(&self, key: &str) -> std::path::PathBuf {
        self.dir.path().join(BUCKET).join(key)
    }

    /// The keys of all objects with this prefix, sorted.
    pub fn keys(&self, beginning: &str) -> Vec<String> {
        let root = self.dir.path().join(BUCKET);
        let mut folders = vec![root.clone()];
        let mut keys = Vec::new();
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap().flatten() {
                match entry.path().is_dir() {
                    true => folders.push(entry.path()),
                    false => {
                        keys.push(
                            entry
                                .path()
                                .strip_prefix(&root)
                                .unwrap()
                                .to_str()
                                .unwrap()
                                .to_owned(),
                        );
                    }
                }
            }
        }
        keys.retain(|key| key.starts_with(beginning));
        keys.sort();
        keys
    }
}

impl Drop for ObjectStore {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

async fn answer(
    service: S3Service,
    state: Arc<Shared>,
    mut request: Request<Incoming>,
) -> Result<Response<s3s::Body>, std::io::Error> {
    let generation = request.headers().get(GENERATION);
    let generation = generation.map(|wanted| wanted.to_str().unwrap().to_owned());
    if state.protocol == Protocol::Google {
        let is_write = !matches!(*request.method(), Method::GET | Method::HEAD);
        from_google(request.headers_mut(), is_write, generation.as_deref());
    }
    let uri = request.uri();
    let path = uri.path().to_owned();
    let recorded = RecordedRequest {
        method: request.method().to_string(),
        key: uri
            .path()
            .trim_start_matches('/')
            .trim_start_matches(BUCKET)
            .trim_start_matches('/')
            .to_owned(),
        query: uri.query().unwrap_or_default().to_owned(),
        range: request
            .headers()
            .get("range")
            .and_then(|range| Some(range.to_str().ok()?.to_owned())),
        generation: generation.clone(),
    };
    let fault = state
        .judge
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .as_mut()
        .and_then(|judge| judge(&recorded));
    state
        .requests
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push(recorded);
    // like real servers, the emulator refuses a request with several `Content-Length` headers
    let lengths = request.headers().get_all("content-length").iter().count();
    let refusal = |status: StatusCode, code: &str| {
        let text = format!(
            "<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>try again</Message></Error>"
        );
        Ok(Response::builder()
            .status(status)
            .body(s3s::Body::from(text))
            .unwrap())
    };
    match fault {
        Some(Fault::Cut) => Err(std::io::Error::other("cut")),
        Some(Fault::Skewed) => refusal(StatusCode::FORBIDDEN, "RequestTimeTooSkewed"),
        Some(Fault::InvalidPart) => refusal(StatusCode::BAD_REQUEST, "InvalidPart"),
        Some(Fault::NotImplemented) => refusal(StatusCode::NOT_IMPLEMENTED, "NotImplemented"),
        Some(Fault::SlowDown) => refusal(StatusCode::SERVICE_UNAVAILABLE, "SlowDown"),
        _ if lengths > 1 => refusal(StatusCode::BAD_REQUEST, "BadRequest"),
        _ => {
            if fault == Some(Fault::Held) {
                state.held.notified().await;
            }
            if let Some(wanted) = generation.filter(|_| state.protocol == Protocol::Google)
                && wanted != live_generation(&service, &path).await
            {
                return refusal(StatusCode::PRECONDITION_FAILED, "PreconditionFailed");
            }
            let prefix = listed_folder(request.uri().query().unwrap_or_default());
            let answered = service
                .call(request.map(s3s::Body::from))
                .await
                .map_err(|error| std::io::Error::other(format!("{error:?}")))?;
            let answered = if state.protocol == Protocol::Google {
                to_google(answered)
            } else {
                answered
            };
            match (fault, prefix) {
                (Some(Fault::LostAnswer), _) => {
                    refusal(StatusCode::INTERNAL_SERVER_ERROR, "InternalError")
                }
                (_, Some(prefix)) => with_strange_keys(&state, answered, &prefix).await,
                _ => Ok(answered),
            }
        }
    }
}

/// The prefix in a request for a listing; `None` if the request is not for a listing, or has no
/// prefix.
fn listed_folder(query: &str) -> Option<String> {
    let pairs: std::collections::BTreeMap<_, _> = url::form_urlencoded::parse(query.as_bytes())
        .into_owned()
        .collect();
    pairs.get("list-type").and(pairs.get("prefix")).cloned()
}

/// Adds the strange keys that begin with `prefix` to a listing.
async fn with_strange_keys(
    state: &Shared,
    listing: Response<s3s::Body>,
    prefix: &str,
) -> Result<Response<s3s::Body>, std::io::Error> {
    let (mut head, body) = listing.into_parts();
    let bytes = body
        .collect()
        .await
        .map_err(|error| std::io::Error::other(format!("{error:?}")))?
        .to_bytes();
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    let keys = state
        .strange_keys
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clone();
    let entries = keys.iter().filter(|key| key.starts_with(prefix)).map(|key| {
        format!(
            "<Contents><Key>{key}</Key><LastModified>2020-01-01T00:00:00.000Z</LastModified><Size>1</Size></Contents>"
        )
    });
    let text = text.replace(
        "</ListBucketResult>",
        &format!("{}</ListBucketResult>", entries.collect::<String>()),
    );
    head.headers.remove("content-length");
    Ok(Response::from_parts(head, s3s::Body::from(text)))
}

/// The generation of the object at `path`, or 0 if there is none.
async fn live_generation(service: &S3Service, path: &str) -> String {
    let mut request = Request::new(s3s::Body::empty());
    *request.method_mut() = Method::HEAD;
    *request.uri_mut() = path.parse().unwrap();
    let found = service.call(request).await.ok();
    let found = found.filter(|found| found.status().is_success());
    let etag = found.and_then(|found| found.headers().get("etag").cloned());
    etag.map_or_else(
        || "0".to_owned(),
        |etag| etag.to_str().unwrap().trim_matches('"').to_owned(),
    )
}

/// Converts a request of Google's API to S3. Generations are etags here. Writes lose the conditions
/// of S3, which Google ignores.
fn from_google(headers: &mut HeaderMap, is_write: bool, generation: Option<&str>) {
    headers.remove("authorization");
    headers.remove(GENERATION);
    if is_write {
        headers.remove("if-match");
        headers.remove("if-none-match");
    }
    match generation {
        None => {}
        // checked again by the store, in one step with the write
        Some("0") => drop(headers.insert("if-none-match", HeaderValue::from_static("*"))),
        Some(etag) => drop(headers.insert("if-match", format!("\"{etag}\"").parse().unwrap())),
    }
}

/// Converts a response of S3 to Google's API.
fn to_google(mut answer: Response<s3s::Body>) -> Response<s3s::Body> {
    if let Some(etag) = answer.headers().get("etag") {
        let generation = etag.to_str().unwrap().trim_matches('"').parse().unwrap();
        answer.headers_mut().insert("x-goog-generation", generation);
    }
    answer
}
