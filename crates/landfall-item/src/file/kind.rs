//! A locked file as an item.

use super::locked::{LockedFile, UrlFile};
use super::manifest_entry;
use crate::artifact::{self, TITLE, URL};
use crate::text::{digest_tag, oversize};
use landfall_content::{EntryPart, LocalContent, LocalForm, LockEntry, PartOrigin};
use landfall_model::report::EntryKind;
use landfall_model::{Descriptor, Digest, is_path_below, local_path, media_type, without_brackets};
use serde_json::json;
use std::borrow::Cow;

impl LockedFile {
    /// The file and its sidecars, which clients download by URL.
    pub fn files(&self) -> Vec<UrlFile<'_>> {
        let own = UrlFile {
            kind: EntryKind::File,
            name: &self.name,
            urls: std::iter::once(&self.name)
                .chain(&self.also)
                .map(Cow::from)
                .collect(),
            digest: &self.digest,
            size: self.size,
            mode: self.mode.as_deref(),
            members: &self.unpack,
        };
        let sidecars = self.sidecars.iter().map(|sidecar| UrlFile {
            kind: EntryKind::Sidecar,
            name: &sidecar.url,
            urls: sidecar_urls(&sidecar.url, self).collect(),
            digest: &sidecar.digest,
            size: sidecar.size,
            mode: None,
            members: &[],
        });
        std::iter::once(own).chain(sidecars).collect()
    }

    /// Sizes must be plausible, and members of an archive must have valid paths. The host of each
    /// URL must be a valid folder name, since an export writes to `<host>/<path>`.
    pub(crate) fn implausibility(&self) -> Option<String> {
        let sizes = self.sidecars.iter().map(|sidecar| sidecar.size);
        if let Some(fault) = oversize(sizes.chain([self.size])) {
            return Some(fault);
        }
        let local = local_path(&self.name);
        let paths = self.path.as_deref().into_iter().chain(local);
        let mut paths =
            paths.filter(|path| !is_path_below(path) || path.contains(char::is_control));
        if let Some(path) = paths.next() {
            return Some(format!("'{path}' is not a path of a local file"));
        }
        if local.is_none() && (self.path.is_some() || self.packing.is_some()) {
            return Some(format!("'{}' is not the name of a local file", self.name));
        }
        let files = self.files();
        let mut urls = files.iter().flat_map(|file| &file.urls);
        if let Some(url) =
            urls.find(|url| !is_file_url(url) && local.is_none_or(|_| **url != self.name))
        {
            return Some(format!("'{url}' is not an http or https URL of a file"));
        }
        let mut members = self.unpack.iter();
        let member = members.find(|member| !manifest_entry::is_member_path(member))?;
        Some(format!("'{member}' is not a path in an archive"))
    }
}

/// The URLs of a sidecar. If its URL is that of the file plus an ending, as in `<url>.sha256`, it
/// is also served next to the file's other URLs, where clients expect it.
fn sidecar_urls<'a>(url: &'a str, file: &'a LockedFile) -> impl Iterator<Item = Cow<'a, str>> {
    // after a query, an ending would be part of the query rather than of the file name
    let ending = url.strip_prefix(&*file.name).filter(|ending| {
        !ending.is_empty() && !ending.contains(['/', '?']) && !file.name.contains('?')
    });
    let siblings = ending.into_iter().flat_map(|ending| {
        let plain = file.also.iter().filter(|other| !other.contains('?'));
        plain.map(move |other| Cow::from(format!("{other}{ending}")))
    });
    std::iter::once(Cow::from(url)).chain(siblings)
}

/// Whether `text` is an http or https URL whose host is a valid folder name.
pub(crate) fn is_file_url(text: &str) -> bool {
    // the URL parser drops line feeds, so they must be rejected before parsing
    if text.contains(char::is_control) {
        return false;
    }
    let Ok(url) = url::Url::parse(text) else {
        return false;
    };
    matches!(url.scheme(), "http" | "https")
        && url
            .host_str()
            .is_some_and(|host| !host.is_empty() && !host.starts_with('.') && !host.contains('/'))
}

// The manifest and blobs of a locked file, as parts to transfer.

/// Lists the parts of a file.
pub(crate) fn entry(file: &LockedFile) -> LockEntry {
    let local = local_path(&file.name).map(|_| {
        PartOrigin::Local(LocalContent {
            path: file.path.clone(),
            form: file.packing.map_or(LocalForm::File, LocalForm::Folder),
        })
    });
    let layers = std::iter::once((&file.name, &file.digest, file.size)).chain(
        file.sidecars
            .iter()
            .map(|sidecar| (&sidecar.url, &sidecar.digest, sidecar.size)),
    );
    let layers: Vec<(&String, Descriptor)> = layers
        .map(|(url, digest, size)| {
            (
                url,
                Descriptor::new(digest.clone(), size, media_type::OCTETS),
            )
        })
        .collect();
    let mut parts = vec![artifact::empty_config()];
    let annotated = layers
        .iter()
        .map(|(url, blob)| artifact::layer(blob, json!({URL: url, TITLE: title(url)})));
    let manifest = artifact::manifest(
        media_type::LANDFALL_FILE,
        &parts[0].descriptor,
        annotated.collect(),
        json!({URL: file.name, TITLE: title(&file.name)}),
    );
    parts.extend(layers.into_iter().map(|(url, descriptor)| EntryPart {
        descriptor,
        origin: match &local {
            Some(local) if *url == file.name => local.clone(),
            _ => PartOrigin::Url(url.clone()),
        },
    }));
    artifact::entry(
        EntryKind::File,
        file.name.clone(),
        &file.digest,
        format!(
            "{}:{}",
            file_repository(&file.name),
            digest_tag(&file.digest)
        ),
        media_type::LANDFALL_FILE,
        parts,
        manifest,
    )
}

/// The last component of the URL's path, or the host if the path ends with `/`.
fn title(url: &str) -> String {
    if let Some(path) = local_path(url) {
        return path.rsplit('/').next().unwrap_or(path).to_owned();
    }
    let parsed = url::Url::parse(url).ok();
    let last = parsed
        .as_ref()
        .and_then(|url| url.path_segments()?.next_back())
        .filter(|last| !last.is_empty());
    let host = parsed.as_ref().and_then(|url| url.host_str());
    last.or(host).unwrap_or(url).to_owned()
}

/// The repository of a file's artifact: `files/<host>/<first 16 hex of the URL's SHA-256>`.
/// The host of a local file is `local`. `_<port>` follows the host if the URL has a port other than
/// the default. The hash replaces the URL's path, which may contain characters that a repository
/// does not allow.
pub fn file_repository(url: &str) -> String {
    let host = url::Url::parse(url).ok().and_then(|url| {
        let port = url
            .port()
            .map(|port| format!("_{port}"))
            .unwrap_or_default();
        url.host_str()
            .map(|host| format!("{}{port}", repository_component(host)))
    });
    let local = local_path(url).map(|_| "local".into());
    let host = host
        .or(local)
        .unwrap_or_else(|| "unknown".into())
        .to_ascii_lowercase();
    format!("files/{host}/{}", Digest::sha256(url.as_bytes()).short(16))
}

/// Returns `host` as a component of a repository path. The component must not contain the brackets
/// and colons of an IPv6 address, and must begin and end with a letter or digit.
fn repository_component(host: &str) -> String {
    let mut component = without_brackets(host).replace(':', "-");
    if component.starts_with('-') {
        component.insert(0, '0');
    }
    if component.ends_with('-') {
        component.push('0');
    }
    component
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LockedSidecar;
    use landfall_model::Manifest;

    #[test]
    fn a_sidecar_next_to_the_file_is_served_next_to_its_other_urls() {
        let mut file = LockedFile::new(
            "https://dl.k8s.io/release/v1/kubelet",
            Digest::sha256(b"k"),
            1,
        );
        file.also = vec![
            "https://dl.k8s.io/v1/kubelet".into(),
            "https://h/get?file=kubelet".into(),
        ];
        let sidecar = |url: &str| LockedSidecar {
            url: url.into(),
            digest: Digest::sha256(url.as_bytes()),
            size: 1,
        };
        let beside = sidecar("https://dl.k8s.io/release/v1/kubelet.sha256");
        file.sidecars = vec![beside, sidecar("https://dl.k8s.io/release/v1/SHA256SUMS")];
        let files = file.files();
        let urls = |at: usize| {
            files[at]
                .urls
                .iter()
                .map(AsRef::as_ref)
                .collect::<Vec<&str>>()
        };
        let both = [
            "https://dl.k8s.io/release/v1/kubelet.sha256",
            "https://dl.k8s.io/v1/kubelet.sha256",
        ];
        assert_eq!(urls(1), both);
        assert_eq!(
            urls(2),
            ["https://dl.k8s.io/release/v1/SHA256SUMS"],
            "its URL does not begin with the file's"
        );
    }

    #[test]
    fn a_file_is_an_artifact_with_its_sidecars_as_layers() {
        let file = LockedFile {
            name: "https://dl.k8s.io/v1/kubelet".into(),
            digest: Digest::sha256(b"kubelet"),
            size: 7,
            checksum: None,
            sidecars: vec![LockedSidecar {
                url: "https://dl.k8s.io/v1/kubelet.sha256".into(),
                digest: Digest::sha256(b"sum"),
                size: 3,
            }],
            ..LockedFile::new("", Digest::sha256(b""), 0)
        };
        let entry = entry(&file);
        assert!(entry.layout_name.starts_with("files/dl.k8s.io/"));
        let PartOrigin::Computed(bytes) = &entry.parts[3].origin else {
            panic!("not computed")
        };
        let (manifest, kind) = Manifest::parse(bytes, None).unwrap();
        assert_eq!(kind, media_type::OCI_MANIFEST);
        let Manifest::Image {
            layers,
            artifact_type,
            ..
        } = manifest
        else {
            panic!("no image")
        };
        assert_eq!(
            (layers.len(), artifact_type.as_str()),
            (2, media_type::LANDFALL_FILE)
        );
        assert_eq!(
            entry.parts.iter().filter(|part| part.is_manifest()).count(),
            1
        );
    }

    #[test]
    fn the_repository_of_a_file_contains_the_host_of_its_url() {
        let repository = file_repository("https://dl.k8s.io/x");
        assert!(repository.starts_with("files/dl.k8s.io/") && repository.len() == 16 + 16);
        for (url, component) in [
            ("http://[::1]:8080/x", "files/0--1_8080/"),
            ("http://[fd00::]/x", "files/fd00--0/"),
        ] {
            let repository = file_repository(url);
            assert!(repository.starts_with(component), "{repository}");
            assert!(landfall_model::is_repository(&repository), "{repository}");
        }
    }
}
