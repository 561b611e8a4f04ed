//! Runs an update: replaces trust roots and lists, moves versions, and looks up all other items.

use super::lookups::{UpstreamLookups, requested_items};
use super::outcome::UpdateOutcome;
use super::state::{UpdateRequest, UpdateRun};
use super::version_ages::{RunEnd, VersionAges};
use landfall_item::Resolver;
use landfall_item::manifest::{
    FileOverrides, LoadManifestError, list_sources, load_edited, manifest_files, trust_root_sources,
};
use landfall_model::Digest;
use landfall_model::document::read_input;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;

/// Computes the updates of the manifests. Writes no file. Fails if a manifest is invalid.
pub(crate) async fn update(
    request: &UpdateRequest<'_>,
    resolver: &Resolver,
) -> Result<UpdateOutcome, LoadManifestError> {
    let manifest = load_edited(request.paths, request.platforms, &FileOverrides::new())?;
    let lists = list_sources(request.paths, &FileOverrides::new())?;
    let has_lists = !lists.is_empty();
    let items = requested_items(&manifest);
    let mut ages = VersionAges::new(request.sights, request.urgent);
    for rule in items.iter().filter_map(|item| item.digest_rule()) {
        ages.keep_sights_for(rule.min_age.as_ref());
    }
    for list in &lists {
        ages.keep_sights_for(list.min_age.as_ref());
    }
    let trust_roots = trust_root_sources(request.paths, &FileOverrides::new())?;
    let trust_roots = trust_roots.into_iter();
    let files = manifest_files(request.paths)?
        .into_iter()
        .chain(lists.into_iter().map(|list| list.path))
        .chain(trust_roots.flat_map(|source| [source.path, source.tuf_root]));
    let before = files.map(|path| (path.clone(), digest_of(&path))).collect();
    let outcome = UpdateOutcome {
        before,
        manifest,
        sights_path: request.sights_path.to_owned(),
        ..UpdateOutcome::default()
    };
    let mut run = UpdateRun {
        request,
        lookups: UpstreamLookups::new(resolver),
        lists: BTreeMap::new(),
        has_lists,
        ages,
        used_only: Mutex::default(),
        outcome,
    };
    resolver.progress().begin("update", items.len() as u64, 0);
    run.replace_trust_roots().await?;
    run.replace_lists().await?;
    run.move_versions().await?;
    // last, because only now the run knows which items did not move and which tags were listed
    run.look_up_unmoved_items().await?;
    resolver.progress().end();
    let end = RunEnd {
        has_seen_all: request.only.is_empty() && run.outcome.failed.is_empty(),
        rewrite: request.rewrite_sights,
        clock: run.clock(),
    };
    run.outcome.looked_up = run.lookups.digests();
    run.outcome.git_tags = resolver.git_tags();
    run.outcome.unused_only = run.unused_only();
    run.outcome.ages = run.ages.end(end);
    Ok(run.outcome)
}

/// The digest of a file on disk. A file that cannot be read counts as empty. The manifest loader
/// has just read all these files except TUF roots, and `replace_trust_roots` fails if it cannot
/// read a TUF root.
fn digest_of(path: &Path) -> Digest {
    Digest::sha256(&read_input(path).unwrap_or_default())
}
