//! A folder of an object store: reads and lists its objects.

use super::cloud_store::{BlockingReader, CloudStore, block_on, open};
use super::http_client::SlowReader;
#[cfg(any(test, feature = "testkit"))]
use super::location::BucketProtocol;
use super::location::{BucketLocation, is_missing_bucket, request_error};
use crate::{RangeRead, RangeReader};
use bytes::Bytes;
use futures_util::stream::BoxStream;
use futures_util::{StreamExt, TryStreamExt};
use landfall_http::{BodyFailure, ByteStream, ErrorKind, HttpError, RetryPolicy, Transport};
use landfall_model::Limits;
use object_store::path::Path;
use object_store::{GetOptions, GetRange, GetResult, ObjectMeta, UpdateVersion};
use std::io::{self, Read};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime};
use url::Url;

/// A folder of an object store. Keys are relative to it. It is cheap to clone.
#[derive(Clone)]
pub struct Bucket(Arc<BucketInner>);

struct BucketInner {
    cloud: Arc<dyn CloudStore>,
    location: BucketLocation,
    /// How often a small object is requested whose response breaks off.
    retries: RetryPolicy,
    /// Whether the store has refused conditional writes. Then the last write wins.
    is_unconditional: AtomicBool,
}

impl Bucket {
    /// Opens the folder at `location` without sending a request.
    ///
    /// # Errors
    /// If a setting in the environment or the user's configuration files is invalid.
    pub fn open(location: &BucketLocation, transport: &Transport) -> Result<Bucket, HttpError> {
        let cloud = open(location, transport)?;
        Ok(Bucket::with_store(cloud, location, transport.limits()))
    }

    pub(super) fn with_store(
        cloud: Arc<dyn CloudStore>,
        location: &BucketLocation,
        limits: &Limits,
    ) -> Bucket {
        Bucket(Arc::new(BucketInner {
            cloud,
            location: location.clone(),
            retries: RetryPolicy::new(limits),
            is_unconditional: AtomicBool::new(false),
        }))
    }

    /// Returns an empty folder in memory.
    #[cfg(any(test, feature = "testkit"))]
    pub fn in_memory() -> Bucket {
        let location = BucketLocation {
            protocol: BucketProtocol::S3,
            bucket: "memory".into(),
            key: "at".into(),
        };
        let store = Arc::new(object_store::memory::InMemory::new());
        Bucket::with_store(store, &location, &Limits::DEFAULT)
    }

    /// Returns the location of the folder.
    pub fn location(&self) -> &BucketLocation {
        &self.0.location
    }

    /// Returns the URL of an object, such as `s3://bucket/prefix/key`, for messages.
    pub fn url(&self, key: &str) -> String {
        BucketLocation {
            key: self.full_key(key),
            ..self.0.location.clone()
        }
        .to_string()
    }

    pub(super) fn cloud(&self) -> &dyn CloudStore {
        &*self.0.cloud
    }

    /// Whether the store has refused conditional writes.
    pub(super) fn is_unconditional(&self) -> &AtomicBool {
        &self.0.is_unconditional
    }

    fn full_key(&self, key: &str) -> String {
        match self.0.location.key.as_str() {
            "" => key.to_owned(),
            prefix if key.is_empty() => prefix.to_owned(),
            prefix => format!("{prefix}/{key}"),
        }
    }

    pub(super) fn path(&self, key: &str) -> Path {
        let key = self.full_key(key);
        // not `Path::from`, which encodes some characters: the name would be another one
        Path::parse(&key).unwrap_or_else(|_| key.into())
    }

    pub(super) fn request_error(&self, key: &str, error: object_store::Error) -> HttpError {
        request_error(&self.url(key), error)
    }

    fn describe_object(&self, meta: ObjectMeta) -> BucketObject {
        let path = meta.location.to_string();
        let prefix = self.full_key("");
        let key = path
            .strip_prefix(&prefix)
            .unwrap_or(&path)
            .trim_start_matches('/')
            .to_owned();
        BucketObject {
            key,
            size: meta.size,
            etag: meta.e_tag,
            version: meta.version,
            modified: meta.last_modified.into(),
        }
    }

    /// Looks up an object. Returns `None` if it does not exist, or if its bucket does not exist:
    /// the response has no body that tells them apart.
    ///
    /// # Errors
    /// If the request fails.
    pub async fn head(&self, key: &str) -> Result<Option<BucketObject>, HttpError> {
        let options = GetOptions {
            head: true,
            ..GetOptions::default()
        };
        match self.0.cloud.get_opts(&self.path(key), options).await {
            Ok(result) => Ok(Some(self.describe_object(result.meta))),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.request_error(key, error)),
        }
    }

    /// Reads a small object. Returns `None` if it does not exist.
    ///
    /// # Errors
    /// If the request fails, the bucket does not exist, or the object has more than `max_bytes`.
    pub async fn get(
        &self,
        key: &str,
        max_bytes: u64,
    ) -> Result<Option<(Bytes, BucketObject)>, HttpError> {
        match self.get_changed(key, None, max_bytes).await? {
            ConditionalGet::Changed(bytes, object) => Ok(Some((bytes, object))),
            ConditionalGet::Unchanged | ConditionalGet::Missing => Ok(None),
        }
    }

    /// Reads a small object, unless it has this etag. If the response breaks off, the object is
    /// requested again.
    ///
    /// # Errors
    /// Like [`Bucket::get`].
    pub async fn get_changed(
        &self,
        key: &str,
        etag: Option<&str>,
        max_bytes: u64,
    ) -> Result<ConditionalGet, HttpError> {
        let get = || self.get_changed_once(key, etag, max_bytes);
        self.0.retries.read_body(get).await
    }

    async fn get_changed_once(
        &self,
        key: &str,
        etag: Option<&str>,
        max_bytes: u64,
    ) -> Result<ConditionalGet, BodyFailure<HttpError>> {
        let options = GetOptions {
            if_none_match: etag.map(str::to_owned),
            ..GetOptions::default()
        };
        let result = match self.0.cloud.get_opts(&self.path(key), options).await {
            Ok(result) => result,
            Err(error) if is_missing_bucket(&error) => {
                return Err(self.request_error(key, error).into());
            }
            Err(object_store::Error::NotFound { .. }) => return Ok(ConditionalGet::Missing),
            Err(object_store::Error::NotModified { .. }) => return Ok(ConditionalGet::Unchanged),
            Err(error) => return Err(self.request_error(key, error).into()),
        };
        let object = self.describe_object(result.meta.clone());
        // checked before the body is read into memory
        if object.size > max_bytes {
            let words = format!(
                "it has {} bytes, more than the limit of {max_bytes}",
                object.size
            );
            let error = HttpError::new(ErrorKind::Invalid, words).about(self.url(key));
            return Err(error.into());
        }
        let bytes = result
            .bytes()
            .await
            .map_err(|error| BodyFailure::reading(self.request_error(key, error)))?;
        Ok(ConditionalGet::Changed(bytes, object))
    }

    /// Streams an object from `offset` on.
    async fn stream(
        &self,
        key: &str,
        offset: u64,
    ) -> Result<(ByteStream, BucketObject), HttpError> {
        let range = (offset > 0).then_some(GetRange::Offset(offset));
        let options = GetOptions {
            range,
            ..GetOptions::default()
        };
        let result = self.get_version(key, options).await?;
        let object = self.describe_object(result.meta.clone());
        Ok((self.byte_stream(key, result), object))
    }

    /// Streams a range of an object. Fails if it was replaced since `object` was looked up.
    async fn stream_object(
        &self,
        object: &BucketObject,
        range: Range<u64>,
    ) -> Result<ByteStream, HttpError> {
        let key = &object.key;
        // the caller may read the stream slowly and meanwhile send other requests to this store
        let mut extensions = http::Extensions::new();
        extensions.insert(SlowReader);
        let range = Some(GetRange::Bounded(range));
        let options = GetOptions {
            if_match: object.etag.clone(),
            range,
            extensions,
            ..GetOptions::default()
        };
        let result = self.get_version(key, options).await?;
        // without an etag the request has no condition, so size and time are compared
        let found = self.describe_object(result.meta.clone());
        if (found.size, found.modified) != (object.size, object.modified) {
            return Err(self.replaced_error(key));
        }
        Ok(self.byte_stream(key, result))
    }

    /// Sends a read request. Its `options` may require a version of the object.
    async fn get_version(&self, key: &str, options: GetOptions) -> Result<GetResult, HttpError> {
        let result = self.0.cloud.get_opts(&self.path(key), options).await;
        result.map_err(|error| match error {
            object_store::Error::Precondition { .. } => self.replaced_error(key),
            error => self.request_error(key, error),
        })
    }

    fn byte_stream(&self, key: &str, result: GetResult) -> ByteStream {
        let url = self.url(key);
        result
            .into_stream()
            .map_err(move |error| request_error(&url, error))
            .boxed()
    }

    fn replaced_error(&self, key: &str) -> HttpError {
        let words = "the object was replaced while it was read; run the command again";
        HttpError::new(ErrorKind::Invalid, words).about(self.url(key))
    }

    /// Lists the objects whose keys begin with `folder` and a slash.
    pub fn list(&self, folder: &str) -> BoxStream<'static, Result<BucketObject, HttpError>> {
        let this = self.clone();
        let url = self.url(folder);
        let listed = self.0.cloud.list(Some(&self.path(folder)));
        listed
            .map(move |meta| {
                meta.map(|meta| this.describe_object(meta))
                    .map_err(|error| request_error(&url, error))
            })
            .boxed()
    }

    /// Returns a URL with which anybody can read an object for the duration `lasts`.
    ///
    /// # Errors
    /// If the store or the credentials cannot sign URLs.
    pub async fn presigned(&self, key: &str, lasts: Duration) -> Result<Url, HttpError> {
        let signer = self.0.cloud.signer().ok_or_else(|| {
            HttpError::new(ErrorKind::Local, "this object store cannot sign URLs")
                .about(self.url(key))
        })?;
        signer
            .signed_url(http::Method::GET, &self.path(key), lasts)
            .await
            .map_err(|error| self.request_error(key, error))
    }
}

// An object that is read by ranges, as long as it is not replaced.

/// An object whose size and version were looked up.
#[derive(Clone, derive_more::Debug)]
pub struct OpenObject {
    #[debug(skip)]
    bucket: Bucket,
    #[debug(skip)]
    object: BucketObject,
    url: String,
    version: String,
}

impl OpenObject {
    /// Looks up the object with this key.
    ///
    /// # Errors
    /// If it does not exist, or the request fails.
    pub fn open(bucket: &Bucket, key: &str) -> Result<OpenObject, HttpError> {
        let looked_up = bucket.clone();
        let owned_key = key.to_owned();
        // looked up once; all later reads require this etag, so that ranges fit together
        let found = block_on(async move { looked_up.head(&owned_key).await })?;
        let object = found.ok_or_else(|| {
            // `head` cannot distinguish a missing object from a missing bucket
            let words = "not found: the object or its bucket does not exist";
            HttpError::new(ErrorKind::NotFound, words).about(bucket.url(key))
        })?;
        Ok(OpenObject::of(bucket, object))
    }

    /// Reads the object with this key from `offset` on, without a look-up. Returns the reader and
    /// the size of the whole object in bytes. If a response breaks off, the rest of the same
    /// version is requested.
    ///
    /// # Errors
    /// If it does not exist, or the request fails.
    pub fn read(bucket: &Bucket, key: &str, offset: u64) -> Result<(RangeReader, u64), HttpError> {
        let requested = bucket.clone();
        let owned_key = key.to_owned();
        let (stream, object) = block_on(async move { requested.stream(&owned_key, offset).await })?;
        let size = object.size;
        let response = BlockingReader::open(async move { Ok(stream) })?;
        let object = Arc::new(OpenObject::of(bucket, object));
        let reader = RangeReader::continuing(object, offset..size, Box::new(response));
        Ok((reader, size))
    }

    fn of(bucket: &Bucket, object: BucketObject) -> OpenObject {
        // without an etag, the modification time identifies the version
        let version = object
            .etag
            .clone()
            .unwrap_or_else(|| format!("{:?}", object.modified));
        OpenObject {
            url: bucket.url(&object.key),
            bucket: bucket.clone(),
            object,
            version,
        }
    }

    /// The time when the object was written.
    pub fn modified(&self) -> SystemTime {
        self.object.modified
    }
}

impl RangeRead for OpenObject {
    fn url(&self) -> &str {
        &self.url
    }

    fn size(&self) -> u64 {
        self.object.size
    }

    fn version(&self) -> &str {
        &self.version
    }

    fn open(&self, range: Range<u64>) -> io::Result<Box<dyn Read + Send>> {
        let bucket = self.bucket.clone();
        let object = self.object.clone();
        let reader =
            BlockingReader::open(async move { bucket.stream_object(&object, range).await });
        Ok(Box::new(reader.map_err(io::Error::other)?))
    }
}

/// The metadata that an object store reports about an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BucketObject {
    /// The key, relative to the folder.
    pub key: String,
    /// The size of the object in bytes.
    pub size: u64,
    /// The etag, which changes with the content.
    pub etag: Option<String>,
    /// The version or generation. Conditions of Google Cloud Storage use it, those of other stores
    /// use the etag.
    pub version: Option<String>,
    /// When the object was written, by the clock of the store.
    pub modified: SystemTime,
}

impl BucketObject {
    /// Returns what identifies this write of the object, as far as the store distinguishes writes.
    pub fn version(&self) -> UpdateVersion {
        UpdateVersion {
            e_tag: self.etag.clone(),
            version: self.version.clone(),
        }
    }
}

/// The result of a conditional write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PutOutcome {
    /// The object was written and has this version.
    Written(UpdateVersion),
    /// The condition does not hold.
    Refused,
}

/// The result of a request that reads an object only if it has changed.
#[derive(Debug)]
pub enum ConditionalGet {
    /// The object still has the etag.
    Unchanged,
    /// The object has another etag, or the request named none. With the content of the object.
    Changed(Bytes, BucketObject),
    /// The object does not exist.
    Missing,
}

#[cfg(test)]
mod tests {
    use super::super::emulator::Emulator;
    use super::*;
    use object_store::PutMode;

    #[test]
    fn an_object_with_any_name_is_found_under_this_name() {
        let emulator = Emulator::default();
        let bucket = emulator.bucket(0, Arc::new(|_| Box::pin(async { true })));
        for key in [
            "kit-1.0~rc1+2.zst",
            "50 %.zst",
            "a#1/[x]?.zst",
            "sch\u{f6}n.zst",
            "%7E",
        ] {
            emulator.put(key, "content");
            let object = OpenObject::open(&bucket, key).unwrap();
            assert_eq!(object.url(), format!("s3://b/at/{key}"));
            let mut read = String::new();
            let mut reader = RangeReader::new(Arc::new(object), 1..7);
            reader.read_to_string(&mut read).unwrap();
            assert_eq!(read, "ontent", "{key}");
            let (bucket, owned) = (bucket.clone(), key.to_owned());
            block_on(async move {
                let written = bucket.put(&owned, "new".into(), &PutMode::Overwrite);
                written.await.map(drop)
            })
            .unwrap();
            assert_eq!(emulator.get(key).unwrap(), "new");
        }
    }

    #[tokio::test]
    async fn conditions_hold_behind_a_proxy_that_marks_etags_as_weak() {
        let emulator = Emulator::default();
        emulator.weaken_etags();
        emulator.put("key", "content");
        let bucket = emulator.bucket(0, Arc::new(|_| Box::pin(async { true })));
        let object = bucket.head("key").await.unwrap().unwrap();
        let part = bucket.stream_object(&object, 1..7).await.unwrap();
        let part: Vec<Bytes> = part.try_collect().await.unwrap();
        assert_eq!(part.concat(), b"ontent");
        let mut version = object.version();
        for new in ["first", "second"] {
            let condition = PutMode::Update(version);
            match bucket.put("key", new.into(), &condition).await.unwrap() {
                PutOutcome::Written(written) => version = written,
                PutOutcome::Refused => panic!("{new} was refused"),
            }
        }
    }

    #[tokio::test]
    async fn a_missing_bucket_differs_from_a_missing_object_if_the_response_says_so() {
        let emulator = Emulator::default();
        let bucket = emulator.bucket(0, Arc::new(|_| Box::pin(async { true })));
        assert!(bucket.get("key", 10).await.unwrap().is_none());
        emulator.remove_bucket();
        let error = bucket.get("key", 10).await.unwrap_err().to_string();
        assert!(
            error.contains("s3://b/at/key") && error.contains("the bucket does not exist"),
            "{error}"
        );
        assert!(bucket.head("key").await.unwrap().is_none());
    }
}
