//! A locked file as an item.

use super::locked::{self, LockedFile};
use super::manifest_entry::FileEntry;
use super::request::FileRequest;
use super::{manifest_entry, parts};
use crate::text::oversize;
use crate::{
    AuditedItem, Exclusion, ItemIdentity, ItemKind, LockedItem, ManifestResult, PushedItem,
    ServedItem, UrlFile,
};
use landfall_content::{BlobRead, LockEntry};
use landfall_model::document::SourceSpan;
use landfall_model::report::EntryKind;
use landfall_model::sign::SignatureTime;
use landfall_model::{Destination, DestinationMap, Digest};
use landfall_signature::{RuleSubject, SignaturePolicy, VerifiedSignature};
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

impl ItemIdentity for LockedFile {
    fn kind(&self) -> EntryKind {
        EntryKind::File
    }

    fn name(&self) -> Cow<'_, str> {
        self.name.as_str().into()
    }

    fn digest(&self) -> &Digest {
        &self.digest
    }

    fn source(&self) -> String {
        self.name.clone()
    }
}

impl PushedItem for LockedFile {
    fn destinations(&self, mapping: &DestinationMap) -> Vec<Destination> {
        vec![mapping.own_destination(&parts::file_repository(&self.name))]
    }

    fn tag(&self) -> String {
        parts::file_tag(&self.digest)
    }
}

impl AuditedItem for LockedFile {}

impl ServedItem for LockedFile {
    fn own_repository(&self) -> String {
        parts::file_repository(&self.name)
    }

    fn files(&self) -> Vec<UrlFile<'_>> {
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
}

impl LockedItem for LockedFile {
    fn write(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        locked::write(self, out)
    }

    /// Sizes must be plausible, and members of an archive must have valid paths. The host of each
    /// URL must be a valid folder name, since an export writes to `<host>/<path>`.
    fn implausibility(&self) -> Option<String> {
        let sizes = self.sidecars.iter().map(|sidecar| sidecar.size);
        if let Some(fault) = oversize(sizes.chain([self.size])) {
            return Some(fault);
        }
        let files = self.files();
        let mut urls = files.iter().flat_map(|file| &file.urls);
        if let Some(url) = urls.find(|url| !is_file_url(url)) {
            return Some(format!("'{url}' is not an http or https URL of a file"));
        }
        let mut members = self.unpack.iter();
        let member = members.find(|member| !manifest_entry::is_member_path(member))?;
        Some(format!("'{member}' is not a path in an archive"))
    }

    fn entry(&self) -> LockEntry {
        parts::entry(self)
    }

    fn signature_subject(&self) -> Option<RuleSubject> {
        Some(self.rule_subject())
    }

    fn recorded_signatures(&self) -> &[VerifiedSignature] {
        &self.verified
    }

    fn verify_signatures(
        &self,
        policy: &SignaturePolicy,
        blobs: &Arc<dyn BlobRead>,
        time: SignatureTime,
    ) -> Result<Vec<VerifiedSignature>, String> {
        let verified = self.verified_signatures(policy, &**blobs, time);
        verified.map_err(|error| error.to_string())
    }
}

impl ItemKind for LockedFile {
    const KIND: EntryKind = EntryKind::File;
    const SECTION: &'static str = "files";
    const HAS_FILES: bool = true;
    type Name = String;
    type Request = FileRequest;
    type Entry = FileEntry;

    fn is_name(text: &str) -> bool {
        text.contains("://")
    }

    fn key(&self) -> &String {
        &self.name
    }

    fn parse_name(text: &str, span: &SourceSpan) -> ManifestResult<String> {
        manifest_entry::url_of(text, span)
    }

    fn parse_exclusion(text: &str, span: &SourceSpan) -> ManifestResult<Exclusion> {
        manifest_entry::url_of(text, span).map(Exclusion::Url)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LockedSidecar;

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
}
