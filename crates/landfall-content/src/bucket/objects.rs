//! The objects of a folder: look, read, write, list, delete; uploads in parts.

use super::cloud_store::{CloudStore, open};
use super::error::failed;
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

/// Looks and deletions of single objects that are under way at once.
const LOOKS: usize = 16;

/// Whether these are one moment: a listing may have milliseconds, and a header has seconds.
fn is_about(one: SystemTime, other: SystemTime) -> bool {
    one.duration_since(other)
        .or_else(|_| other.duration_since(one))
        .is_ok_and(|apart| apart.as_secs() == 0)
}

/// A folder of an object store. Keys are relative to it. Cheap to clone.
#[derive(Clone)]
pub struct Bucket(Arc<BucketInner>);

struct BucketInner {
    cloud: Arc<dyn CloudStore>,
    location: BucketLocation,
    /// The store knows no conditions: whoever writes last wins.
    is_unconditional: AtomicBool,
}

/// An object, as its store tells of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BucketObject {
    /// Its key in the folder.
    pub key: String,
    /// Size in bytes.
    pub size: u64,
    /// What changes with its content.
    pub etag: Option<String>,
    /// What the store calls this version of it. Google's conditions are told by it, the others' by
    /// the etag.
    pub version: Option<String>,
    /// When it was written, by the store's clock.
    pub modified: SystemTime,
}

/// What tells one writing of an object from the next, as far as the store does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectVersion {
    etag: Option<String>,
    version: Option<String>,
}

impl BucketObject {
    /// What a condition knows it by.
    pub fn version(&self) -> ObjectVersion {
        ObjectVersion {
            etag: self.etag.clone(),
            version: self.version.clone(),
        }
    }
}

/// When an object is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PutCondition {
    /// Whatever stands there.
    Always,
    /// Unless one stands there.
    IfAbsent,
    /// If this one stands there still, as far as the store tells objects apart.
    IfSame(ObjectVersion),
}

/// What came of a conditional write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PutOutcome {
    /// It is written, and this is its version.
    Written(ObjectVersion),
    /// The condition does not hold.
    Refused,
}

/// An object that is read again.
#[derive(Debug)]
pub enum ConditionalGet {
    /// It still has its etag.
    No,
    /// It is another one.
    Yes(Bytes, BucketObject),
    /// There is none.
    Gone,
}

impl Bucket {
    /// The folder at `location`, through `transport`. No request is sent.
    ///
    /// # Errors
    /// A setting of the environment, or of the user's files, that cannot be used.
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

    /// A folder in memory.
    #[cfg(any(test, feature = "testkit"))]
    pub fn in_memory() -> Bucket {
        let location = BucketLocation {
            protocol: BucketProtocol::S3,
            bucket: "memory".into(),
            key: "at".into(),
        };
        Bucket::over(Arc::new(object_store::memory::InMemory::new()), &location)
    }

    /// Where it is.
    pub fn location(&self) -> &BucketLocation {
        &self.0.location
    }

    /// An object's location, as it is shown.
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

    pub(super) fn failed(&self, key: &str, error: object_store::Error) -> HttpError {
        failed(&self.shown(key), error)
    }

    fn object(&self, meta: ObjectMeta) -> BucketObject {
        let path = meta.location.to_string();
        let prefix = self.full("");
        let key = path
            .strip_prefix(&prefix)
            .unwrap_or(&path)
            .trim_start_matches('/')
            .to_owned();
        let (etag, version) = (meta.e_tag, meta.version);
        BucketObject {
            key,
            size: meta.size,
            etag,
            version,
            modified: meta.last_modified.into(),
        }
    }

    /// What the store tells of an object; `None` where there is none.
    ///
    /// # Errors
    /// When the store does not answer, or refuses.
    pub async fn look(&self, key: &str) -> Result<Option<BucketObject>, HttpError> {
        let options = GetOptions {
            head: true,
            ..GetOptions::default()
        };
        match self.0.cloud.get_opts(&self.path(key), options).await {
            Ok(result) => Ok(Some(self.object(result.meta))),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.failed(key, error)),
        }
    }

    /// A small object; `None` where there is none.
    ///
    /// # Errors
    /// As [`Bucket::look`]; and when it has more than `most` bytes.
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

    /// A small object, unless it has this etag.
    ///
    /// # Errors
    /// As [`Bucket::get`].
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
            Err(error) => return Err(self.failed(key, error)),
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
            .map_err(|error| self.failed(key, error))?;
        Ok(ConditionalGet::Yes(bytes, object))
    }

    /// Bytes of an object, which must have this etag where one is given.
    ///
    /// # Errors
    /// As [`Bucket::stream`]; and when it ends before the range does.
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
            .map_err(|error| self.replaced(key, error))?;
        let bytes = result
            .bytes()
            .await
            .map_err(|error| self.failed(key, error))?;
        if bytes.len() as u64 != wanted {
            let words = format!("{wanted} bytes were asked for, {} came", bytes.len());
            return Err(HttpError::new(ErrorKind::Invalid, words).about(self.shown(key)));
        }
        Ok(bytes)
    }

    /// An object from `offset` on, which must have this etag where one is given.
    ///
    /// # Errors
    /// When it is not there, is another one by now, or the store does not answer.
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
            .map_err(|error| self.replaced(key, error))?;
        let shown = self.shown(key);
        Ok(result
            .into_stream()
            .map_err(move |error| failed(&shown, error))
            .boxed())
    }

    /// A range of an object, which must be the one that was looked at.
    ///
    /// # Errors
    /// As [`Bucket::stream`].
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
            .map_err(|error| self.replaced(key, error))?;
        let found = self.object(result.meta.clone());
        if (found.size, found.modified) != (object.size, object.modified) {
            return Err(self.written_anew(key));
        }
        let shown = self.shown(key);
        Ok(result
            .into_stream()
            .map_err(move |error| failed(&shown, error))
            .boxed())
    }

    fn written_anew(&self, key: &str) -> HttpError {
        let words = "it was written anew while it was read; run it again";
        HttpError::new(ErrorKind::Invalid, words).about(self.shown(key))
    }

    fn replaced(&self, key: &str, error: object_store::Error) -> HttpError {
        match error {
            object_store::Error::Precondition { .. } => self.written_anew(key),
            error => self.failed(key, error),
        }
    }

    /// Writes a small object.
    ///
    /// # Errors
    /// When the store does not answer, or refuses for another reason than the condition.
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
                let error = self.failed(key, error);
                // a store of an older release
                if is_conditional && matches!(error.kind, ErrorKind::Status(501)) {
                    self.0.is_unconditional.store(true, Ordering::Relaxed);
                    return Box::pin(self.put(key, bytes, condition)).await;
                }
                Err(error)
            }
        }
    }

    /// The objects whose keys begin with `folder` and a slash.
    pub fn list(&self, folder: &str) -> BoxStream<'static, Result<BucketObject, HttpError>> {
        let (this, shown) = (self.clone(), self.shown(folder));
        let listed = self.0.cloud.list(Some(&self.path(folder)));
        listed
            .map(move |meta| {
                meta.map(|meta| this.object(meta))
                    .map_err(|error| failed(&shown, error))
            })
            .boxed()
    }

    /// Deletes objects, many with one request where the store can. One that is not there is no
    /// error.
    ///
    /// # Errors
    /// The first that cannot be deleted; others may be gone.
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
                Err(error) => return Err(self.failed("", error)),
            }
        }
        Ok(())
    }

    /// Deletes objects that were listed. At Google Cloud Storage, one that was written since is
    /// left, whenever the deletion is carried out. The crate has no condition for the others: an S3
    /// etag does not tell the same bytes apart anyway, and Azure's would have to be signed.
    ///
    /// # Errors
    /// As [`Bucket::delete`].
    pub async fn delete_listed(&self, objects: &[BucketObject]) -> Result<(), HttpError> {
        if self.0.location.protocol != BucketProtocol::Google {
            return self
                .delete(objects.iter().map(|object| object.key.clone()).collect())
                .await;
        }
        let deletions = futures_util::stream::iter(objects).map(|listed| async move {
            // a listing does not have the generation
            let found = self.look(&listed.key).await?;
            let same = found.filter(|found| is_about(found.modified, listed.modified));
            let Some(generation) = same.and_then(|found| found.version?.parse().ok()) else {
                return Ok(());
            };
            if_generation(generation, self.delete(vec![listed.key.clone()])).await
        });
        deletions.buffer_unordered(LOOKS).try_collect().await
    }

    /// A URL by which anybody reads an object for so long.
    ///
    /// # Errors
    /// When the account cannot sign URLs.
    pub async fn presigned(&self, key: &str, lasts: Duration) -> Result<Url, HttpError> {
        let unable = || {
            HttpError::new(ErrorKind::Local, "this object store signs no URLs")
                .about(self.shown(key))
        };
        let signer = self.0.cloud.signer().ok_or_else(unable)?;
        signer
            .signed_url(http::Method::GET, &self.path(key), lasts)
            .await
            .map_err(|error| self.failed(key, error))
    }
}
