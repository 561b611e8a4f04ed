//! The list of all kinds of items, and the names by which people refer to items.

use crate::chart::{ChartEntry, ChartName, ChartRequest, LockedChart};
use crate::file::{FileEntry, FileRequest, LockedFile};
use crate::git::{GitEntry, GitRequest, LockedGitRepository};
use crate::image::{ImageEntry, ImageRequest, LockedImage};
use crate::item_kind::{ItemKind, ManifestResult};
use crate::locked_item::LockedItem;
use crate::packages::{LockedPackageSet, PackageEntry, PackageSetRequest};
use crate::provider::{LockedProvider, ProviderEntry, ProviderName, ProviderRequest};
use crate::text::Exclusion;
use crate::{chart, file, git, image};
use landfall_model::document::SourceSpan;
use landfall_model::report::EntryKind;
use landfall_model::{ImageRef, ReferenceError, local_path};

/// Defines the kinds, in the order of the lock. A row has the type of the locked items, the variant
/// of [`LockedItem`], the kind in reports, the section, and the types of a name, a request and a
/// manifest entry.
macro_rules! item_kinds {
    ($(
        $item:ident $variant:ident $kind:ident $section:literal
        $name:ident $request:ident $entry:ident;
    )*) => {
        /// All kinds of items, in the order of the lock.
        pub fn item_kinds() -> impl Iterator<Item = EntryKind> {
            [$(EntryKind::$kind),*].into_iter()
        }

        $(impl ItemKind for $item {
            const KIND: EntryKind = EntryKind::$kind;
            const SECTION: &'static str = $section;
            type Name = $name;
            type Request = $request;
            type Entry = $entry;

            fn key(&self) -> &$name {
                &self.name
            }

            fn as_item(&self) -> LockedItem<'_> {
                LockedItem::$variant(self)
            }
        })*
    };
}

item_kinds! {
    LockedImage Image Image "images" ImageRef ImageRequest ImageEntry;
    LockedFile File File "files" String FileRequest FileEntry;
    LockedChart Chart Chart "charts" ChartName ChartRequest ChartEntry;
    LockedPackageSet Packages Package "packages" String PackageSetRequest PackageEntry;
    LockedGitRepository Git Git "git" String GitRequest GitEntry;
    LockedProvider Provider Provider "providers" ProviderName ProviderRequest ProviderEntry;
}

/// Whether items of this kind have files that can be exported.
pub fn has_files(kind: EntryKind) -> bool {
    matches!(
        kind,
        EntryKind::File | EntryKind::Chart | EntryKind::Package | EntryKind::Provider
    )
}

/// The kind of the item that `name`, as people write it, refers to.
pub fn kind_named(name: &str) -> EntryKind {
    // `provider:1.0` is an image
    if name.starts_with(ProviderName::PREFIX) && name.contains('/') {
        EntryKind::Provider
    } else if name.starts_with("git+http://") || name.starts_with("git+https://") {
        EntryKind::Git
    } else if name.starts_with("apt:") || name.starts_with("yum:") {
        EntryKind::Package
    } else if ChartName::is_named(name) {
        EntryKind::Chart
    } else if name.contains("://") || local_path(name).is_some() {
        EntryKind::File
    } else {
        EntryKind::Image
    }
}

/// The kind of the item that `text` refers to, and its name as the lock writes it.
///
/// # Errors
/// If `text` is not a valid name.
pub fn locked_name(text: &str, span: &SourceSpan) -> ManifestResult<(EntryKind, String)> {
    let kind = kind_named(text);
    let name = match kind {
        EntryKind::File if local_path(text).is_some() => text.to_owned(),
        EntryKind::File => file::url_of(text, span)?,
        EntryKind::Chart => chart::name_of(text, span)?.into(),
        EntryKind::Package => text.to_owned(),
        EntryKind::Git => {
            let url = text.strip_prefix(GitRequest::PREFIX).unwrap_or(text);
            format!("{}{}", GitRequest::PREFIX, git::url_of(url, span)?)
        }
        EntryKind::Provider => text
            .parse::<ProviderName>()
            .map_err(|error| span.fault(error.to_string(), None))?
            .to_string(),
        EntryKind::Image | EntryKind::Sidecar | EntryKind::Referrer | EntryKind::Variable => {
            image::reference_of(text, span)?.0.to_string()
        }
    };
    Ok((kind, name))
}

/// Parses `text` as an entry of `exclude:`.
///
/// # Errors
/// If `text` is not a valid name.
pub fn parse_exclusion(text: &str, span: &SourceSpan) -> ManifestResult<Exclusion> {
    if kind_named(text) != EntryKind::Image {
        return locked_name(text, span).map(|(_, name)| Exclusion::Url(name));
    }
    text.parse()
        .map(Exclusion::Reference)
        .map_err(|error: ReferenceError| {
            let help = "write a repository, as in quay.io/example/app, a full reference, or a \
                        file's URL";
            span.fault(error.to_string(), Some(help))
        })
}
