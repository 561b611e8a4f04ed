//! The objects of a folder: reads, writes, lists and deletes them.

use super::cloud_store::{CloudStore, open};
use super::error::request_error;
use super::http_client::SlowReader;
use super::location::{BucketLocation, BucketProtocol};
use super::protocol_fixes::if_generation;
use bytes::Bytes;
use futures_util::stream::BoxStream;
use futures_util::{StreamExt, TryStreamExt};
use landfall_http::{ByteStream, ErrorKind, HttpError, Transport};
use object_store::path::Path;
use object_store::{
    GetOptions, GetRange, ObjectMeta, PutMode, PutOptions, PutPayload, UpdateVersion,
};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};
use url::Url;

/// How many single objects are deleted at the same time.
const CONCURRENT_DELETIONS: usize = 16;

/// Whether two times differ by less than a second: a listing may have milliseconds, and a header
/// has seconds.
fn is_same_second(one: SystemTime, other: SystemTime) -> bool {
    one.duration_since(other)
        .or_else(|_| other.duration_since(one))
        .is_ok_and(|apart| apart.as_secs() == 0)
}

/// A folder of an object store. Keys are relative to it. It is cheap to clone.
#[derive(Clone)]
pub struct Bucket(Arc<BucketInner>);

struct BucketInner {
    cloud: Arc<dyn CloudStore>,
    location: BucketLocation,
    /// Whether the store has refused conditional writes. Then the last write wins.
    is_unconditional: AtomicBool,
}

/// What an object store reports about an object.
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

/// Identifies one write of an object, as far as the store distinguishes them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectVersion {
    etag: Option<String>,
    version: Option<String>,
}

impl BucketObject {
    /// Returns the version for conditions.
    pub fn version(&self) -> ObjectVersion {
        ObjectVersion {
            etag: self.etag.clone(),
            version: self.version.clone(),
        }
    }
}

/// The condition under which an object is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PutCondition {
    /// No condition: an existing object is replaced.
    Always,
    /// Only if there is no object with this key.
    IfAbsent,
    /// Only if the object still has this version.
    IfSame(ObjectVersion),
}

/// The result of a conditional write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PutOutcome {
    /// The object was written and has this version.
    Written(ObjectVersion),
    /// The condition does not hold.
    Refused,
}

/// The result of reading an object unless it is unchanged.
#[derive(Debug)]
pub enum ConditionalGet {
    /// The object still has the etag.
    No,
    /// The object has another etag; this is its present content.
    Yes(Bytes, BucketObject),
    /// The object does not exist.
    Gone,
}

impl Bucket {
    /// Opens the folder at `location` without sending a request.
    ///
    /// # Errors
    /// If a setting in the environment or the user's configuration files is invalid.
    pub fn open(location: &BucketLocation, transport: &Transport) -> Result<Bucket, HttpError> {
        Ok(Bucket::over(open(location, transport)?, location))
    }

    pub(super) fn over(cloud: Arc<dyn CloudStore>, location: &BucketLocation) -> Bucket {
        Bucket(Arc::new(BucketInner {
            cloud,
            location: location.clone(),
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
        Bucket::over(Arc::new(object_store::memory::InMemory::new()), &location)
    }

    /// Returns the location of the folder.
    pub fn location(&self) -> &BucketLocation {
        &self.0.location
    }

    /// Returns the URL of an object, for messages.
    pub fn shown(&self, key: &str) -> String {
        BucketLocation {
            key: self.full(key),
            ..self.0.location.clone()
        }
        .to_string()
    }

    pub(super) fn cloud(&self) -> &dyn CloudStore {
        &*self.0.cloud
    }

    fn full(&self, key: &str) -> String {
        match self.0.location.key.as_str() {
            "" => key.to_owned(),
            prefix if key.is_empty() => prefix.to_owned(),
            prefix => format!("{prefix}/{key}"),
        }
    }

    pub(super) fn path(&self, key: &str) -> Path {
        Path::from(self.full(key))
    }

    pub(super) fn request_error(&self, key: &str, error: object_store::Error) -> HttpError {
        request_error(&self.shown(key), error)
    }

    fn object(&self, meta: ObjectMeta) -> BucketObject {
        let path = meta.location.to_string();
        let prefix = self.full("");
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

    /// Looks up an object. Returns `None` if it does not exist.
    ///
    /// # Errors
    /// If the request fails.
    pub async fn look(&self, key: &str) -> Result<Option<BucketObject>, HttpError> {
        let options = GetOptions {
            head: true,
            ..GetOptions::default()
        };
        match self.0.cloud.get_opts(&self.path(key), options).await {
            Ok(result) => Ok(Some(self.object(result.meta))),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.request_error(key, error)),
        }
    }

    /// Reads a small object. Returns `None` if it does not exist.
    ///
    /// # Errors
    /// If the request fails, or the object has more than `most` bytes.
    pub async fn get(
        &self,
        key: &str,
        most: u64,
    ) -> Result<Option<(Bytes, BucketObject)>, HttpError> {
        match self.get_changed(key, None, most).await? {
            ConditionalGet::Yes(bytes, object) => Ok(Some((bytes, object))),
            ConditionalGet::No | ConditionalGet::Gone => Ok(None),
        }
    }

    /// Reads a small object, unless it has this etag.
    ///
    /// # Errors
    /// Like [`Bucket::get`].
    pub async fn get_changed(
        &self,
        key: &str,
        etag: Option<&str>,
        most: u64,
    ) -> Result<ConditionalGet, HttpError> {
        let options = GetOptions {
            if_none_match: etag.map(str::to_owned),
            ..GetOptions::default()
        };
        let result = match self.0.cloud.get_opts(&self.path(key), options).await {
            Ok(result) => result,
            Err(object_store::Error::NotFound { .. }) => return Ok(ConditionalGet::Gone),
            Err(object_store::Error::NotModified { .. }) => return Ok(ConditionalGet::No),
            Err(error) => return Err(self.request_error(key, error)),
        };
        let object = self.object(result.meta.clone());
        if object.size > most {
            let words = format!(
                "it has {} bytes, more than the {most} that it may have",
                object.size
            );
            return Err(HttpError::new(ErrorKind::Invalid, words).about(self.shown(key)));
        }
        let bytes = result
            .bytes()
            .await
            .map_err(|error| self.request_error(key, error))?;
        Ok(ConditionalGet::Yes(bytes, object))
    }

    /// Reads a range of an object. If an etag is given, the object must have it.
    ///
    /// # Errors
    /// Like [`Bucket::stream`], or if the object ends before the range does.
    pub async fn range(
        &self,
        key: &str,
        range: Range<u64>,
        etag: Option<&str>,
    ) -> Result<Bytes, HttpError> {
        let wanted = range.end - range.start;
        let options = GetOptions {
            if_match: etag.map(str::to_owned),
            range: Some(GetRange::Bounded(range)),
            ..GetOptions::default()
        };
        let result = self
            .0
            .cloud
            .get_opts(&self.path(key), options)
            .await
            .map_err(|error| self.read_error(key, error))?;
        let bytes = result
            .bytes()
            .await
            .map_err(|error| self.request_error(key, error))?;
        if bytes.len() as u64 != wanted {
            let words = format!("{wanted} bytes were asked for, {} came", bytes.len());
            return Err(HttpError::new(ErrorKind::Invalid, words).about(self.shown(key)));
        }
        Ok(bytes)
    }

    /// Streams an object from `offset` on. If an etag is given, the object must have it.
    ///
    /// # Errors
    /// If the object does not exist or was replaced, or the request fails.
    pub async fn stream(
        &self,
        key: &str,
        offset: u64,
        etag: Option<&str>,
    ) -> Result<ByteStream, HttpError> {
        let range = (offset > 0).then_some(GetRange::Offset(offset));
        let options = GetOptions {
            if_match: etag.map(str::to_owned),
            range,
            ..GetOptions::default()
        };
        let result = self
            .0
            .cloud
            .get_opts(&self.path(key), options)
            .await
            .map_err(|error| self.read_error(key, error))?;
        let shown = self.shown(key);
        Ok(result
            .into_stream()
            .map_err(move |error| request_error(&shown, error))
            .boxed())
    }

    /// Streams a range of an object, which must not have been replaced since it was looked up.
    ///
    /// # Errors
    /// Like [`Bucket::stream`].
    pub async fn stream_of(
        &self,
        object: &BucketObject,
        range: Range<u64>,
    ) -> Result<ByteStream, HttpError> {
        let key = &object.key;
        let mut extensions = http::Extensions::new();
        extensions.insert(SlowReader);
        let range = Some(GetRange::Bounded(range));
        let options = GetOptions {
            if_match: object.etag.clone(),
            range,
            extensions,
            ..GetOptions::default()
        };
        let result = self
            .0
            .cloud
            .get_opts(&self.path(key), options)
            .await
            .map_err(|error| self.read_error(key, error))?;
        let found = self.object(result.meta.clone());
        if (found.size, found.modified) != (object.size, object.modified) {
            return Err(self.replaced_error(key));
        }
        let shown = self.shown(key);
        Ok(result
            .into_stream()
            .map_err(move |error| request_error(&shown, error))
            .boxed())
    }

    fn replaced_error(&self, key: &str) -> HttpError {
        let words = "the object was replaced while it was read; run it again";
        HttpError::new(ErrorKind::Invalid, words).about(self.shown(key))
    }

    /// Returns the error of a read: a failed condition means that the object was replaced.
    fn read_error(&self, key: &str, error: object_store::Error) -> HttpError {
        match error {
            object_store::Error::Precondition { .. } => self.replaced_error(key),
            error => self.request_error(key, error),
        }
    }

    /// Writes a small object.
    ///
    /// # Errors
    /// If the request fails for another reason than the condition.
    pub async fn put(
        &self,
        key: &str,
        bytes: Bytes,
        condition: &PutCondition,
    ) -> Result<PutOutcome, HttpError> {
        let is_unconditional = self.0.is_unconditional.load(Ordering::Relaxed);
        let mode = match condition {
            _ if is_unconditional => PutMode::Overwrite,
            PutCondition::Always => PutMode::Overwrite,
            PutCondition::IfAbsent => PutMode::Create,
            PutCondition::IfSame(ObjectVersion {
                etag: None,
                version: None,
            }) => PutMode::Overwrite,
            PutCondition::IfSame(ObjectVersion { etag, version }) => {
                PutMode::Update(UpdateVersion {
                    e_tag: etag.clone(),
                    version: version.clone(),
                })
            }
        };
        let is_conditional = mode != PutMode::Overwrite;
        let options = PutOptions {
            mode,
            ..PutOptions::default()
        };
        match self
            .0
            .cloud
            .put_opts(&self.path(key), PutPayload::from(bytes.clone()), options)
            .await
        {
            Ok(put) => Ok(PutOutcome::Written(ObjectVersion {
                etag: put.e_tag,
                version: put.version,
            })),
            Err(
                object_store::Error::AlreadyExists { .. }
                | object_store::Error::Precondition { .. },
            ) if is_conditional => Ok(PutOutcome::Refused),
            Err(error) => {
                let error = self.request_error(key, error);
                // older releases of some stores do not implement conditional writes
                if is_conditional && matches!(error.kind, ErrorKind::Status(501)) {
                    self.0.is_unconditional.store(true, Ordering::Relaxed);
                    return Box::pin(self.put(key, bytes, condition)).await;
                }
                Err(error)
            }
        }
    }

    /// Lists the objects whose keys begin with `folder` and a slash.
    pub fn list(&self, folder: &str) -> BoxStream<'static, Result<BucketObject, HttpError>> {
        let (this, shown) = (self.clone(), self.shown(folder));
        let listed = self.0.cloud.list(Some(&self.path(folder)));
        listed
            .map(move |meta| {
                meta.map(|meta| this.object(meta))
                    .map_err(|error| request_error(&shown, error))
            })
            .boxed()
    }

    /// Deletes objects, many with one request if the store supports that. Missing objects are no
    /// error.
    ///
    /// # Errors
    /// If an object cannot be deleted. Others may have been deleted already.
    pub async fn delete(&self, keys: Vec<String>) -> Result<(), HttpError> {
        let paths: Vec<_> = keys.iter().map(|key| Ok(self.path(key))).collect();
        let mut deleted = self
            .0
            .cloud
            .delete_stream(futures_util::stream::iter(paths).boxed());
        while let Some(result) = deleted.next().await {
            match result {
                Ok(_)
                | Err(
                    object_store::Error::NotFound { .. } | object_store::Error::Precondition { .. },
                ) => {}
                Err(error) => return Err(self.request_error("", error)),
            }
        }
        Ok(())
    }

    /// Deletes objects that were listed. In Google Cloud Storage, an object that was written again
    /// since then is kept, even if the deletion is delayed. For other stores the crate has no such
    /// condition: the etag of S3 is the same for equal bytes anyway, and that of Azure would have
    /// to be signed.
    ///
    /// # Errors
    /// Like [`Bucket::delete`].
    pub async fn delete_listed(&self, objects: &[BucketObject]) -> Result<(), HttpError> {
        if self.0.location.protocol != BucketProtocol::Google {
            return self
                .delete(objects.iter().map(|object| object.key.clone()).collect())
                .await;
        }
        let deletions = futures_util::stream::iter(objects).map(|listed| async move {
            // a listing does not have the generation
            let found = self.look(&listed.key).await?;
            let same = found.filter(|found| is_same_second(found.modified, listed.modified));
            let Some(generation) = same.and_then(|found| found.version?.parse().ok()) else {
                return Ok(());
            };
            if_generation(generation, self.delete(vec![listed.key.clone()])).await
        });
        deletions
            .buffer_unordered(CONCURRENT_DELETIONS)
            .try_collect()
            .await
    }

    /// Returns a URL with which anybody can read an object for this time.
    ///
    /// # Errors
    /// If the store or the credentials cannot sign URLs.
    pub async fn presigned(&self, key: &str, lasts: Duration) -> Result<Url, HttpError> {
        let unable = || {
            HttpError::new(ErrorKind::Local, "this object store cannot sign URLs")
                .about(self.shown(key))
        };
        let signer = self.0.cloud.signer().ok_or_else(unable)?;
        signer
            .signed_url(http::Method::GET, &self.path(key), lasts)
            .await
            .map_err(|error| self.request_error(key, error))
    }
}
