//! Finds the images of locked charts: by reading the charts, or with the helm that the manifest
//! names.

use super::LockRun;
use landfall_item::lockfile::Lock;
use landfall_item::{
    ChartImage, Discovery, Exclusion, FindImages, FoundImages, GitRequest, ItemRequest,
    OpenReference,
};
use landfall_model::document::SourceLocation;
use landfall_model::report::EntryKind;
use landfall_model::{Digest, ImageRef, Limits};
use landfall_rewrite::audit::{FileFinding, HelmCommand, Inventory, LockCoverage, chart_images};
use landfall_rewrite::{HelmChart, coalesce, values_of};
use serde_yaml::Mapping;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use tempfile::NamedTempFile;

/// Finds the images of charts within these limits.
pub(crate) struct ChartImages(pub Limits);

impl FindImages for ChartImages {
    fn images(
        &self,
        archive: &[u8],
        digest: &Digest,
        how: &Discovery,
    ) -> Result<FoundImages, String> {
        let chart = HelmChart::of_archive(&digest.short(12), archive, &self.0)
            .map_err(|error| error.to_string())?;
        // as with `helm --values A --values B`, later values override earlier ones
        let mut user = Mapping::new();
        for values in &how.values {
            let mut next = values_of("values", values)
                .map_err(|error| format!("its values: {}", error.message))?;
            coalesce(&mut next, &user);
            user = next;
        }
        let helm = how.helm.as_ref();
        let rendered = helm.map(|version| render(archive, version, how));
        let rendered = rendered.transpose()?;
        // An empty inventory lacks every image, so the search of `audit` returns all images of the
        // chart.
        let nothing = Lock::default();
        let today = String::new();
        let inventory = Inventory::new(&nothing, None, None, &today);
        let found = chart_images(chart, &user, rendered.as_deref(), &inventory);
        Ok(found_images(
            found.map_err(|error| format!("its values: {error}"))?,
        ))
    }
}

/// Renders the chart with the helm on PATH, which must have this `version`.
fn render(archive: &[u8], version: &str, how: &Discovery) -> Result<String, String> {
    // helm reads files; dropping `chart` and `values` at the end of the function removes them
    let chart = temporary_file(archive, ".tgz")?;
    let values = how
        .values
        .iter()
        .map(|values| temporary_file(values.as_bytes(), ".yaml"))
        .collect::<Result<Vec<_>, _>>()?;
    let paths: Vec<_> = values
        .iter()
        .map(|file| file.path().to_path_buf())
        .collect();
    let helm = HelmCommand::find(std::env::var_os("PATH").as_deref(), &paths);
    let helm = helm.ok_or_else(|| {
        format!("the manifest names helm {version}, but there is no helm on PATH")
    })?;
    // Versions of helm render differently, and the lock must be the same on every machine. The
    // manifest may name only a prefix: `3.18` allows 3.18.4.
    let found = helm.version().map_err(|error| format!("helm: {error}"))?;
    if found != version && !found.starts_with(&format!("{version}.")) {
        return Err(format!(
            "the manifest names helm {version}, but the helm on PATH is {found}"
        ));
    }
    let helm = helm.for_kubernetes(how.kubernetes.as_deref());
    helm.template(chart.path())
        .map_err(|error| format!("helm cannot render it: {error}"))
}

fn temporary_file(content: &[u8], suffix: &str) -> Result<NamedTempFile, String> {
    let mut file = tempfile::Builder::new()
        .suffix(suffix)
        .tempfile()
        .map_err(|error| error.to_string())?;
    file.write_all(content).map_err(|error| error.to_string())?;
    Ok(file)
}

/// Sorts findings into images and open references. Each is listed once, with the first position
/// that names it.
fn found_images(found: Vec<FileFinding>) -> FoundImages {
    let mut images: BTreeMap<String, ChartImage> = BTreeMap::new();
    let mut open: BTreeMap<String, OpenReference> = BTreeMap::new();
    // git repositories that a template clones are no images
    let found = found
        .into_iter()
        .filter(|one| one.finding.repository.is_none());
    for FileFinding { file, finding } in found {
        // a finding at 1:1 without a path is about the file as a whole
        let at = if finding.path.is_empty() && finding.line == 1 && finding.column == 1 {
            file
        } else {
            SourceLocation {
                file,
                line: finding.line,
                column: finding.column,
            }
            .to_string()
        };
        let mut add_open = |why: String| {
            let reference = finding.reference.clone();
            open.entry(reference.clone()).or_insert(OpenReference {
                reference,
                at: at.clone(),
                why,
            });
        };
        match finding.coverage {
            LockCoverage::Missing {
                name: Some(name), ..
            } => match name {
                ImageRef {
                    tag: None,
                    digest: None,
                    ..
                    // without a version, `lock` would resolve the tag `latest`
                } => add_open("it names no version".into()),
                name => {
                    images
                        .entry(name.to_string())
                        .or_insert(ChartImage { name, at });
                }
            },
            LockCoverage::Undecided { why }
            | LockCoverage::Ambiguous { why, .. }
            | LockCoverage::Missing { why, .. } => add_open(why),
            LockCoverage::Held { .. } => {}
        }
    }
    FoundImages {
        images: images.into_values().collect(),
        open: open.into_values().collect(),
    }
}

impl LockRun<'_> {
    /// Postpones the requests for repositories that the old lock has as submodules of others too,
    /// until those others are locked. The old lock has one entry with the refs that the manifest
    /// lists and with the commits that others pin, so the refs alone would look like a changed
    /// request: they would be looked up again, and with them newer submodules.
    pub(super) fn postpone_submodules(&mut self, requests: &mut Vec<GitRequest>) {
        let old = self.old;
        let mut names: BTreeSet<&str> = BTreeSet::new();
        for repository in &old.git {
            let submodules = repository.submodules.iter().flatten();
            let others = submodules.filter(|submodule| submodule.name != repository.name);
            names.extend(others.map(|submodule| submodule.name.as_str()));
        }
        for request in std::mem::take(requests) {
            if names.contains(request.name.as_str()) {
                self.postponed.insert(request.name.clone(), request);
            } else {
                requests.push(request);
            }
        }
    }

    /// The requests for repositories whose commits submodules pin. If an earlier request for a
    /// repository lacks one of these commits, the submodules or the large files, the repository is
    /// requested again with them, and its earlier result is removed. Each round adds commits, and
    /// the length of a chain of submodules is limited, so the rounds end.
    pub(super) fn new_repositories(
        &mut self,
        requests: Vec<GitRequest>,
        exclude: &[Exclusion],
    ) -> Vec<GitRequest> {
        let mut new = Vec::new();
        for request in self.merged_requests(requests, exclude) {
            if let Some(mut whole) = self.postponed.remove(&request.name) {
                if let Err(conflict) = whole.merge(&request) {
                    self.note_conflict(&request.name, &conflict);
                }
                new.push(whole);
                continue;
            }
            let Some(known) = self.repositories.get(&request.name) else {
                new.push(request);
                continue;
            };
            let has_all = request.wanted.iter().all(|one| known.wanted.contains(one));
            let has_large_files = known.lfs || !request.lfs;
            if has_all && known.submodules && has_large_files {
                continue;
            }
            let mut whole = known.clone();
            if let Err(conflict) = whole.merge(&request) {
                self.note_conflict(&request.name, &conflict);
                continue;
            }
            self.lock.git.retain(|item| item.name != request.name);
            self.results.forget(EntryKind::Git, &request.name);
            new.push(whole);
        }
        new
    }
}
