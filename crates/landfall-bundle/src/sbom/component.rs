//! An item of a lock as a CycloneDX component.

use super::linked_documents::{LinkedDocument, ReferrerKind};
use landfall_content::LockEntry;
use landfall_model::report::EntryKind;
use landfall_model::{Algorithm, Digest, ImageRef};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The characters that a package URL percent-encodes: all except letters, digits and these
/// (purl-spec, "Character encoding").
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b':')
    .remove(b'/');

/// The characters that are percent-encoded in the name and the version of a package URL: those of
/// [`ENCODED`], colon and slash.
const IN_VERSION: &AsciiSet = &ENCODED.add(b':').add(b'/');

/// Properties of an item that its entry does not contain.
pub(super) struct ItemFacts<'a> {
    /// The reference of an image or a chart.
    pub(super) image: Option<&'a ImageRef>,
    /// The platforms of an image.
    pub(super) platforms: BTreeSet<String>,
    /// The licences that the image declares.
    pub(super) licences: Option<String>,
    /// The documents that refer to the item.
    pub(super) linked: &'a [LinkedDocument],
}

/// The component of an item; its `bom-ref` is the item's name in the lock.
pub(super) fn component(entry: &LockEntry, known: &ItemFacts<'_>) -> Value {
    let mut component = json!({
        "type": match entry.kind {
            EntryKind::Image => "container",
            EntryKind::Chart | EntryKind::Provider => "application",
            // a set of packages; each package is a component of its own
            EntryKind::Package => "data",
            _ => "file",
        },
        "bom-ref": entry.name,
        "properties": properties(entry, known),
    });
    // the digest of a git repository is over its refs, not over a file
    if entry.kind != EntryKind::Git {
        component["hashes"] = json!([hash(&entry.digest)]);
    }
    match known.image {
        Some(image) => {
            component["name"] = json!(image.name());
            component["version"] = json!(
                image
                    .tag
                    .clone()
                    // an image that is locked only by digest has no tag
                    .unwrap_or_else(|| entry.digest.to_string())
            );
            component["purl"] = json!(purl_of_image(image, &entry.digest));
        }
        None if entry.kind == EntryKind::Provider => {
            let (name, version) = entry.name.rsplit_once(':').unwrap_or((&entry.name, ""));
            component["name"] = json!(name);
            component["version"] = json!(version);
        }
        // a set has no package URL; its packages have one each
        None if entry.kind == EntryKind::Package => component["name"] = json!(entry.name),
        None if entry.kind == EntryKind::Git => {
            component["name"] = json!(entry.name);
            component["purl"] = json!(purl_of_repository(&entry.name));
        }
        None => {
            component["name"] = json!(entry.name);
            component["purl"] = json!(purl_of_file(&entry.name, &entry.digest));
        }
    }
    if let Some(licences) = &known.licences {
        component["licenses"] = license(licences);
    }
    let mut references: Vec<Value> = known.linked.iter().map(reference).collect();
    let has_url = !matches!(entry.kind, EntryKind::Package | EntryKind::Provider);
    if known.image.is_none() && has_url {
        let reference = match entry.name.strip_prefix("git+") {
            Some(url) if entry.kind == EntryKind::Git => json!({"type": "vcs", "url": url}),
            _ => json!({"type": "distribution", "url": entry.name}),
        };
        references.insert(0, reference);
    }
    if !references.is_empty() {
        component["externalReferences"] = json!(references);
    }
    component
}

/// A property in the namespace `landfall:`.
pub(super) fn property(name: &str, value: String) -> Value {
    json!({"name": format!("landfall:{name}"), "value": value})
}

/// The licences of a component. They are a name, not an SPDX expression, since images and packages
/// may declare any text.
pub(super) fn license(name: &str) -> Value {
    json!([{"license": {"name": name}}])
}

fn properties(entry: &LockEntry, known: &ItemFacts<'_>) -> Vec<Value> {
    let mut properties = vec![
        property("kind", entry.kind.to_string()),
        property("bytes", entry.size().to_string()),
    ];
    properties.extend(
        known
            .platforms
            .iter()
            .map(|platform| property("platform", platform.clone())),
    );
    properties
}

fn reference(linked: &LinkedDocument) -> Value {
    let kind = match linked.kind {
        ReferrerKind::Sbom => "bom",
        ReferrerKind::Attestation => "attestation",
        ReferrerKind::Signature => "digital-signature",
        ReferrerKind::Other => "other",
    };
    let mut reference = json!({
        "type": kind, "url": linked.url, "hashes": [hash(&linked.blob.digest)],
    });
    if let Some(format) = &linked.format {
        reference["comment"] = json!(format);
    }
    reference
}

/// A digest in the format of CycloneDX.
pub(super) fn hash(digest: &Digest) -> Value {
    let algorithm = match digest.algorithm() {
        Algorithm::Sha256 => "SHA-256",
        Algorithm::Sha512 => "SHA-512",
    };
    json!({"alg": algorithm, "content": digest.hex()})
}

/// `pkg:oci/…`: the last component of the repository, with the complete repository as a qualifier.
fn purl_of_image(image: &ImageRef, digest: &Digest) -> String {
    let name = image
        .repository
        .rsplit('/')
        .next()
        .unwrap_or(&image.repository);
    let tag = image
        .tag
        .as_deref()
        .map(|tag| format!("&tag={}", utf8_percent_encode(tag, ENCODED)))
        .unwrap_or_default();
    format!(
        "pkg:oci/{}@{}?repository_url={}{tag}",
        // the type `oci` requires a name in lower case
        utf8_percent_encode(&name.to_ascii_lowercase(), IN_VERSION),
        utf8_percent_encode(&digest.to_string(), IN_VERSION),
        utf8_percent_encode(&image.name(), ENCODED),
    )
}

/// `pkg:generic/…`: the last component of the URL, with the checksum and the URL as qualifiers.
fn purl_of_file(url: &str, digest: &Digest) -> String {
    format!(
        "pkg:generic/{}?checksum={digest}&download_url={}",
        last_component(url),
        utf8_percent_encode(url, ENCODED)
    )
}

/// `pkg:generic/…`: the last component of the URL, with the URL, including `git+`, as a qualifier.
fn purl_of_repository(name: &str) -> String {
    format!(
        "pkg:generic/{}?vcs_url={}",
        last_component(name.trim_end_matches(".git")),
        utf8_percent_encode(name, ENCODED)
    )
}

/// The last component of the path of a URL, encoded.
fn last_component(url: &str) -> impl std::fmt::Display {
    let path = url
        .split(['?', '#'])
        .next()
        .unwrap_or(url)
        .trim_end_matches('/');
    let name = path
        .rsplit('/')
        .next()
        .filter(|name| !name.is_empty())
        .unwrap_or("file");
    utf8_percent_encode(name, IN_VERSION)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn package_urls_follow_the_specification() {
        let digest: Digest = format!("sha256:{}", "1a".repeat(32)).parse().unwrap();
        let hex = digest.hex();
        let image: ImageRef = "localhost:5000/team/app_x:v1".parse().unwrap();
        let purl = purl_of_image(&image, &digest);
        let head =
            format!("pkg:oci/app_x@sha256%3A{hex}?repository_url=localhost:5000/team/app_x&tag=v1");
        assert_eq!(purl, head);
        let purl = purl_of_file("https://h.test/a b/v1.2+k/tool?x=1&y", &digest);
        let url = "https://h.test/a%20b/v1.2%2Bk/tool%3Fx%3D1%26y";
        assert_eq!(
            purl,
            format!("pkg:generic/tool?checksum=sha256:{hex}&download_url={url}")
        );
        let entry = LockEntry {
            name: "git+https://h.test/team/app.git".into(),
            kind: EntryKind::Git,
            digest: digest.clone(),
            layout_name: String::new(),
            top: landfall_model::Descriptor {
                digest: digest.clone(),
                size: 0,
                media_type: String::new().into(),
            },
            artifact_type: None,
            parts: Vec::new(),
            referrers: Vec::new(),
            referrer_blobs: std::collections::BTreeSet::new(),
        };
        let facts = ItemFacts {
            image: None,
            platforms: BTreeSet::new(),
            licences: None,
            linked: &[],
        };
        let repository = component(&entry, &facts);
        assert_eq!(repository["hashes"], Value::Null);
        let references = json!([{"type": "vcs", "url": "https://h.test/team/app.git"}]);
        assert_eq!(repository["externalReferences"], references);
        let purl = purl_of_repository("git+https://h.test/team/app.git");
        let url = "git%2Bhttps://h.test/team/app.git";
        assert_eq!(purl, format!("pkg:generic/app?vcs_url={url}"));
    }
}
