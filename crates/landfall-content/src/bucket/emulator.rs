//! An object store in memory for tests. It supports S3 and the conditions of Google Cloud Storage.
//! Each request calls a hook before and after it takes effect.
#![allow(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "a failure ends the test"
)]

use super::objects::Bucket;
use super::protocol_fixes::ProtocolFixes;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{HeaderMap, Method, Response, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use landfall_http::ErrorKind;
use landfall_model::{Limits, locked};
use object_store::RetryConfig;
use object_store::aws::AmazonS3Builder;
use object_store::client::{
    ClientOptions, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpResponseBody,
    HttpService,
};
use object_store::gcp::GoogleCloudStorageBuilder;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime};

/// The limits of an actor, whose attempts follow each other at once.
const QUICK: Limits = Limits {
    backoff: Duration::from_millis(1),
    ..Limits::DEFAULT
};

/// A moment before or after a request takes effect.
#[derive(Debug, Clone)]
pub struct RequestMoment {
    /// The number of the actor that sent the request.
    pub actor: usize,
    /// The method, and the key with its query.
    pub request: String,
}

/// Called at each moment; the request waits for it. If it returns false, the actor counts as
/// killed: the request gets no response.
pub type RequestHook = Arc<dyn Fn(RequestMoment) -> BoxFuture<'static, bool> + Send + Sync>;

/// The object store. Clones share their content.
#[derive(Clone, Default)]
pub struct Emulator(Arc<Mutex<EmulatorState>>);

#[derive(Clone, Default)]
struct EmulatorState {
    objects: BTreeMap<String, StoredObject>,
    /// The parts of uploads under way, with their etags.
    uploads: BTreeMap<String, BTreeMap<usize, (String, Bytes)>>,
    count: u64,
    /// Whether a part gets another etag each time it is uploaded, as with SSE-KMS.
    has_random_etags: bool,
    /// Whether a proxy marks the etags of responses as weak.
    has_weak_etags: bool,
    /// Whether the bucket was removed.
    is_removed: bool,
    /// How many responses to GET are still to break off in the middle.
    cuts: usize,
}

#[derive(Clone)]
struct StoredObject {
    bytes: Bytes,
    etag: String,
    generation: u64,
    modified: SystemTime,
}

impl Emulator {
    fn stored(&self) -> MutexGuard<'_, EmulatorState> {
        locked(&self.0)
    }

    /// Returns another object store with the same content.
    #[must_use]
    pub fn copy(&self) -> Emulator {
        Emulator(Arc::new(Mutex::new(self.stored().clone())))
    }

    /// From now on, gives each part another etag, even if its bytes are the same.
    pub fn randomize_etags(&self) {
        self.stored().has_random_etags = true;
    }

    /// From now on, marks the etags in headers as weak, as a proxy that may compress the bodies.
    pub fn weaken_etags(&self) {
        self.stored().has_weak_etags = true;
    }

    /// Removes the bucket. All requests are refused from now on.
    pub fn remove_bucket(&self) {
        self.stored().is_removed = true;
    }

    /// Breaks off the next `count` responses to GET in the middle of their bodies.
    pub fn cut_responses(&self, count: usize) {
        self.stored().cuts = count;
    }

    /// Gives every uploaded part another etag, as if it were sent once more. Returns the number of
    /// parts.
    pub fn rename_parts(&self) -> usize {
        let mut stored = self.stored();
        let parts = stored.uploads.values_mut().flat_map(BTreeMap::values_mut);
        parts.map(|(etag, _)| etag.insert_str(1, "again-")).count()
    }

    /// Lets time pass: makes all objects older, and renames claims accordingly.
    pub fn age(&self, by: Duration) {
        let mut stored = self.stored();
        let objects = std::mem::take(&mut stored.objects);
        for (key, mut one) in objects {
            one.modified -= by;
            // the key of a claim contains the hour in which it was written
            let claim = key.rsplit_once('-').filter(|_| key.contains("claims/"));
            let key = match claim.and_then(|(name, hour)| Some((name, hour.parse::<u64>().ok()?))) {
                Some((name, hour)) => format!("{name}-{}", hour - by.as_secs() / 3600),
                None => key,
            };
            stored.objects.insert(key, one);
        }
    }

    /// Returns the bytes of an object.
    pub fn get(&self, key: &str) -> Option<Bytes> {
        self.stored()
            .objects
            .get(&format!("at/{key}"))
            .map(|one| one.bytes.clone())
    }

    /// Stores an object without a request.
    pub fn put(&self, key: &str, bytes: impl Into<Bytes>) {
        self.stored().put(&format!("at/{key}"), bytes.into(), "put");
    }

    /// Returns all keys with this prefix.
    pub fn keys(&self, beginning: &str) -> Vec<String> {
        let stored = self.stored();
        let keys = stored
            .objects
            .keys()
            .filter_map(|key| key.strip_prefix("at/"));
        keys.filter(|key| key.starts_with(beginning))
            .map(str::to_owned)
            .collect()
    }

    /// Returns the folder `at` as S3, for an actor whose requests call `hook`.
    pub fn bucket(&self, actor: usize, hook: RequestHook) -> Bucket {
        let builder = AmazonS3Builder::new()
            .with_bucket_name("b")
            .with_region("r")
            .with_skip_signature(true);
        let builder = builder
            .with_endpoint("http://s3.test")
            .with_allow_http(true)
            .with_retry(no_retries());
        let store = builder
            .with_http_connector(ProtocolFixes(self.client(actor, hook)))
            .build()
            .unwrap();
        Bucket::with_store(Arc::new(store), &"s3://b/at".parse().unwrap(), &QUICK)
    }

    /// Returns the folder `at` as Google Cloud Storage.
    pub fn google_bucket(&self, actor: usize, hook: RequestHook) -> Bucket {
        let key = serde_json::json!({
            "client_email": "a@b.test", "private_key": "none", "private_key_id": "none",
            "disable_oauth": true, "gcs_base_url": "http://s3.test",
        });
        let builder = GoogleCloudStorageBuilder::new()
            .with_bucket_name("b")
            .with_retry(no_retries());
        let builder = builder.with_service_account_key(key.to_string());
        let builder = builder.with_client_options(ClientOptions::new().with_allow_http(true));
        let store = builder
            .with_http_connector(ProtocolFixes(self.client(actor, hook)))
            .build()
            .unwrap();
        Bucket::with_store(Arc::new(store), &"gs://b/at".parse().unwrap(), &QUICK)
    }

    fn client(&self, actor: usize, hook: RequestHook) -> EmulatorClient {
        EmulatorClient {
            emulator: self.clone(),
            actor,
            hook,
        }
    }
}

// a request of an actor that was killed must not be sent again
fn no_retries() -> RetryConfig {
    RetryConfig {
        max_retries: 0,
        ..RetryConfig::default()
    }
}

#[derive(Clone, derive_more::Debug)]
#[debug("EmulatorClient({actor})")]
struct EmulatorClient {
    emulator: Emulator,
    actor: usize,
    hook: RequestHook,
}

impl HttpService for EmulatorClient {
    fn call<'a, 'b>(
        &'a self,
        request: HttpRequest,
    ) -> BoxFuture<'b, Result<HttpResponse, HttpError>>
    where
        'a: 'b,
        Self: 'b,
    {
        Box::pin(async move {
            let (head, body) = request.into_parts();
            let body = body.collect().await?.to_bytes();
            let request = format!(
                "{} {}",
                head.method,
                head.uri.to_string().replace("http://s3.test/b", "")
            );
            let pass_hook = async || {
                let moment = RequestMoment {
                    actor: self.actor,
                    request: request.clone(),
                };
                let killed =
                    || HttpError::new(HttpErrorKind::Unknown, std::io::Error::other("killed"));
                (self.hook)(moment).await.then_some(()).ok_or_else(killed)
            };
            pass_hook().await?;
            let mut response = self.emulator.stored().respond(&head, &body);
            let is_weak = self.emulator.stored().has_weak_etags;
            if is_weak && let Some(etag) = response.headers_mut().get_mut("etag") {
                *etag = format!("W/{}", etag.to_str().unwrap()).parse().unwrap();
            }
            // once more, so that an actor can be killed after its request has taken effect
            pass_hook().await?;
            let is_cut = head.method == Method::GET && self.emulator.stored().take_cut();
            Ok(response.map(if is_cut { cut } else { Into::into }))
        })
    }
}

/// The first half of a body, and the error of a connection that breaks.
fn cut(body: Bytes) -> HttpResponseBody {
    let broken = landfall_http::HttpError::new(ErrorKind::Network, "the connection broke");
    let frames = [
        Ok(Frame::data(body.slice(..body.len() / 2))),
        Err(HttpError::new(HttpErrorKind::Unknown, broken)),
    ];
    HttpResponseBody::new(StreamBody::new(futures_util::stream::iter(frames)))
}

type EmulatorResponse = Response<Bytes>;

fn answer(status: StatusCode, body: impl Into<Bytes>) -> EmulatorResponse {
    let mut answer = Response::new(body.into());
    *answer.status_mut() = status;
    answer
}

fn refusal(status: StatusCode, code: &str) -> EmulatorResponse {
    answer(
        status,
        format!("<Error><Code>{code}</Code><Message>no</Message></Error>"),
    )
}

/// Returns the unescaped texts of all XML elements with this name.
fn texts<'a>(xml: &'a str, name: &str) -> Vec<String> {
    let begin = format!("<{name}>");
    let end = format!("</{name}>");
    let pieces: Vec<&'a str> = xml
        .split(&begin)
        .skip(1)
        .filter_map(|rest| rest.split(&end).next())
        .collect();
    pieces
        .into_iter()
        .map(|text| quick_xml::escape::unescape(text).unwrap().into_owned())
        .collect()
}

impl EmulatorState {
    fn take_cut(&mut self) -> bool {
        let is_cut = self.cuts > 0;
        self.cuts = self.cuts.saturating_sub(1);
        is_cut
    }

    fn put(&mut self, key: &str, bytes: Bytes, kind: &str) -> String {
        self.count += 1;
        let etag = format!(
            "\"{kind}-{}\"",
            landfall_model::Digest::sha256(&bytes).hex()
        );
        let one = StoredObject {
            bytes,
            etag: etag.clone(),
            generation: self.count,
            modified: SystemTime::now(),
        };
        self.objects.insert(key.to_owned(), one);
        etag
    }

    fn respond(&mut self, head: &http::request::Parts, body: &Bytes) -> EmulatorResponse {
        if self.is_removed {
            // a response to HEAD has no body, so it has no code either
            return match head.method {
                Method::HEAD => answer(StatusCode::NOT_FOUND, ""),
                _ => refusal(StatusCode::NOT_FOUND, "NoSuchBucket"),
            };
        }
        let path = percent_encoding::percent_decode_str(head.uri.path())
            .decode_utf8()
            .unwrap();
        let key = path
            .strip_prefix("/b")
            .unwrap()
            .trim_start_matches('/')
            .to_owned();
        let query: BTreeMap<String, String> =
            url::form_urlencoded::parse(head.uri.query().unwrap_or_default().as_bytes())
                .into_owned()
                .collect();
        let text = || String::from_utf8_lossy(body);
        match (&head.method, query.get("uploadId")) {
            (&Method::GET, _) if key.is_empty() => self.list(&query["prefix"]),
            (&Method::POST, _) if query.contains_key("delete") => {
                let keys = texts(&text(), "Key");
                keys.iter().for_each(|key| drop(self.objects.remove(key)));
                let deleted = keys
                    .iter()
                    .map(|key| format!("<Deleted><Key>{key}</Key></Deleted>"));
                let deleted: String = deleted.collect();
                answer(
                    StatusCode::OK,
                    format!("<DeleteResult>{deleted}</DeleteResult>"),
                )
            }
            (&Method::POST, None) => {
                self.count += 1;
                let id = format!("upload-{}", self.count);
                self.uploads.insert(id.clone(), BTreeMap::new());
                let xml = format!("<R><Bucket>b</Bucket><Key>k</Key><UploadId>{id}</UploadId></R>");
                answer(StatusCode::OK, xml)
            }
            (&Method::POST, Some(id)) => self.complete(&key, id, &texts(&text(), "ETag")),
            (&Method::PUT, Some(id)) => {
                self.count += 1;
                // with SSE-KMS, the etag of a part is not a digest of its bytes
                let salt = if self.has_random_etags { self.count } else { 0 };
                let Some(parts) = self.uploads.get_mut(id) else {
                    return refusal(StatusCode::NOT_FOUND, "NoSuchUpload");
                };
                let etag = format!("\"{salt}-{}\"", landfall_model::Digest::sha256(body).hex());
                parts.insert(
                    query["partNumber"].parse().unwrap(),
                    (etag.clone(), body.clone()),
                );
                with_etag(StatusCode::OK, &etag)
            }
            (&Method::PUT, None) => {
                let existing = self.objects.get(&key);
                if !is_met(&head.headers, existing) {
                    return refusal(StatusCode::PRECONDITION_FAILED, "PreconditionFailed");
                }
                let etag = self.put(&key, body.clone(), "put");
                let mut answer = with_etag(StatusCode::OK, &etag);
                answer
                    .headers_mut()
                    .insert("x-goog-generation", self.count.into());
                answer
            }
            (&Method::DELETE, Some(id)) => {
                self.uploads.remove(id);
                answer(StatusCode::NO_CONTENT, "")
            }
            (&Method::DELETE, None) => {
                if !is_met(&head.headers, self.objects.get(&key)) {
                    return refusal(StatusCode::PRECONDITION_FAILED, "PreconditionFailed");
                }
                self.objects.remove(&key);
                answer(StatusCode::NO_CONTENT, "")
            }
            _ => self.read(&key, &head.method, &head.headers),
        }
    }

    fn read(&self, key: &str, method: &Method, headers: &HeaderMap) -> EmulatorResponse {
        let Some(one) = self.objects.get(key) else {
            return refusal(StatusCode::NOT_FOUND, "NoSuchKey");
        };
        if headers
            .get("if-match")
            .is_some_and(|etag| etag != &*one.etag)
        {
            return refusal(StatusCode::PRECONDITION_FAILED, "PreconditionFailed");
        }
        let range = headers
            .get("range")
            .and_then(|range| range.to_str().ok()?.strip_prefix("bytes="));
        let mut status = StatusCode::OK;
        let mut bytes = one.bytes.clone();
        let mut content_range = None;
        if let Some((begin, end)) = range.and_then(|range| range.split_once('-')) {
            let begin: usize = begin.parse().unwrap();
            let end = end
                .parse::<usize>()
                .map_or(bytes.len(), |end| bytes.len().min(end + 1));
            content_range = Some(format!("bytes {begin}-{}/{}", end - 1, bytes.len()));
            status = StatusCode::PARTIAL_CONTENT;
            bytes = bytes.slice(begin..end);
        }
        let length = bytes.len();
        let mut answer = answer(
            status,
            if method == Method::HEAD {
                Bytes::new()
            } else {
                bytes
            },
        );
        let headers = answer.headers_mut();
        headers.insert("etag", one.etag.parse().unwrap());
        headers.insert("x-goog-generation", one.generation.into());
        headers.insert("content-length", length.into());
        headers.insert(
            "last-modified",
            httpdate::fmt_http_date(one.modified).parse().unwrap(),
        );
        if let Some(content_range) = content_range {
            headers.insert("content-range", content_range.parse().unwrap());
        }
        answer
    }

    fn list(&self, prefix: &str) -> EmulatorResponse {
        let listed = self
            .objects
            .iter()
            .filter(|(key, _)| key.starts_with(prefix));
        let entries = listed.map(|(key, object)| {
            let modified = jiff::Timestamp::try_from(object.modified).unwrap();
            let key = quick_xml::escape::escape(key);
            let etag = quick_xml::escape::escape(&object.etag);
            let size = object.bytes.len();
            format!(
                "<Contents><Key>{key}</Key><LastModified>{modified:.3}</LastModified>\
                 <ETag>{etag}</ETag><Size>{size}</Size></Contents>"
            )
        });
        let entries: String = entries.collect();
        answer(
            StatusCode::OK,
            format!("<ListBucketResult>{entries}</ListBucketResult>"),
        )
    }

    fn complete(&mut self, key: &str, id: &str, etags: &[String]) -> EmulatorResponse {
        let Some(parts) = self.uploads.get(id) else {
            return refusal(StatusCode::NOT_FOUND, "NoSuchUpload");
        };
        let is_same = |(at, etag): (usize, &String)| {
            parts.get(&(at + 1)).is_some_and(|(real, _)| real == etag)
        };
        // S3 refuses an upload whose parts were replaced since the client learned their etags
        if etags.is_empty() || !etags.iter().enumerate().all(is_same) {
            return refusal(StatusCode::BAD_REQUEST, "InvalidPart");
        }
        let parts: Vec<&[u8]> = parts.values().map(|(_, bytes)| &bytes[..]).collect();
        let bytes = parts.concat();
        self.uploads.remove(id);
        let etag = self.put(key, bytes.into(), "parts");
        let etag = quick_xml::escape::escape(&etag);
        answer(StatusCode::OK, format!("<R><ETag>{etag}</ETag></R>"))
    }
}

fn with_etag(status: StatusCode, etag: &str) -> EmulatorResponse {
    let mut answer = answer(status, "");
    answer.headers_mut().insert("etag", etag.parse().unwrap());
    answer
}

/// Whether the conditions in the headers of a request hold.
fn is_met(headers: &HeaderMap, existing: Option<&StoredObject>) -> bool {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let generation =
        header("x-goog-if-generation-match").map(|wanted| wanted.parse::<u64>().unwrap());
    header("if-none-match").is_none_or(|_| existing.is_none())
        && header("if-match").is_none_or(|etag| existing.is_some_and(|one| one.etag == etag))
        && generation.is_none_or(|wanted| existing.map_or(0, |one| one.generation) == wanted)
}
