//! Media types, of which a few stand in every lock thousands of times.

use super::media_type as known;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;

/// A media type. Those that most content has take no room of their own.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "String")]
pub struct MediaType(Cow<'static, str>);

const KNOWN: [&str; 13] = [
    known::OCI_INDEX,
    known::OCI_MANIFEST,
    known::OCI_CONFIG,
    known::OCI_EMPTY,
    known::DOCKER_LIST,
    known::DOCKER_MANIFEST,
    known::DOCKER_CONFIG,
    known::OCTETS,
    "application/vnd.oci.image.layer.v1.tar",
    "application/vnd.oci.image.layer.v1.tar+gzip",
    "application/vnd.oci.image.layer.v1.tar+zstd",
    "application/vnd.docker.image.rootfs.diff.tar.gzip",
    "application/vnd.in-toto+json",
];

impl<T: AsRef<str> + Into<String>> From<T> for MediaType {
    fn from(text: T) -> MediaType {
        let known = KNOWN.into_iter().find(|known| *known == text.as_ref());
        MediaType(known.map_or_else(|| Cow::Owned(text.into()), Cow::Borrowed))
    }
}

impl Deref for MediaType {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for MediaType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

impl fmt::Debug for MediaType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl PartialEq<str> for MediaType {
    fn eq(&self, other: &str) -> bool {
        **self == *other
    }
}

impl PartialEq<&str> for MediaType {
    fn eq(&self, other: &&str) -> bool {
        **self == **other
    }
}
