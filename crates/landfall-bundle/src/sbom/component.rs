//! An item of a lock as a CycloneDX component.

use super::{LinkedDocument, ReferrerKind};
use landfall_content::LockEntry;
use landfall_item::PackageDescription;
use landfall_model::report::EntryKind;
use landfall_model::{
    Algorithm, Digest, ImageRef, local_path, split_port, without_brackets, without_scheme,
};
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
        // content of the site itself, which nobody else can download
        None if local_path(&entry.name).is_some() => component["name"] = json!(entry.name),
        None => {
            component["name"] = json!(entry.name);
            component["purl"] = json!(purl_of_file(&entry.name, &entry.digest));
        }
    }
    if let Some(licences) = &known.licences {
        component["licenses"] = license(licences);
    }
    let mut references: Vec<Value> = known.linked.iter().map(reference).collect();
    let has_url = !matches!(entry.kind, EntryKind::Package | EntryKind::Provider)
        && local_path(&entry.name).is_none();
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

/// The characters that are percent-encoded in the components of a package's URL: those of
/// [`ENCODED`] and slash (ECMA-427, 5.4).
const IN_PACKAGE: &AsciiSet = &ENCODED.add(b'/');

/// The `bom-ref` of a package: its URL and digest, since a repository may replace the file at a
/// URL.
pub(super) fn package_ref(described: &PackageDescription<'_>) -> String {
    format!("{}@{}", described.package.url, described.package.digest)
}

/// The CycloneDX component of a package.
pub(super) fn package_component(described: &PackageDescription<'_>) -> Value {
    let package = described.package;
    let mut component = json!({
        "type": "library",
        "bom-ref": package_ref(described),
        "name": package.name,
        "version": package.version,
        "purl": purl(described),
        "hashes": [hash(&package.digest)],
        "properties": [property("bytes", package.size.to_string())],
        "externalReferences": [{"type": "distribution", "url": package.url}],
    });
    if let Some(vendor) = &described.vendor {
        component["publisher"] = json!(vendor);
    }
    if let Some(name) = &described.license {
        component["licenses"] = license(name);
    }
    component
}

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, IN_PACKAGE).to_string()
}

/// `pkg:deb/…` or `pkg:rpm/…` (purl-spec, types `deb` and `rpm`). It contains the repository, since
/// neither type has a default one.
fn purl(described: &PackageDescription<'_>) -> String {
    let package = described.package;
    // in package URLs, the epoch is a qualifier for rpm, but part of the version for deb
    let epoch = package
        .version
        .split_once(':')
        .filter(|_| !described.is_deb);
    let (epoch, version) = epoch.map_or((None, &*package.version), |(epoch, rest)| {
        (Some(epoch), rest)
    });
    let qualifiers = [
        ("arch", Some(&*package.arch)),
        ("distro", described.distro.as_deref()),
        ("epoch", epoch),
        ("repository_url", Some(described.repository)),
    ];
    let qualifiers = qualifiers
        .iter()
        .filter_map(|(key, value)| Some(format!("{key}={}", encoded((*value)?))));
    format!(
        "pkg:{}/{}/{}@{}?{}",
        if described.is_deb { "deb" } else { "rpm" },
        encoded(&namespace(
            described.vendor.as_deref(),
            described.repository
        )),
        encoded(&package.name),
        encoded(version),
        qualifiers.collect::<Vec<_>>().join("&")
    )
}

/// The namespace of a package URL: the first word of the vendor (`debian`, `rocky`), or `redhat`
/// for Red Hat. If there is no vendor, or its first word is not a plain name, the namespace is the
/// host of the repository.
fn namespace(vendor: Option<&str>, repository: &str) -> String {
    let vendor = vendor.unwrap_or_default().to_ascii_lowercase();
    let first = if vendor.starts_with("red hat") {
        "redhat"
    } else {
        vendor
            .split([' ', ',', '<', '('])
            .next()
            .unwrap_or_default()
    };
    // a vendor may be any text, such as a URL or an address
    let is_name = !first.is_empty()
        && first
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'+'));
    if is_name {
        return first.to_owned();
    }
    let rest = without_scheme(repository);
    let authority = rest.split('/').next().unwrap_or(rest);
    let (host, _) = split_port(authority);
    without_brackets(host).to_ascii_lowercase()
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
            top: landfall_model::Descriptor::new(digest.clone(), 0, String::new()),
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

#[cfg(test)]
mod package_tests {
    use super::*;
    use landfall_item::LockedPackage;
    use landfall_model::Digest;

    fn purl_of(
        is_deb: bool,
        [name, version, arch]: [&str; 3],
        vendor: &str,
        distro: Option<&str>,
    ) -> String {
        let package = LockedPackage {
            digest: Digest::sha256(b"x"),
            size: 1,
            name: name.into(),
            version: version.into(),
            arch: arch.into(),
            path: "p".into(),
            url: "https://h.test/p".into(),
        };
        purl(&PackageDescription {
            package: &package,
            is_deb,
            repository: "https://h.test:8443/a b",
            vendor: Some(vendor.to_owned()).filter(|vendor| !vendor.is_empty()),
            distro: distro.map(str::to_owned),
            license: None,
        })
    }

    #[test]
    fn package_urls_follow_the_specification() {
        let at = "repository_url=https:%2F%2Fh.test:8443%2Fa%20b";
        let cases = [
            (
                purl_of(
                    true,
                    ["attr", "1:2.4.47-2+b1", "amd64"],
                    "Debian",
                    Some("bookworm"),
                ),
                format!("pkg:deb/debian/attr@1:2.4.47-2%2Bb1?arch=amd64&distro=bookworm&{at}"),
            ),
            (
                purl_of(
                    false,
                    ["curl", "7.50.3-1.fc25", "i686"],
                    "Fedora Project",
                    None,
                ),
                format!("pkg:rpm/fedora/curl@7.50.3-1.fc25?arch=i686&{at}"),
            ),
            (
                purl_of(
                    false,
                    ["libstdc++", "1:11^git-2~x", "x86_64"],
                    "Red Hat, Inc.",
                    None,
                ),
                format!("pkg:rpm/redhat/libstdc%2B%2B@11%5Egit-2~x?arch=x86_64&epoch=1&{at}"),
            ),
            (
                purl_of(
                    false,
                    ["kubelet", "1.33-1", "noarch"],
                    "obs://build.test/isv:k",
                    None,
                ),
                format!("pkg:rpm/h.test/kubelet@1.33-1?arch=noarch&{at}"),
            ),
            (
                purl_of(true, ["a", "1", "all"], "", None),
                format!("pkg:deb/h.test/a@1?arch=all&{at}"),
            ),
        ];
        for (made, expected) in cases {
            assert_eq!(made, expected);
        }
    }
}
