//! One object as bytes that are read by ranges, as long as it is the one that was opened.

use super::block_on::{BlockingReader, block_on};
use super::objects::{Bucket, BucketObject};
use crate::RangeRead;
use landfall_http::{ErrorKind, HttpError};
use std::fmt;
use std::io::{self, Read};
use std::ops::Range;

/// An object that was looked at.
#[derive(Clone)]
pub struct OpenObject {
    bucket: Bucket,
    object: BucketObject,
    url: String,
    version: String,
}

impl OpenObject {
    /// Looks at the object with this key.
    ///
    /// # Errors
    /// When there is none, or the store does not answer.
    pub fn open(bucket: &Bucket, key: &str) -> Result<OpenObject, HttpError> {
        let (url, looked) = (bucket.shown(key), (bucket.clone(), key.to_owned()));
        let found = block_on(async move { looked.0.look(&looked.1).await })?;
        let object = found
            .ok_or_else(|| HttpError::new(ErrorKind::NotFound, "it is not there").about(&url))?;
        // where there is no etag, when it was written tells it from others
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
        let (bucket, object) = (self.bucket.clone(), self.object.clone());
        let reader = BlockingReader::open(async move { bucket.stream_of(&object, range).await });
        Ok(Box::new(reader.map_err(io::Error::other)?))
    }
}
