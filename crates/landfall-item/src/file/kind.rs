//! A file as an item: what everybody else asks of it, and how it is locked.

use super::locked::{self, File};
use super::wish::{Checksum, WantedFile};
use super::written::{self, FileEntry};
use super::{parts, resolve};
use crate::resolver::Cause;
use crate::text::oversize;
use crate::{
    Checked, Contradiction, EntryReader, Exclude, FileForm, Found, ItemKind, LockedItem, Pins,
    Resolver, Stand,
};
use landfall_content::LockEntry;
use landfall_model::document::{Location, Node, SourceSpan};
use landfall_model::report::EntryKind;
use landfall_model::{Destination, DestinationMap, Digest};
use std::borrow::Cow;
use std::fmt;

impl LockedItem for File {
    fn kind(&self) -> EntryKind {
        EntryKind::File
    }

    fn name(&self) -> Cow<'_, str> {
        self.name.as_str().into()
    }

    fn digest(&self) -> &Digest {
        &self.digest
    }

    fn write(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        locked::write(self, out)
    }

    /// The sum of all sizes must fit, and the host of each URL must fit as the name of a folder.
    fn fault(&self) -> Option<String> {
        let url = || {
            let files = self.files();
            let url = files
                .iter()
                .flat_map(|file| &file.urls)
                .find(|url| !is_file_url(url))?;
            Some(format!("'{url}' is no http or https URL of a file"))
        };
        let member = || {
            let is_out = |member: &&String| {
                member
                    .split('/')
                    .any(|part| matches!(part, "" | "." | ".."))
            };
            let member = self.unpack.iter().find(is_out)?;
            Some(format!("'{member}' is no path of a member of an archive"))
        };
        let sizes = self
            .sidecars
            .iter()
            .map(|sidecar| sidecar.size)
            .chain([self.size]);
        oversize(sizes).or_else(url).or_else(member)
    }

    fn entry(&self) -> LockEntry {
        parts::entry(self)
    }

    fn destinations(&self, mapping: &DestinationMap) -> Vec<Destination> {
        vec![mapping.own_destination(&parts::file_repository(&self.name))]
    }

    fn tag(&self) -> String {
        parts::file_tag(&self.digest)
    }

    fn own_repository(&self) -> String {
        parts::file_repository(&self.name)
    }

    fn files(&self) -> Vec<FileForm<'_>> {
        let own = FileForm {
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
        let sidecars = self.sidecars.iter().map(|sidecar| FileForm {
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

impl ItemKind for File {
    const KIND: EntryKind = EntryKind::File;
    const HAS_FILES: bool = true;
    type Name = String;
    type Wish = WantedFile;
    type Written = FileEntry;

    fn is_named(text: &str) -> bool {
        text.contains("://")
    }

    fn key(&self) -> &String {
        &self.name
    }

    fn wished(wish: &WantedFile) -> &String {
        &wish.url
    }

    fn read(
        entry: &FileEntry,
        node: &Node,
        reader: &EntryReader<'_>,
    ) -> Checked<Vec<(WantedFile, SourceSpan)>> {
        written::read(entry, node, reader)
    }

    fn name_of(text: &str, span: &SourceSpan) -> Checked<String> {
        written::url_of(text, span)
    }

    fn exclusion(text: &str, span: &SourceSpan) -> Checked<Exclude> {
        written::url_of(text, span).map(Exclude::Url)
    }

    fn is_excluded(wish: &WantedFile, exclude: &Exclude) -> bool {
        matches!(exclude, Exclude::Url(url) if *url == wish.url)
    }

    fn alike(wish: &WantedFile, exclude: &Exclude) -> Option<String> {
        matches!(exclude, Exclude::Url(_)).then(|| wish.url.clone())
    }

    fn urls(wish: &WantedFile) -> Vec<&str> {
        std::iter::once(&wish.url)
            .chain(&wish.also)
            .map(String::as_str)
            .collect()
    }

    fn join(first: &mut WantedFile, second: &WantedFile) -> Result<(), Contradiction> {
        first.join(second)
    }

    async fn resolve(
        resolver: &Resolver,
        wish: &WantedFile,
        old: Option<&File>,
        pins: Pins,
    ) -> Found<File> {
        let checksum = wish.checksum.as_ref().map(Checksum::to_string);
        let same = |old: &&File| old.checksum == checksum && resolve::is_signed_as_asked(old, wish);
        if let (Some(old), Pins::Keep | Pins::Referrers) = (old.filter(same), pins) {
            // these are not asked for upstream: they follow the manifest
            let (also, mode, unpack) = (wish.also.clone(), wish.mode.clone(), wish.unpack.clone());
            let signed_by = old.signed_by.clone().filter(|_| wish.key.is_some());
            return Found::Kept(File {
                also,
                mode,
                signed_by,
                unpack,
                ..old.clone()
            });
        }
        match resolve::resolve(resolver, wish).await {
            Ok(file) => Found::New(file),
            Err(cause) => Found::Lost(old.filter(same).cloned(), cause),
        }
    }

    fn demanded(wish: &WantedFile) -> Option<(&Digest, &Location)> {
        match &wish.checksum {
            Some(Checksum::Digest(digest)) => Some((digest, &wish.at)),
            _ => None,
        }
    }

    /// Of a file with a checksum file, that must be there too.
    async fn stand(resolver: &Resolver, wish: &WantedFile) -> Result<Stand, Cause> {
        let asked = async {
            if let Some(Checksum::Sidecar(url)) = &wish.checksum {
                resolve::size_of(resolver, url).await?;
            }
            resolve::size_of(resolver, &wish.url).await
        };
        match asked.await {
            Err(cause) if cause.is_gone => Ok(Stand::Gone),
            size => Ok(Stand::There {
                digest: None,
                size: size?,
            }),
        }
    }

    async fn is_upstream(resolver: &Resolver, old: &File) -> Result<(), Cause> {
        resolve::size_of(resolver, &old.name).await.map(drop)
    }
}

/// The URLs of a sidecar. One that stands beside the file, as `<url>.sha256` does, stands beside
/// its other URLs too: who asks there for the file looks for the checksum there.
fn sidecar_urls<'a>(url: &'a str, file: &'a File) -> impl Iterator<Item = Cow<'a, str>> {
    let is_ending = |ending: &&str| !ending.is_empty() && !ending.contains(['/', '?']);
    let ending = url.strip_prefix(&*file.name).filter(is_ending);
    let beside = ending
        .filter(|_| !file.name.contains('?'))
        .into_iter()
        .flat_map(|ending| {
            let plain = file.also.iter().filter(|other| !other.contains('?'));
            plain.map(move |other| Cow::from(format!("{other}{ending}")))
        });
    std::iter::once(Cow::from(url)).chain(beside)
}

/// Whether it is an http or https URL with a host that can be the name of a folder.
pub(crate) fn is_file_url(text: &str) -> bool {
    // a parser of URLs leaves out line feeds
    let is_plain = !text.contains(char::is_control);
    is_plain
        && url::Url::parse(text).is_ok_and(|url| {
            let host = url.host_str();
            matches!(url.scheme(), "http" | "https")
                && host.is_some_and(|host| {
                    !host.is_empty() && !host.starts_with('.') && !host.contains('/')
                })
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sidecar;

    #[test]
    fn a_sidecar_beside_the_file_is_beside_its_other_urls_too() {
        let mut file = File::new(
            "https://dl.k8s.io/release/v1/kubelet",
            Digest::sha256(b"k"),
            1,
        );
        file.also = vec![
            "https://dl.k8s.io/v1/kubelet".into(),
            "https://h/get?file=kubelet".into(),
        ];
        let sidecar = |url: &str| Sidecar {
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
            "its name says nothing of the file's"
        );
    }
}
