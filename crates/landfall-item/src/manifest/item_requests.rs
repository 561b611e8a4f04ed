//! The requests of all kinds.

use crate::lockfile::LockedKind;
#[cfg(any(test, feature = "testkit"))]
use crate::note::NoteRequest;
use crate::{
    ChartRequest, FileRequest, GitRequest, ImageRequest, ItemKind, PackageSetRequest,
    ProviderRequest, ResolvableRequest,
};
use landfall_model::document::{SourceLocation, UpdateRule};
use landfall_model::report::EntryKind;
use landfall_model::{Digest, ImageRef};

/// The requests of all kinds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ItemRequests {
    /// Requests for container images.
    pub images: Vec<ImageRequest>,
    /// Requests for plain files.
    pub files: Vec<FileRequest>,
    /// Requests for Helm charts.
    pub charts: Vec<ChartRequest>,
    /// Requests for sets of OS packages.
    pub packages: Vec<PackageSetRequest>,
    /// Requests for git repositories.
    pub git: Vec<GitRequest>,
    /// Requests for providers of OpenTofu and Terraform.
    pub providers: Vec<ProviderRequest>,
    /// Requests for notes, a kind that only tests have.
    #[cfg(any(test, feature = "testkit"))]
    pub notes: Vec<NoteRequest>,
}

impl ItemRequests {
    /// Calls `visitor` with the requests of each kind, in the order of the lock.
    pub async fn visit(&self, visitor: &mut impl RequestVisitor) {
        // no `..`: a kind that is missing here would never be visited
        let ItemRequests {
            images,
            files,
            charts,
            packages,
            git,
            providers,
            #[cfg(any(test, feature = "testkit"))]
            notes,
        } = self;
        visitor.visit(images).await;
        visitor.visit(files).await;
        visitor.visit(charts).await;
        visitor.visit(packages).await;
        visitor.visit(git).await;
        visitor.visit(providers).await;
        #[cfg(any(test, feature = "testkit"))]
        visitor.visit(notes).await;
    }

    /// The fields that all requests have, in the order of the lock.
    pub fn summaries(&self) -> impl Iterator<Item = RequestSummary<'_>> {
        let summaries = self.images.iter().map(RequestSummary::new);
        let summaries = summaries
            .chain(self.files.iter().map(RequestSummary::new))
            .chain(self.charts.iter().map(RequestSummary::new))
            .chain(self.packages.iter().map(RequestSummary::new))
            .chain(self.git.iter().map(RequestSummary::new))
            .chain(self.providers.iter().map(RequestSummary::new));
        #[cfg(any(test, feature = "testkit"))]
        let summaries = summaries.chain(self.notes.iter().map(RequestSummary::new));
        summaries
    }
}

/// Handles the requests of any kind.
pub trait RequestVisitor {
    /// Handles all requests of one kind.
    fn visit<R>(&mut self, requests: &[R]) -> impl Future<Output = ()>
    where
        R: ResolvableRequest,
        R::Item: LockedKind;
}

/// The fields that requests of all kinds have.
#[derive(Debug, Clone)]
pub struct RequestSummary<'a> {
    /// The kind of the item.
    pub kind: EntryKind,
    /// The name under which the item is locked.
    pub name: String,
    /// The URLs besides the name that are requested to lock or pull the item.
    pub further_urls: Vec<&'a str>,
    /// The update policy and its further rules; see
    /// [`UpdatableRequest::update_rule`](crate::UpdatableRequest::update_rule).
    pub update_rule: Option<&'a UpdateRule>,
    /// The reference, if it has a tag; see
    /// [`tagged_reference`](crate::UpdatableRequest::tagged_reference).
    pub tagged_reference: Option<&'a ImageRef>,
    /// The digest that the manifest requires; see
    /// [`demanded_digest`](crate::UpdatableRequest::demanded_digest).
    pub demanded_digest: Option<(&'a Digest, &'a SourceLocation)>,
}

impl<'a> RequestSummary<'a> {
    fn new<R: ResolvableRequest>(request: &'a R) -> RequestSummary<'a> {
        RequestSummary {
            kind: R::Item::KIND,
            name: request.name().to_string(),
            further_urls: request.further_urls(),
            update_rule: request.update_rule(),
            tagged_reference: request.tagged_reference(),
            demanded_digest: request.demanded_digest(),
        }
    }
}
