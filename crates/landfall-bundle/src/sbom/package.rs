//! A package of a set as a CycloneDX component.

use super::component::{hash, license, property};
use landfall_item::PackageDescription;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

/// The characters that the components of a package URL percent-encode: all except letters, digits
/// and these (ECMA-427, 5.4).
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b':');

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
    utf8_percent_encode(text, ENCODED).to_string()
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
    let rest = repository
        .split_once("://")
        .map_or(repository, |(_, rest)| rest);
    let authority = rest.split('/').next().unwrap_or(rest);
    let host = match authority
        .strip_prefix('[')
        .and_then(|ipv6| ipv6.split_once(']'))
    {
        Some((address, _)) => address,
        None => authority.split(':').next().unwrap_or(authority),
    };
    host.to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
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
