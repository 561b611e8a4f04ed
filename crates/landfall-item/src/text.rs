//! Helpers to read manifest entries, to write values into the lock and other YAML documents, and to
//! check them.

use crate::item_kind::{EntryReader, ManifestResult};
use landfall_model::document::{SourceSpan, UpdateRule};
use landfall_model::{
    Digest, Failure, ImageRef, Platform, UpdatePolicy, is_same_host, is_same_url, without_scheme,
};
use std::fmt::{self, Display};

/// `text` as a YAML scalar: plain if that is safe in block and flow context, otherwise in double
/// quotes. It parses back to `text` for any content, since servers choose some of these texts.
pub fn quoted(text: &str) -> String {
    if is_plain_scalar(text) {
        text.into()
    } else {
        in_quotes(text)
    }
}

/// `text` as a YAML scalar in double quotes.
pub(crate) fn in_quotes(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    for c in serde_json::to_string(text).unwrap_or_default().chars() {
        if is_printable(c) {
            quoted.push(c);
        } else {
            quoted.push_str(&format!("\\u{:04x}", u32::from(c)));
        }
    }
    quoted
}

/// `platform` as a YAML scalar. Its variant may be any text without `/` (image-index.md).
pub(crate) fn platform_text(platform: &Platform) -> String {
    quoted(&platform.to_string())
}

/// Whether `text` is surely a string if it is written without quotes. Returns false in doubt.
fn is_plain_scalar(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_safe = |(at, byte): (usize, &u8)| {
        byte.is_ascii_alphanumeric()
            || b"._/+-@%~=&;() ".contains(byte)
            // a colon and a space would begin the value of a mapping
            || (*byte == b':' && bytes.get(at + 1).is_some_and(|&next| next != b' '))
    };
    // YAML 1.1 reads these words as booleans or null, and a text that begins with a digit may be a
    // number
    let reserved = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    bytes.first().is_some_and(u8::is_ascii_alphabetic)
        && !text.ends_with(' ')
        && !reserved.contains(&text.to_ascii_lowercase().as_str())
        && bytes.iter().enumerate().all(is_safe)
}

/// Whether `c` may be written as it is between double quotes. JSON allows more than YAML does (YAML
/// 1.2.2, sections 5.1 and 5.4).
fn is_printable(c: char) -> bool {
    !c.is_control()
        && !matches!(
            c,
            '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}'
        )
}

/// The largest plausible size of one blob in bytes: 8 PiB, the largest number that every JSON
/// parser reads exactly.
const LARGEST: u64 = 1 << 53;

/// A message if one of the sizes is implausible. Sizes in a lock may come from a hostile server.
pub(super) fn oversize(sizes: impl IntoIterator<Item = u64>) -> Option<String> {
    let size = sizes.into_iter().find(|size| *size > LARGEST)?;
    Some(format!("{size} bytes is not a plausible size"))
}

/// The tag of the artifact of a file, a set of packages or a git repository: the first 12 hex
/// digits of its digest.
pub(crate) fn digest_tag(digest: &Digest) -> String {
    digest.short(12)
}

/// Joins `folder`, which may be empty, and `path`.
pub(super) fn in_folder(folder: &str, path: &str) -> String {
    if folder.is_empty() {
        path.to_owned()
    } else {
        format!("{folder}/{path}")
    }
}

/// The host in the name of an item: the text before the first `/`, without a scheme. Empty if the
/// name has no host.
pub fn host_in(name: &str) -> &str {
    let rest = without_scheme(name);
    rest.split_once('/').map_or("", |(host, _)| host)
}

/// Two requests for one item that have different values of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldConflict {
    /// The name of the field in messages.
    pub field: &'static str,
    /// The value in the first request.
    pub first: String,
    /// The value in the second request.
    pub second: String,
}

impl FieldConflict {
    /// Rejects two values of `field` that differ. `describe` writes a value for messages.
    pub(super) fn check_equal<V: PartialEq>(
        field: &'static str,
        first: &V,
        second: &V,
        describe: impl Fn(&V) -> String,
    ) -> Result<(), FieldConflict> {
        if first == second {
            return Ok(());
        }
        Err(FieldConflict {
            field,
            first: describe(first),
            second: describe(second),
        })
    }
}

/// Sets `first` to `second` if only `second` has a value. Rejects two values that differ.
#[allow(
    clippy::ref_option,
    reason = "callers pass the same field of two requests"
)]
pub(super) fn merge_option<V: Clone + PartialEq + Display>(
    field: &'static str,
    first: &mut Option<V>,
    second: &Option<V>,
) -> Result<(), FieldConflict> {
    match (&*first, second) {
        (Some(a), Some(b)) => FieldConflict::check_equal(field, a, b, V::to_string),
        (None, Some(b)) => {
            *first = Some(b.clone());
            Ok(())
        }
        (_, None) => Ok(()),
    }
}

/// An entry of `exclude:` in a manifest: the items to omit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exclusion {
    /// All images of a repository, or one image if a tag or digest is written.
    Reference(ImageRef),
    /// The item with this URL or name.
    Url(String),
}

impl Exclusion {
    /// Whether the item with this URL or name is excluded.
    pub(super) fn matches_url(&self, name: &str) -> bool {
        matches!(self, Exclusion::Url(url) if is_same_url(url, name))
    }

    /// Whether `reference`, for which the manifest requires the digest `pin`, is excluded.
    pub(super) fn matches(&self, reference: &ImageRef, pin: Option<&Digest>) -> bool {
        let Exclusion::Reference(exclude) = self else {
            return false;
        };
        let digest = reference.digest.as_ref().or(pin);
        // an exclusion without a tag or digest matches every tag or digest
        is_same_host(&exclude.registry, &reference.registry)
            && exclude.repository == reference.repository
            && (exclude.tag.is_none() || exclude.tag == reference.tag)
            && (exclude.digest.is_none() || exclude.digest.as_ref() == digest)
    }

    /// `reference` in the form of this exclusion: a repository, or a full reference. `None` if this
    /// exclusion is a URL or name.
    pub(super) fn write_alike(&self, reference: &ImageRef) -> Option<String> {
        let Exclusion::Reference(exclude) = self else {
            return None;
        };
        Some(if exclude.is_pinned() {
            reference.to_string()
        } else {
            reference.name()
        })
    }
}

impl fmt::Display for Exclusion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Exclusion::Reference(reference) if reference.is_pinned() => reference.fmt(f),
            Exclusion::Reference(repository) => f.write_str(&repository.name()),
            Exclusion::Url(url) => f.write_str(url),
        }
    }
}

/// Checks `rule`, written at the node of `reader`, and returns it with the manifest's minimum age.
/// `what` names the kind of item in messages. `version` is the text that the policy may change, or
/// `None` if the item has no version.
pub(super) fn update_rule(
    rule: Option<&UpdateRule>,
    version: Option<&str>,
    what: &str,
    reader: EntryReader<'_>,
) -> ManifestResult<Option<UpdateRule>> {
    let Some(rule) = rule else {
        return Ok(None);
    };
    let completed = Some(rule.completed(reader.context.min_age.as_ref()));
    let at = reader.at("policy");
    let policy: UpdatePolicy = rule
        .policy
        .parse()
        .map_err(|error: Failure| at.fault(error.to_string(), error.help.as_deref()))?;
    if !policy.allows_other_versions() {
        if rule.keep.is_some() {
            let help = "write a policy such as `minor`, or remove `keep`";
            return Err(at.fault("`keep` needs a policy that moves versions", Some(help)));
        }
        return Ok(completed);
    }
    let (message, help) = match version {
        None => (
            format!("{what} without a tag has no version"),
            match what {
                "a repository" => "write one tag as `ref`, or `update: digest` for all refs",
                _ => "write its tag before the digest",
            },
        ),
        // `update` edits the text that contains the version, here the value of the variable
        Some(version) if version.contains("${") => (
            format!(
                "the version of this {} is in a variable",
                what.rsplit(' ').next().unwrap_or(what)
            ),
            "set the update policy at the variable",
        ),
        Some(_) => return Ok(completed),
    };
    Err(at.fault(message, Some(help)))
}

/// Rejects a value of `digest` that is not the digest in `ref`. `at` is the position of `digest`.
pub(super) fn check_ref_digest(
    in_ref: Option<&Digest>,
    digest: Option<&Digest>,
    at: &SourceSpan,
) -> ManifestResult<()> {
    match (in_ref, digest) {
        (Some(written), Some(digest)) if written != digest => {
            let message = format!("this digest differs from the one in `ref` ({written})");
            Err(at.fault(message, Some("keep the correct one")))
        }
        _ => Ok(()),
    }
}

/// Rejects `keep` at an entry that is always one item, such as a set of packages. `at` is the
/// position of `keep`.
pub(super) fn check_keeps_one(rule: &UpdateRule, at: &SourceSpan) -> ManifestResult<()> {
    if rule.keep.is_none() {
        return Ok(());
    }
    let help = "use a variable as version, and write `keep` there, as in `vars: {app: {value: \
                [v1.1.0, v1.2.0], update: {policy: minor, keep: 2}}}`";
    let message = "`keep` applies to variables, images and charts only";
    Err(at.fault(message, Some(help)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_their_host_in_front() {
        let names = [
            "quay.io/a/b:1",
            "https://dl.k8s.io/release/x",
            "oci://ghcr.io:443/c:1",
            "quickstart",
        ];
        assert_eq!(
            names.map(host_in),
            ["quay.io", "dl.k8s.io", "ghcr.io:443", ""]
        );
    }

    #[test]
    fn unusual_texts_parse_back_unchanged() {
        for text in [
            "0755", "a: b", "x #y", "", "true", "- a", "{a}", "a, b", "é", "a\nb", " a", "a ",
        ] {
            let document = format!("k: {}\nf: {{k: {}}}", quoted(text), quoted(text));
            let value: serde_json::Value = serde_yaml::from_str(&document).unwrap();
            assert_eq!(value["k"], text);
            assert_eq!(value["f"]["k"], text);
        }
    }
}
