//! The run of an update: lists are replaced, versions move, and everything else is looked up.

use super::asker::{Asker, wishes};
use super::outcome::UpdateOutcome;
use super::state::{UpdateRequest, UpdateRun};
use landfall_item::Resolver;
use landfall_item::manifest::{
    FileOverrides, LoadManifestError, list_sources, load_edited, manifest_files,
};
use landfall_model::Digest;
use std::collections::BTreeMap;
use std::path::Path;

/// Computes the updates of the manifests. Writes no file. Fails if a manifest is invalid.
pub(crate) async fn update(
    asked: &UpdateRequest<'_>,
    resolver: &Resolver,
) -> Result<UpdateOutcome, LoadManifestError> {
    let wanted = load_edited(asked.paths, asked.platforms, &FileOverrides::new())?;
    let lists = list_sources(asked.paths, &FileOverrides::new())?;
    let has_lists = !lists.is_empty();
    let files = manifest_files(asked.paths)?
        .into_iter()
        .chain(lists.into_iter().map(|list| list.path));
    let before = files.map(|path| (path.clone(), digest_of(&path))).collect();
    let updated = UpdateOutcome {
        before,
        wanted,
        ..UpdateOutcome::default()
    };
    let mut run = UpdateRun {
        asked,
        asker: Asker::new(resolver),
        lists: BTreeMap::new(),
        has_lists,
        updated,
    };
    resolver
        .progress()
        .begin("update", wishes(&run.updated.wanted).len() as u64, 0);
    run.replace_lists().await?;
    run.move_versions().await?;
    run.look_up_unmoved_items().await?;
    resolver.progress().end();
    Ok(run.updated)
}

/// The digest of a file on disk. A file that cannot be read counts as empty.
fn digest_of(path: &Path) -> Digest {
    Digest::sha256(&std::fs::read(path).unwrap_or_default())
}
