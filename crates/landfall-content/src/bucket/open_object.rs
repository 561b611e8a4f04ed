//! An object that is read by ranges, as long as it is not replaced.

use super::block_on::{BlockingReader, block_on};
use super::bucket_object::BucketObject;
use super::objects::Bucket;
use crate::RangeRead;
use landfall_http::{ErrorKind, HttpError};
use std::fmt;
use std::io::{self, Read};
use std::ops::Range;
use std::time::SystemTime;

/// An object whose size and version were looked up.
#[derive(Clone)]
pub struct OpenObject {
    bucket: Bucket,
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
        let url = bucket.url(key);
        let looked_up = bucket.clone();
        let owned_key = key.to_owned();
        // looked up once; all later reads require this etag, so that ranges fit together
        let found = block_on(async move { looked_up.head(&owned_key).await })?;
        let object = found.ok_or_else(|| {
            // `head` cannot distinguish a missing object from a missing bucket
            let words = "not found: the object or its bucket does not exist";
            HttpError::new(ErrorKind::NotFound, words).about(&url)
        })?;
        // without an etag, the modification time identifies the version
        let version = object
            .etag
            .clone()
            .unwrap_or_else(|| format!("{:?}", object.modified));
        Ok(OpenObject {
            bucket: bucket.clone(),
            object,
            url,
            version,
        })
    }

    /// The time when the object was written.
    pub fn modified(&self) -> SystemTime {
        self.object.modified
    }
}

impl fmt::Debug for OpenObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenObject")
            .field("url", &self.url)
            .field("version", &self.version)
            .finish_non_exhaustive()
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
