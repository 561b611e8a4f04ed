//! One manifest with its variables and lists expanded, before it is merged with others.

use crate::lockfile::{AcceptedLoss, Endpoint};
#[cfg(any(test, feature = "testkit"))]
use crate::note::NoteRequest;
use crate::{
    ChartRequest, Exclusion, FileRequest, GitRequest, ImageRequest, ItemRequest, PackageSetRequest,
    ProviderRequest,
};
use landfall_model::MinimumAge;
use landfall_model::document::SourceSpan;
use landfall_signature::SignaturePolicy;
use std::path::PathBuf;

/// The requests of one manifest, each with its position in the file.
#[derive(Debug, Default)]
pub(super) struct ExpandedManifest {
    /// The `metadata.name` of the manifest.
    pub(super) name: Option<String>,
    pub(super) images: Vec<Located<ImageRequest>>,
    pub(super) files: Vec<Located<FileRequest>>,
    pub(super) charts: Vec<Located<ChartRequest>>,
    pub(super) packages: Vec<Located<PackageSetRequest>>,
    pub(super) git: Vec<Located<GitRequest>>,
    pub(super) providers: Vec<Located<ProviderRequest>>,
    #[cfg(any(test, feature = "testkit"))]
    pub(super) notes: Vec<Located<NoteRequest>>,
    pub(super) missing: Vec<Located<AcceptedLoss>>,
    pub(super) endpoints: Vec<Located<Endpoint>>,
    pub(super) exclude: Vec<Located<Exclusion>>,
    /// The rules for the signatures that items must have.
    pub(super) signatures: SignaturePolicy,
    /// The lists that have a `from`.
    pub(super) list_sources: Vec<ListSource>,
    /// The trust roots that have a `from`.
    pub(super) trust_root_sources: Vec<TrustRootSource>,
}

impl ExpandedManifest {
    /// The sections with requests, in the order of the lock.
    pub(super) fn sections(&self) -> Vec<&dyn RequestSection> {
        vec![
            &self.images,
            &self.files,
            &self.charts,
            &self.packages,
            &self.git,
            &self.providers,
            #[cfg(any(test, feature = "testkit"))]
            &self.notes,
        ]
    }

    /// Whether the manifest has no requests, accepted losses, endpoints or exclusions.
    pub(super) fn is_empty(&self) -> bool {
        self.sections().into_iter().all(RequestSection::is_empty)
            && self.missing.is_empty()
            && self.endpoints.is_empty()
            && self.exclude.is_empty()
    }
}

/// The requests for items of one kind, as a list that does not depend on their type.
pub(super) trait RequestSection {
    fn is_empty(&self) -> bool;

    /// Whether locking one of the items may find another item that `exclusion` removes.
    fn may_find(&self, exclusion: &Exclusion) -> bool;

    /// Whether `exclusion` removes one of the requests.
    fn has_excluded(&self, exclusion: &Exclusion) -> bool;

    /// The names of the items that an exclusion of the same variant as `exclusion` can remove.
    fn names_like(&self, exclusion: &Exclusion) -> Vec<String>;
}

impl<R: ItemRequest> RequestSection for Vec<Located<R>> {
    fn is_empty(&self) -> bool {
        Vec::is_empty(self)
    }

    fn may_find(&self, exclusion: &Exclusion) -> bool {
        self.iter().any(|request| request.value.may_find(exclusion))
    }

    fn has_excluded(&self, exclusion: &Exclusion) -> bool {
        self.iter()
            .any(|request| request.value.is_excluded_by(exclusion))
    }

    fn names_like(&self, exclusion: &Exclusion) -> Vec<String> {
        self.iter()
            .filter_map(|request| request.value.name_like(exclusion))
            .collect()
    }
}

/// A list of another tool, and the URL from which `landfall update` replaces it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListSource {
    /// The file with the list.
    pub path: PathBuf,
    /// The URL, with variables filled in.
    pub url: String,
    /// How long this project must have known new content before it is used.
    pub min_age: Option<MinimumAge>,
}

/// A trust root of a rule, and the TUF repository from which `landfall update` replaces it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustRootSource {
    /// The path of the trust root, a `trusted_root.json`.
    pub path: PathBuf,
    /// The URL of the TUF repository.
    pub url: String,
    /// The path of the `root.json` of the TUF repository.
    pub tuf_root: PathBuf,
}

/// A value and its position in a manifest or list.
#[derive(Debug)]
pub(super) struct Located<T> {
    pub(super) value: T,
    pub(super) span: SourceSpan,
    /// Whether the value comes from another tool's list, which may contain it twice.
    pub(super) from_list: bool,
}

impl<T> Located<T> {
    /// A value that is written in a manifest.
    pub(super) fn new(value: T, span: SourceSpan) -> Located<T> {
        Located {
            value,
            span,
            from_list: false,
        }
    }
}
