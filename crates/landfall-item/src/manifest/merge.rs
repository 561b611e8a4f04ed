//! Merges several manifests: applies exclusions, combines equal items, rejects contradictions.

use super::load::ManifestFaults;
use crate::lockfile::{AcceptedLoss, Endpoint, LockedKind};
use crate::{
    ChartRequest, Exclusion, FieldConflict, FileRequest, GitRequest, ImageRequest, ItemKind,
    ItemRequest, LocalPlace, PackageSetRequest, ProviderRequest, VersionSelector,
};
use landfall_model::document::{Diagnostic, SourceLocation, SourceSpan, UpdateRule, nearest};
use landfall_model::report::EntryKind;
use landfall_model::{
    Digest, ImageRef, LOCAL_PREFIX, MinimumAge, is_path_below, is_same_name, local_path,
};
use landfall_signature::SignaturePolicy;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Merges the requests of several manifests. Errors are added to `faults`.
pub(super) fn merge(
    mut manifests: Vec<ExpandedManifest>,
    faults: &mut ManifestFaults,
) -> MergedManifest {
    tell_local_items_apart(&mut manifests, faults);
    let exclude = take_all(&mut manifests, |manifest| &mut manifest.exclude);
    check_exclusions(&manifests, &exclude, faults);
    let exclude: Vec<Exclusion> = exclude.into_iter().map(|one| one.value).collect();
    let images = take_all(&mut manifests, |manifest| &mut manifest.images);
    let files = take_all(&mut manifests, |manifest| &mut manifest.files);
    let charts = take_all(&mut manifests, |manifest| &mut manifest.charts);
    let packages = take_all(&mut manifests, |manifest| &mut manifest.packages);
    let git = take_all(&mut manifests, |manifest| &mut manifest.git);
    let providers = take_all(&mut manifests, |manifest| &mut manifest.providers);
    let requests = ItemRequests {
        images: merge_requests(images, &exclude, faults),
        files: merge_requests(files, &exclude, faults),
        charts: merge_requests(charts, &exclude, faults),
        packages: merge_requests(packages, &exclude, faults),
        git: merge_requests(git, &exclude, faults),
        providers: merge_requests(providers, &exclude, faults),
    };
    let selectors = manifests.iter().flat_map(|manifest| &manifest.selectors);
    let unselected = selectors
        .map(|entry| &entry.selector)
        .filter(|selector| selector.versions.is_empty())
        .map(|selector| (selector.name.clone(), selector.at.location()))
        .collect();
    let mut signatures = SignaturePolicy::default();
    for manifest in &mut manifests {
        signatures.append(std::mem::take(&mut manifest.signatures));
    }
    let mut missing = take_all(&mut manifests, |manifest| &mut manifest.missing);
    // a loss may be written in another form than the item
    for loss in missing.iter_mut().map(|located| &mut located.value) {
        let mut items = requests.summaries().filter(|item| item.kind == loss.kind);
        if let Some(item) = items.find(|item| is_same_name(&item.name, &loss.name)) {
            loss.name = item.name;
        }
    }
    let missing = merge_by_key(
        missing,
        faults,
        |loss| (loss.kind, loss.name.clone()),
        |loss| loss.name.clone(),
        |first, second, _| {
            FieldConflict::check_equal("last day", &first.until, &second.until, String::clone)?;
            FieldConflict::check_equal("reason", &first.reason, &second.reason, String::clone)
        },
    );
    let endpoints = merge_by_key(
        take_all(&mut manifests, |manifest| &mut manifest.endpoints),
        faults,
        |endpoint| (endpoint.host.clone(), endpoint.port),
        Endpoint::to_string,
        |first, second, _| {
            first.join(second);
            Ok(())
        },
    );
    MergedManifest {
        name: shared_name(manifests),
        requests,
        exclude,
        signatures,
        missing: values(missing),
        endpoints: values(endpoints),
        unselected,
    }
}

/// Adds the `metadata.name` of its manifest to the name of each local file and chart whose path
/// another manifest has for other content.
fn tell_local_items_apart(manifests: &mut [ExpandedManifest], faults: &mut ManifestFaults) {
    let mut places: BTreeMap<String, BTreeSet<LocalPlace>> = BTreeMap::new();
    for manifest in &*manifests {
        let files = manifest.files.iter().map(|file| &file.value);
        let files = files.map(|file| (file.url.clone(), &file.local));
        let charts = manifest.charts.iter().map(|chart| &chart.value);
        let charts = charts.map(|chart| (chart.name.to_string(), &chart.local));
        for (name, place) in files.chain(charts) {
            if let Some(place) = place {
                places.entry(name).or_default().insert(place.clone());
            }
        }
    }
    places.retain(|_, places| places.len() > 1);
    for manifest in manifests {
        let series = manifest.name.clone().filter(|name| is_path_below(name));
        let mut lacks_name = |name: &str, span: &SourceSpan| {
            let message = format!("another manifest has other content as {name}");
            let help = "give this manifest a `metadata: {name: …}` of its own, which is added to \
                        the name";
            faults.push(*span.fault(message, Some(help)));
        };
        for file in &mut manifest.files {
            let url = &mut file.value.url;
            if places.contains_key(url) {
                match (&series, local_path(url)) {
                    (Some(series), Some(path)) => *url = format!("{LOCAL_PREFIX}{series}/{path}"),
                    _ => lacks_name(url, &file.span),
                }
            }
        }
        for chart in &mut manifest.charts {
            let name = &mut chart.value.name;
            if places.contains_key(name.as_str()) {
                let series = series.as_ref();
                match series.and_then(|series| name.in_series(series)) {
                    Some(renamed) => *name = renamed,
                    None => lacks_name(name.as_str(), &chart.span),
                }
            }
        }
    }
}

/// Moves one list out of each manifest, in the order of the manifests.
fn take_all<T>(
    manifests: &mut [ExpandedManifest],
    list: impl Fn(&mut ExpandedManifest) -> &mut Vec<Located<T>>,
) -> Vec<Located<T>> {
    manifests
        .iter_mut()
        .flat_map(|manifest| std::mem::take(list(manifest)))
        .collect()
}

fn values<T>(located: Vec<Located<T>>) -> Vec<T> {
    located.into_iter().map(|one| one.value).collect()
}

/// The name that all manifests with a name share; `None` if their names differ.
fn shared_name(manifests: Vec<ExpandedManifest>) -> Option<String> {
    let mut names = manifests.into_iter().filter_map(|manifest| manifest.name);
    let first = names.next()?;
    names.all(|name| name == first).then_some(first)
}

/// Reports exclusions that exclude nothing.
fn check_exclusions(
    manifests: &[ExpandedManifest],
    exclude: &[Located<Exclusion>],
    faults: &mut ManifestFaults,
) {
    let sections: Vec<&dyn RequestSection> = manifests
        .iter()
        .flat_map(ExpandedManifest::sections)
        .collect();
    for exclusion in exclude {
        // locking may find images in a chart, or submodules of a repository, that no manifest names
        let value = &exclusion.value;
        let mut all = sections.iter();
        if all.any(|section| section.has_excluded(value) || section.may_find(value)) {
            continue;
        }
        let names: Vec<String> = sections
            .iter()
            .flat_map(|section| section.names_like(&exclusion.value))
            .collect();
        faults.push(*excludes_nothing(exclusion, &names));
    }
}

/// Merges the requests of one kind, without those that are excluded.
fn merge_requests<R: ItemRequest>(
    mut requests: Vec<Located<R>>,
    exclude: &[Exclusion],
    faults: &mut ManifestFaults,
) -> Vec<R> {
    requests.retain(|request| {
        !exclude
            .iter()
            .any(|exclusion| request.value.is_excluded_by(exclusion))
    });
    let merged = merge_by_key(
        requests,
        faults,
        |request| request.name().clone(),
        |request| request.name().to_string(),
        |first, second, is_overridden| {
            if is_overridden {
                first.merge_listed(second)
            } else {
                first.merge(second)
            }
        },
    );
    let mut owners = BTreeMap::new();
    for request in &merged {
        faults.take(check_unique_urls(&mut owners, request));
    }
    values(merged)
}

/// The error for an exclusion that excludes nothing. Either the exclusion is a mistake, or a list
/// no longer contains the excluded item.
fn excludes_nothing(exclusion: &Located<Exclusion>, names: &[String]) -> Box<Diagnostic> {
    let excluded = exclusion.value.to_string();
    let below = format!("{excluded}/");
    let help = if names.iter().any(|name| name.starts_with(&below)) {
        "list each repository: a prefix is not enough".into()
    } else {
        match nearest(&excluded, names.iter().map(String::as_str)) {
            Some(near) => format!("did you mean {near}? Otherwise remove it"),
            None => "remove it".into(),
        }
    };
    exclusion.span.fault(
        format!("no item is named {excluded}, so this excludes nothing"),
        Some(&help),
    )
}

/// Merges values with the same key. The result is sorted by key.
///
/// `name` is the name of a value in messages. `merge` merges the second value into the first, and
/// fails if they contradict each other; its last argument says whether the second value comes from
/// a list of another tool and the first one, which is not from a list, overrides it.
fn merge_by_key<T, K: Ord>(
    all: Vec<Located<T>>,
    faults: &mut ManifestFaults,
    key: impl Fn(&T) -> K,
    name: impl Fn(&T) -> String,
    merge: impl Fn(&mut T, &T, bool) -> Result<(), FieldConflict>,
) -> Vec<Located<T>> {
    // entries of manifests override lists, whatever the order
    let (listed, all): (Vec<_>, Vec<_>) = all.into_iter().partition(|item| item.from_list);
    // Each key is stored with the position of its last value so far. All values of one file are
    // adjacent, so comparing with this position finds duplicates within a file.
    let mut merged: BTreeMap<K, (Located<T>, SourceSpan)> = BTreeMap::new();
    for item in all.into_iter().chain(listed) {
        match merged.entry(key(&item.value)) {
            Entry::Vacant(entry) => {
                let last = item.span.clone();
                entry.insert((item, last));
            }
            Entry::Occupied(mut entry) => {
                let (first, last) = entry.get_mut();
                if last.same_file(&item.span) && !item.from_list {
                    faults.push(*duplicate(&name(&item.value), last, &item.span));
                    continue;
                }
                let is_overridden = item.from_list && !first.from_list;
                if let Err(conflict) = merge(&mut first.value, &item.value, is_overridden) {
                    let name = name(&item.value);
                    faults.push(*contradiction(&name, &first.span, &item.span, conflict));
                }
                *last = item.span;
            }
        }
    }
    merged.into_values().map(|(item, _)| item).collect()
}

fn duplicate(name: &str, first: &SourceSpan, second: &SourceSpan) -> Box<Diagnostic> {
    let position = first.location();
    if position == second.location() {
        let help =
            "a list variable in another field repeats it; use the variable in this field, too";
        return second.fault(
            format!("this entry expands to {name} more than once"),
            Some(help),
        );
    }
    second.fault(
        format!("{name} is listed twice in this file; first at {position}"),
        Some("remove one of the two"),
    )
}

fn contradiction(
    name: &str,
    first_at: &SourceSpan,
    second_at: &SourceSpan,
    conflict: FieldConflict,
) -> Box<Diagnostic> {
    let FieldConflict {
        field,
        first,
        second,
    } = conflict;
    let position = first_at.location();
    let message = format!("the {field} of {name} is {second} here, but {first} at {position}");
    let help = "make both the same, or remove one of the two";
    second_at.fault(message, Some(help))
}

/// Rejects a URL that belongs to two items. `owners` maps each URL to the name and position of its
/// item.
fn check_unique_urls<R: ItemRequest>(
    owners: &mut BTreeMap<String, (String, SourceSpan)>,
    request: &Located<R>,
) -> Result<(), Box<Diagnostic>> {
    for url in request.value.urls() {
        let owner = (request.value.name().to_string(), request.span.clone());
        if let Some((name, span)) = owners.insert(url.to_owned(), owner) {
            let message = format!(
                "{url} is a URL of this file and of {name} at {}",
                span.location()
            );
            let help = "remove it from `also` of one of the two";
            return Err(request.span.fault(message, Some(help)));
        }
    }
    Ok(())
}

// One manifest with its variables and lists expanded, before it is merged with others.

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
    pub(super) missing: Vec<Located<AcceptedLoss>>,
    pub(super) endpoints: Vec<Located<Endpoint>>,
    pub(super) exclude: Vec<Located<Exclusion>>,
    /// The rules for the signatures that items must have.
    pub(super) signatures: SignaturePolicy,
    /// The lists that have a `from`.
    pub(super) list_sources: Vec<ListSource>,
    /// The trust roots that have a `from`.
    pub(super) trust_root_sources: Vec<TrustRootSource>,
    /// The entries that select versions by a rule.
    pub(super) selectors: Vec<SelectorEntry>,
}

/// An entry with a selector.
#[derive(Debug)]
pub(super) struct SelectorEntry {
    pub(super) section: &'static str,
    /// The position of the entry in its section.
    pub(super) index: usize,
    pub(super) kind: EntryKind,
    pub(super) selector: VersionSelector,
}

impl ExpandedManifest {
    /// The sections with requests, in the order of the lock.
    pub(super) fn sections(&self) -> Vec<&dyn RequestSection> {
        let ExpandedManifest {
            name: _,
            images,
            files,
            charts,
            packages,
            git,
            providers,
            missing: _,
            endpoints: _,
            exclude: _,
            signatures: _,
            list_sources: _,
            trust_root_sources: _,
            selectors: _,
        } = self;
        vec![images, files, charts, packages, git, providers]
    }

    /// Whether the manifest has no requests, accepted losses, endpoints or exclusions.
    pub(super) fn is_empty(&self) -> bool {
        self.sections().into_iter().all(RequestSection::is_empty)
            && self.missing.is_empty()
            && self.endpoints.is_empty()
            && self.exclude.is_empty()
            && self.selectors.is_empty()
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
        } = self;
        visitor.visit(images).await;
        visitor.visit(files).await;
        visitor.visit(charts).await;
        visitor.visit(packages).await;
        visitor.visit(git).await;
        visitor.visit(providers).await;
    }

    /// The fields that all requests have, in the order of the lock.
    pub fn summaries(&self) -> impl Iterator<Item = RequestSummary<'_>> {
        let ItemRequests {
            images,
            files,
            charts,
            packages,
            git,
            providers,
        } = self;
        let images = images.iter().map(RequestSummary::new);
        images
            .chain(files.iter().map(RequestSummary::new))
            .chain(charts.iter().map(RequestSummary::new))
            .chain(packages.iter().map(RequestSummary::new))
            .chain(git.iter().map(RequestSummary::new))
            .chain(providers.iter().map(RequestSummary::new))
    }
}

/// Handles the requests of any kind.
pub trait RequestVisitor {
    /// Handles all requests of one kind.
    fn visit<R>(&mut self, requests: &[R]) -> impl Future<Output = ()>
    where
        R: ItemRequest,
        R::Item: LockedKind;
}

/// The fields that requests of all kinds have.
#[derive(Debug, Clone)]
pub struct RequestSummary<'a> {
    /// The kind of the item.
    pub kind: EntryKind,
    /// The name under which the item is locked.
    pub name: String,
    /// Whether the content is next to the manifest, so that nothing is requested for it.
    pub is_local: bool,
    /// The URLs besides the name that are requested to lock or pull the item.
    pub further_urls: Vec<&'a str>,
    /// The update policy and its further rules; see
    /// [`ItemRequest::update_rule`](crate::ItemRequest::update_rule).
    pub update_rule: Option<&'a UpdateRule>,
    /// The reference, if it has a tag; see
    /// [`tagged_reference`](crate::ItemRequest::tagged_reference).
    pub tagged_reference: Option<&'a ImageRef>,
    /// The digest that the manifest requires; see
    /// [`demanded_digest`](crate::ItemRequest::demanded_digest).
    pub demanded_digest: Option<(&'a Digest, &'a SourceLocation)>,
}

impl<'a> RequestSummary<'a> {
    fn new<R: ItemRequest>(request: &'a R) -> RequestSummary<'a> {
        RequestSummary {
            kind: R::Item::KIND,
            name: request.name().to_string(),
            is_local: request.is_local(),
            further_urls: request.further_urls(),
            update_rule: request.update_rule(),
            tagged_reference: request.tagged_reference(),
            demanded_digest: request.demanded_digest(),
        }
    }
}

/// Everything that a set of manifests requests. The requests, losses and endpoints are sorted and
/// contain no duplicates.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MergedManifest {
    /// The `metadata.name` of the manifests that have one. `None` if the names differ, or if no
    /// manifest has a name.
    pub name: Option<String>,
    /// The requests for items, merged and sorted by name.
    pub requests: ItemRequests,
    /// Exclusions, which also apply to dependencies and images that are found while locking.
    pub exclude: Vec<Exclusion>,
    /// The rules for the signatures that items must have, including items that are found while
    /// locking.
    pub signatures: SignaturePolicy,
    /// Losses that the manifests accept until a date.
    pub missing: Vec<AcceptedLoss>,
    /// Hosts that cannot be mirrored and must stay reachable.
    pub endpoints: Vec<Endpoint>,
    /// Entries with `select` for which `landfall update` has not selected versions yet.
    pub unselected: Vec<(String, SourceLocation)>,
}
