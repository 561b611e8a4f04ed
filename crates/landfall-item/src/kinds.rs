//! The list of all kinds of items.
//!
//! To add a kind, add a row to [`KIND_ROWS`], and a field to [`ItemRequests`], to the
//! [`Lock`](super::lockfile::Lock) and to the manifest's `ManifestDocument`. The compiler then
//! names each function that lists the kinds.

use super::chart::{ChartRequest, LockedChart};
use super::entry_reader::ManifestResult;
use super::exclusion::Exclusion;
use super::file::{FileRequest, LockedFile};
use super::image::{ImageRequest, LockedImage};
use super::item_kind::{ItemKind, ResolvableRequest};
#[cfg(any(test, feature = "testkit"))]
use super::note::{LockedNote, NoteRequest};
use super::packages::{LockedPackageSet, PackageSetRequest};
use landfall_model::document::{SourceLocation, SourceSpan};
use landfall_model::report::EntryKind;
use landfall_model::{Digest, ImageRef};

/// The functions of a kind that are chosen at run time, by the form of a name.
struct KindRow {
    kind: EntryKind,
    has_files: bool,
    is_name: fn(&str) -> bool,
    parse_name: fn(&str, &SourceSpan) -> ManifestResult<String>,
    parse_exclusion: fn(&str, &SourceSpan) -> ManifestResult<Exclusion>,
}

/// All kinds, in the order of the lock.
const KIND_ROWS: &[KindRow] = &[
    row::<LockedImage>(),
    row::<LockedFile>(),
    row::<LockedChart>(),
    row::<LockedPackageSet>(),
    #[cfg(any(test, feature = "testkit"))]
    row::<LockedNote>(),
];

const fn row<K: ItemKind>() -> KindRow {
    KindRow {
        kind: K::KIND,
        has_files: K::HAS_FILES,
        is_name: K::is_name,
        parse_name: K::parse_name,
        parse_exclusion: K::parse_exclusion,
    }
}

/// The requests of all kinds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ItemRequests {
    /// Requests for container images.
    pub images: Vec<ImageRequest>,
    /// Requests for plain files.
    pub files: Vec<FileRequest>,
    /// Requests for Helm charts.
    pub charts: Vec<ChartRequest>,
    /// The sets of OS packages.
    pub packages: Vec<PackageSetRequest>,
    /// The notes, a kind that only tests have.
    #[cfg(any(test, feature = "testkit"))]
    pub notes: Vec<NoteRequest>,
}

impl ItemRequests {
    /// Calls `visitor` with the requests of each kind, in the order of the lock.
    pub async fn visit(&self, visitor: &mut impl RequestVisitor) {
        // no `..`: requests that are missing here would be lost
        let ItemRequests {
            images,
            files,
            charts,
            packages,
            #[cfg(any(test, feature = "testkit"))]
            notes,
        } = self;
        visitor.visit(images).await;
        visitor.visit(files).await;
        visitor.visit(charts).await;
        visitor.visit(packages).await;
        #[cfg(any(test, feature = "testkit"))]
        visitor.visit(notes).await;
    }

    /// What every request says regardless of its kind, in the order of the lock.
    pub fn summaries(&self) -> impl Iterator<Item = RequestSummary<'_>> {
        let summaries = self.images.iter().map(RequestSummary::new);
        let summaries = summaries
            .chain(self.files.iter().map(RequestSummary::new))
            .chain(self.charts.iter().map(RequestSummary::new))
            .chain(self.packages.iter().map(RequestSummary::new));
        #[cfg(any(test, feature = "testkit"))]
        let summaries = summaries.chain(self.notes.iter().map(RequestSummary::new));
        summaries
    }
}

/// Handles the requests of any kind.
pub trait RequestVisitor {
    /// Handles all requests of one kind.
    fn visit<R: ResolvableRequest>(&mut self, requests: &[R]) -> impl Future<Output = ()>;
}

/// What a request says regardless of its kind.
#[derive(Debug, Clone)]
pub struct RequestSummary<'a> {
    /// The kind of the item.
    pub kind: EntryKind,
    /// The name under which the item is locked.
    pub name: String,
    /// The policy of [`UpdatableRequest::update_policy`](super::UpdatableRequest::update_policy).
    pub update_policy: Option<&'a str>,
    /// The reference of [`tagged_reference`](super::UpdatableRequest::tagged_reference).
    pub tagged_reference: Option<&'a ImageRef>,
    /// The digest of [`demanded_digest`](super::UpdatableRequest::demanded_digest).
    pub demanded_digest: Option<(&'a Digest, &'a SourceLocation)>,
}

impl<'a> RequestSummary<'a> {
    fn new<R: ResolvableRequest>(request: &'a R) -> RequestSummary<'a> {
        RequestSummary {
            kind: R::Item::KIND,
            name: request.name().to_string(),
            update_policy: request.update_policy(),
            tagged_reference: request.tagged_reference(),
            demanded_digest: request.demanded_digest(),
        }
    }
}

/// All kinds of items, in the order of the lock.
pub fn item_kinds() -> impl Iterator<Item = EntryKind> {
    KIND_ROWS.iter().map(|row| row.kind)
}

/// Whether items of this kind are files that can be exported.
pub fn has_files(kind: EntryKind) -> bool {
    KIND_ROWS
        .iter()
        .any(|row| row.kind == kind && row.has_files)
}

/// The kind of the item that `name`, as people write it, refers to.
pub fn kind_named(name: &str) -> EntryKind {
    row_for_name(name).kind
}

fn row_for_name(name: &str) -> &'static KindRow {
    // the more special kinds come later: the URL of a chart (`oci://…`) is a URL of a file, too
    KIND_ROWS
        .iter()
        .rfind(|row| (row.is_name)(name))
        .unwrap_or(&KIND_ROWS[0])
}

/// The kind of the item that `text` refers to, and its name as the lock writes it.
///
/// # Errors
/// If `text` is not a valid name.
pub fn locked_name(text: &str, span: &SourceSpan) -> ManifestResult<(EntryKind, String)> {
    let row = row_for_name(text);
    Ok((row.kind, (row.parse_name)(text, span)?))
}

/// Parses `text` as an entry of `exclude:`.
///
/// # Errors
/// If `text` is not a valid name.
pub fn parse_exclusion(text: &str, span: &SourceSpan) -> ManifestResult<Exclusion> {
    (row_for_name(text).parse_exclusion)(text, span)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lockfile::Lock;

    #[test]
    fn the_lock_has_a_section_for_every_kind_in_the_same_order() {
        let sections = Lock::default().section_kinds();
        assert_eq!(item_kinds().collect::<Vec<_>>(), sections);
    }
}
