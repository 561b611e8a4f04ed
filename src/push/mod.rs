//! Delivers images and artifacts from a bundle, a store or upstream to a registry.
//!
//! One HEAD for each destination tag shows what the registry has (`plan`); with `--recheck`,
//! it looks up every manifest and blob too. If something must be delivered, `preflight`
//! looks for everything that would make the push fail. Then the entries are delivered, those with
//! the largest blobs first. Twice `--jobs` of them are delivered at once, since some wait for a
//! blob that another delivery uploads. A blob is mounted from a repository that has it, found to be
//! present, or uploaded. The child manifests, the index and finally the tag follow. Each digest is
//! uploaded to a repository once in a run: other deliveries that need it wait for that upload.
//!
//! `git` pushes git repositories to a git server instead of a registry.
//!
//! A bundle's blob is read for an upload by `BlobRead::open_whole`: its digest is verified at its
//! end, and its last bytes are held back until then, so that a registry that checks only the length
//! does not accept damaged content. A delta and its bases are one `BlobRead`; if one of them is
//! damaged, reading continues at the damaged byte in the next one that has the blob. Blobs that the
//! delta omits and no base has are looked up at the registry before the preflight (`omitted`), and
//! are then mounted or downloaded from there.

mod deliver;
mod git;
mod locks;
mod omitted;
mod plan;
mod preflight;
#[cfg(feature = "cli")]
mod prune;
mod referrers;
#[cfg(feature = "cli")]
mod signed_images;
mod state;
mod status;
mod uploader;

use self::omitted::locate_omitted;
use self::plan::{
    Delivery, LookupScope, TagState, WantedContent, biggest_first, deliveries, look_up_tags,
    own_deliveries, wanted_content,
};
use self::preflight::Preflight;
use self::state::{PushRun, count_by_entry, unreachable};
use self::uploader::Uploader;
use landfall_content::registry::{RegistrySession, RegistrySessions};
use landfall_content::{LockEntry, PartSource, Watchdog, run_concurrently_by_host};
use landfall_http::{ErrorKind, HttpError};
use landfall_item::lockfile::{Lock, collision};
use landfall_model::config::IndexPolicy;
use landfall_model::report::Progress;
use landfall_model::{DestinationMap, Failure, Shard, locked, unpoisoned};
use landfall_signature::SignaturePolicy;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use tokio::task::JoinSet;

pub use self::git::GitTarget;
pub(crate) use self::git::push_git;
pub use self::omitted::Omitted;
pub(crate) use self::omitted::References;
pub(crate) use self::plan::is_left_out;
pub(crate) use self::preflight::{Problem, ProblemKind};
#[cfg(feature = "cli")]
pub(crate) use self::prune::{Needed, Pruned, SurveyedRepository, prune};
#[cfg(feature = "cli")]
pub(crate) use self::signed_images::{SignedImages, sign_images};
#[cfg(feature = "cli")]
pub(crate) use self::state::{Delivered, Moved, Replaced};
pub(crate) use self::state::{PrunedManifest, Receipt};
pub use self::state::{PushOptions, Pushed};
pub(crate) use self::status::{MissingPart, MissingParts, missing};
#[cfg(feature = "cli")]
pub(crate) use self::status::{RegistryTag, TagStatus, status};

/// The content of a push.
pub(crate) struct PushContent<'a> {
    /// The source that parts are read from.
    pub(crate) source: Arc<dyn PartSource>,
    /// The blobs that the source omits: the registry must have them.
    pub(crate) omitted: &'a Omitted,
    /// The rules of the site for signatures. Referrers of items that they match are required.
    pub(crate) demanded: SignaturePolicy,
}

/// Delivers the entries of `lock` to the destinations of `mapping`, limited to the repositories of
/// `shard`. Fails only before the first byte: a delivery that fails later is an item of the report.
pub(crate) async fn push(
    lock: &Lock,
    mapping: &DestinationMap,
    content: PushContent<'_>,
    sessions: &RegistrySessions,
    options: PushOptions,
    shard: Shard,
    progress: Arc<dyn Progress>,
) -> Result<Pushed, Failure> {
    let PushContent {
        source,
        omitted,
        demanded,
    } = content;
    let whole = lock;
    let WantedContent { lock, skipped } = wanted_content(lock, &options, &demanded);
    let lock = &*lock;
    if let Some(collision) = collision(mapping, lock) {
        return Err(Failure::usage(collision));
    }
    let session = sessions
        .destination(&mapping.target().registry)
        .await
        .map_err(|error| unreachable(&error))?;
    session
        .plain_http_note()
        .into_iter()
        .for_each(|note| sessions.transport().note_once(&note));
    let all = deliveries(lock, mapping, &options.skip_kinds);
    let destinations = count_by_entry(&all);
    let deliveries = own_deliveries(all, lock, shard);
    let limits = *sessions.transport().limits();
    let scope = LookupScope {
        parts: options.recheck,
        writes: true,
    };
    let tag_states = look_up_tags(&session, lock, &deliveries, limits.jobs, scope).await;
    check_reachable(&session, &tag_states).await?;
    let mut uploader = Uploader::new(
        session,
        source,
        progress.clone(),
        limits,
        &options,
        demanded,
    );
    let mut run = PushRun::new(lock, &deliveries, shard, destinations, &options.skip_kinds);
    let mut todo = run.record_tag_states(&tag_states, &uploader).await;
    let omitted = locate_omitted(&mut uploader, omitted, lock, mapping, &deliveries, &todo).await;
    let uploader = Arc::new(uploader);
    if !todo.is_empty() {
        let preflight = Preflight {
            uploader: &uploader,
            lock,
            deliveries: &deliveries,
            tag_states: &tag_states,
            todo: &todo,
            omitted,
            options: &options,
        };
        let problems = preflight.problems().await;
        todo = run.record_problems(problems, todo, options.all_or_nothing);
    }
    run.needed_bytes = bytes_to_send(lock, &deliveries, &todo, &uploader).await;
    if options.dry_run {
        return Ok(run.finish(whole, skipped, mapping, &uploader));
    }
    if todo.is_empty() {
        run.unlisted = run.record_lock(whole, mapping, &uploader, &options).await;
        return Ok(run.finish(whole, skipped, mapping, &uploader));
    }
    progress.begin("push", todo.len() as u64, run.needed_bytes);
    let part_count = |at: usize| lock.entry(deliveries[at].entry).parts.len() as u64;
    progress.parts(todo.iter().map(|&at| part_count(at)).sum());
    let order = biggest_first(lock, &deliveries, todo);
    let source_hosts: Vec<String> = order
        .iter()
        .map(|&at| source_host(&lock.entry(deliveries[at].entry), &uploader))
        .collect();
    let finished = Mutex::new(Vec::new());
    // Few deliveries run at once, so that many images are complete if the run ends early. The
    // limit is higher than that of uploads, because some deliveries wait for a blob that another
    // one uploads. Deliveries whose content comes from one host do not delay those from another.
    let all_delivered = run_concurrently_by_host(
        order.len(),
        2 * limits.jobs,
        |index| &source_hosts[index],
        async |index| {
            let at = order[index];
            let delivery = deliveries[at].clone();
            let entry = lock.entry(delivery.entry);
            let name = entry.name.clone();
            let uploader = uploader.clone();
            let tagged = match &tag_states[at] {
                // with `index: exact`, the site does not accept a trimmed index
                Ok(TagState::Unattached(digest))
                    if *digest == entry.top.digest || uploader.index == IndexPolicy::Trimmed =>
                {
                    Some(digest.clone())
                }
                _ => None,
            };
            // a task of its own, so that a panic fails only this delivery; in a set, so that it is
            // aborted when the run is cancelled
            let mut task = JoinSet::new();
            task.spawn(async move {
                let repository = &delivery.destination.repository;
                uploader
                    .deliver(&entry, repository, &delivery.tag, tagged)
                    .await
            });
            let result = task.join_next().await;
            progress.parts_done(part_count(at));
            progress.item(&name);
            if let Some(Ok(result)) = result {
                let mut finished = locked(&finished);
                finished.push((at, result));
            }
        },
    );
    let mut watchdog = Watchdog::new(sessions.transport().activity().clone(), limits.stuck);
    let stuck = tokio::select! {
        _ = all_delivered => None,
        message = watchdog.wait_until_stuck() => Some(message),
    };
    for (at, result) in unpoisoned(finished.into_inner()) {
        run.results[at] = Some(result);
        run.note_moved(at, &tag_states[at]);
    }
    progress.end();
    run.fail_unfinished(stuck);
    run.unlisted = run.record_lock(whole, mapping, &uploader, &options).await;
    Ok(run.finish(whole, skipped, mapping, &uploader))
}

/// Fails if all look-ups failed: a single failed look-up fails one item, but if all fail, the
/// registry is the problem.
async fn check_reachable(
    session: &RegistrySession,
    tag_states: &[Result<TagState, HttpError>],
) -> Result<(), Failure> {
    let Some(Err(error)) = tag_states.first() else {
        return Ok(());
    };
    if !tag_states.iter().all(Result::is_err) {
        return Ok(());
    }
    // Harbor refuses requests about a project that does not exist. The preflight reports the
    // project, or creates it.
    let may_lack_project = error.kind == ErrorKind::Denied && session.is_harbor().await;
    if may_lack_project {
        Ok(())
    } else {
        Err(unreachable(error))
    }
}

/// The maximum number of bytes that the push uploads: each digest counts once, and not at all if a
/// repository of the registry is known to have it.
async fn bytes_to_send(
    lock: &Lock,
    deliveries: &[Delivery],
    todo: &[usize],
    uploader: &Uploader,
) -> u64 {
    let parts = todo
        .iter()
        .flat_map(|&at| lock.entry(deliveries[at].entry).parts);
    let blobs = parts
        .filter(|part| !part.is_manifest())
        .map(|part| part.descriptor);
    let blobs: HashMap<_, _> = blobs.map(|blob| (blob.digest, blob.size)).collect();
    let mut bytes = 0_u64;
    for (digest, size) in blobs {
        if uploader.blob_locations(&digest).lock().await.is_empty() {
            bytes = bytes.saturating_add(size);
        }
    }
    bytes
}

/// The host that has the content of an entry; empty if the content is local.
fn source_host(entry: &LockEntry, uploader: &Uploader) -> String {
    entry
        .parts
        .last()
        .map_or("", |top| uploader.source.host(top))
        .to_owned()
}
