//! The URL of a folder in an object store, such as `s3://bucket/prefix`.

use std::fmt;
use std::str::FromStr;

/// The protocol of an object store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BucketProtocol {
    /// Amazon S3 and compatible stores.
    S3,
    /// Google Cloud Storage, with the scheme `gs://`.
    Google,
    /// Azure Blob Storage, with the scheme `az://`.
    Azure,
}

/// The schemes of URLs with their protocols.
const SCHEMES: [(&str, BucketProtocol); 3] = [
    ("s3://", BucketProtocol::S3),
    ("gs://", BucketProtocol::Google),
    ("az://", BucketProtocol::Azure),
];

/// The location of a folder or an object in an object store: `s3://bucket/prefix`,
/// `gs://bucket/prefix` or `az://container/prefix`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct BucketLocation {
    /// The protocol of the store.
    pub protocol: BucketProtocol,
    /// The name of the bucket or container.
    pub bucket: String,
    /// The key of the object or the prefix of the folder, without a slash at either end; may be
    /// empty.
    pub key: String,
}

/// Why a string is not a location in an object store.
#[derive(Debug, thiserror::Error)]
#[error(
    "'{0}' is not a location in an object store: write s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or \
     az://CONTAINER/PREFIX"
)]
pub struct BucketLocationError(String);

impl BucketLocation {
    /// Whether a string begins with the scheme of an object store, even if the rest is invalid.
    pub fn has_scheme(text: &str) -> bool {
        SCHEMES.iter().any(|(scheme, _)| text.starts_with(scheme))
    }

    /// Splits the location of an object into its folder and its name.
    pub fn split(&self) -> (BucketLocation, &str) {
        let (folder, name) = self.key.rsplit_once('/').unwrap_or(("", &self.key));
        (
            BucketLocation {
                key: folder.to_owned(),
                ..self.clone()
            },
            name,
        )
    }
}

impl FromStr for BucketLocation {
    type Err = BucketLocationError;

    fn from_str(text: &str) -> Result<BucketLocation, BucketLocationError> {
        parse(text).ok_or_else(|| BucketLocationError(text.to_owned()))
    }
}

fn parse(text: &str) -> Option<BucketLocation> {
    let (rest, protocol) = SCHEMES
        .iter()
        .find_map(|(scheme, protocol)| Some((text.strip_prefix(scheme)?, *protocol)))?;
    let (bucket, key) = rest.split_once('/').unwrap_or((rest, ""));
    let key = key.trim_end_matches('/');
    let is_bucket_name = !bucket.is_empty()
        && bucket
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_'));
    let is_key = key.is_empty() || key.split('/').all(is_key_part);
    (is_bucket_name && is_key).then(|| BucketLocation {
        protocol,
        bucket: bucket.into(),
        key: key.into(),
    })
}

/// Whether a part of a key is safe: `..` and empty parts would address other keys than the user
/// sees.
fn is_key_part(part: &str) -> bool {
    !part.is_empty() && part != "." && part != ".." && !part.contains(char::is_control)
}

impl fmt::Display for BucketLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = SCHEMES
            .iter()
            .find(|(_, protocol)| *protocol == self.protocol)
            .map_or("", |(scheme, _)| scheme);
        let slash = if self.key.is_empty() { "" } else { "/" };
        write!(f, "{scheme}{}{slash}{}", self.bucket, self.key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_is_a_scheme_a_bucket_and_a_key() {
        for (text, protocol, bucket, key) in [
            ("s3://b", BucketProtocol::S3, "b", ""),
            ("s3://b.c-d/one/two", BucketProtocol::S3, "b.c-d", "one/two"),
            ("gs://b_1/one", BucketProtocol::Google, "b_1", "one"),
            ("az://box/a b", BucketProtocol::Azure, "box", "a b"),
        ] {
            let location: BucketLocation = text.parse().unwrap();
            assert_eq!(
                (location.protocol, &*location.bucket, &*location.key),
                (protocol, bucket, key)
            );
            assert_eq!(location.to_string(), text);
            assert!(BucketLocation::has_scheme(text));
        }
        assert_eq!("s3://b/one/".parse::<BucketLocation>().unwrap().key, "one");
        for bad in [
            "s3://",
            "s3:///key",
            "s3://b//c",
            "s3://b/../c",
            "s3://user@b/c",
            "https://b/c",
            "b/c",
        ] {
            assert!(
                bad.parse::<BucketLocation>()
                    .unwrap_err()
                    .to_string()
                    .contains(bad),
                "{bad}"
            );
        }
        assert!(!BucketLocation::has_scheme("./s3:/b"));
    }
}
