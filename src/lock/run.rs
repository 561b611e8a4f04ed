//! The lock: what is pinned already keeps its pin without a request; the rest is resolved.

use super::resolve::{Cause, Resolver};
use super::{file, image, referrers};
use crate::lockfile::{Accepted, File, Image, Lock, Unresolved};
use crate::manifest::{Wanted, WantedFile, WantedImage};
use crate::model::{Digest, today};
use crate::report::{Item, Kind, Status};
use futures_util::{StreamExt, stream};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// What came of locking.
#[derive(Debug)]
pub struct Locked {
    /// The new lock.
    pub lock: Lock,
    /// One item for each wanted one.
    pub items: Vec<Item>,
    /// How it differs from the old lock.
    pub changes: Vec<Change>,
}

/// One difference between two locks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// What kind of item.
    pub kind: Kind,
    /// Its name.
    pub name: String,
    /// `added`, `removed`, `moved` (another digest), `changed` (the same digest, other parts), or `gone`
    /// (upstream does not have it any more; the old pin is kept).
    pub change: &'static str,
    /// The old digest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Digest>,
    /// The new digest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Digest>,
    /// What refers to it and is new.
    #[serde(rename = "newReferrers", skip_serializing_if = "Vec::is_empty")]
    pub new_referrers: Vec<Digest>,
    /// What referred to it and does so no more.
    #[serde(rename = "goneReferrers", skip_serializing_if = "Vec::is_empty")]
    pub gone_referrers: Vec<Digest>,
}

/// Whether pins are asked for again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pins {
    /// An entry whose manifest text is unchanged keeps its pin without a request.
    Keep,
    /// Every tag is asked for again.
    Refresh,
}

enum Found<T> {
    /// Unchanged, without being asked for.
    Kept(T),
    New(T),
    /// Upstream does not have it any more; the old pin stays.
    Gone(T),
    /// Could not be resolved; the old pin stays where there is one.
    Lost(Option<T>, Cause),
}

/// Locks everything that is wanted.
pub async fn lock(wanted: &Wanted, old: Option<&Lock>, pins: Pins, resolver: &Resolver) -> Locked {
    let total = (wanted.images.len() + wanted.files.len()) as u64;
    let progress = resolver.progress();
    progress.begin("lock", total, 0);
    let old_images: BTreeMap<_, _> =
        old.iter().flat_map(|lock| &lock.images).map(|image| (&image.name, image)).collect();
    let old_files: BTreeMap<_, _> =
        old.iter().flat_map(|lock| &lock.files).map(|file| (&file.name, file)).collect();
    let jobs = resolver.limits().jobs;
    // made one by one, as they are large; by number, as a stream over closures that take references is not Send
    let images = stream::iter(0..wanted.images.len()).map(async |at: usize| {
        let wanted = &wanted.images[at];
        let found = find_image(resolver, wanted, old_images.get(&wanted.name).copied(), pins).await;
        progress.item(&wanted.name.to_string());
        found
    });
    let images: Vec<Found<Image>> = images.buffered(jobs).collect().await;
    let files = stream::iter(0..wanted.files.len()).map(async |at: usize| {
        let wanted = &wanted.files[at];
        let found = find_file(resolver, wanted, old_files.get(&wanted.url).copied(), pins).await;
        progress.item(&wanted.url);
        found
    });
    let files: Vec<Found<File>> = files.buffered(jobs).collect().await;
    progress.end();

    let mut sorting = Sorting::new(wanted);
    let mut lock = Lock { version: 1, ..Lock::default() };
    for (wanted, found) in wanted.images.iter().zip(images) {
        let digest = |image: &Image| image.digest.clone();
        lock.images.extend(sorting.settle(Kind::Image, &wanted.name.to_string(), found, digest));
    }
    for (wanted, found) in wanted.files.iter().zip(files) {
        lock.files.extend(sorting.settle(Kind::File, &wanted.url, found, |file| file.digest.clone()));
    }
    lock.images.sort_by(|a, b| a.name.cmp(&b.name));
    lock.files.sort_by(|a, b| a.name.cmp(&b.name));
    lock.missing = sorting.missing;
    lock.unresolved = sorting.unresolved;
    let mut changes = old.map(|old| diff(old, &lock)).unwrap_or_default();
    changes.append(&mut sorting.gone);
    Locked { lock, items: sorting.items, changes }
}

async fn find_image(
    resolver: &Resolver,
    wanted: &WantedImage,
    old: Option<&Image>,
    pins: Pins,
) -> Found<Image> {
    let same = |old: &&Image| old.platforms == wanted.platforms && old.pin == wanted.pin;
    if let Some(old) = old.filter(same) {
        match pins {
            Pins::Keep if old.referrers.is_some() == wanted.referrers => return Found::Kept(old.clone()),
            Pins::Keep => return find_referrers(resolver, wanted, old).await,
            Pins::Refresh => match resolver.head(wanted).await {
                Ok(Some(digest)) if digest == old.digest => {
                    return find_referrers(resolver, wanted, old).await;
                }
                Ok(Some(_)) => {}
                Ok(None) => return Found::Gone(old.clone()),
                Err(cause) => return Found::Lost(Some(old.clone()), cause),
            },
        }
    }
    // other platforms of the same name stay at the digest that is locked: a moved tag is not taken
    let locked = old.filter(|_| pins == Pins::Keep && wanted.pin.is_none()).map(|old| old.digest.to_string());
    // a tag is asked for although a digest is demanded: upstream must answer with that digest
    let own = || wanted.name.tag.clone().or_else(|| wanted.name.digest.as_ref().map(Digest::to_string));
    let reference = locked.or_else(own).unwrap_or_else(|| "latest".into());
    match image::resolve(resolver, wanted, &reference).await {
        Ok(image) => Found::New(image),
        Err(cause) => Found::Lost(old.filter(same).cloned(), cause),
    }
}

/// The image of which only the referrers are asked for.
async fn find_referrers(resolver: &Resolver, wanted: &WantedImage, old: &Image) -> Found<Image> {
    match referrers::look_up(resolver, old, wanted.referrers).await {
        Ok(image) if image == *old => Found::Kept(image),
        Ok(image) => Found::New(image),
        Err(cause) => Found::Lost(Some(old.clone()), cause),
    }
}

async fn find_file(resolver: &Resolver, wanted: &WantedFile, old: Option<&File>, pins: Pins) -> Found<File> {
    let checksum = wanted.checksum.as_ref().map(ToString::to_string);
    let same = |old: &&File| old.checksum == checksum;
    if let (Some(old), Pins::Keep) = (old.filter(same), pins) {
        // aliases and mode are not asked for upstream: they follow the manifest
        return Found::Kept(File { also: wanted.also.clone(), mode: wanted.mode.clone(), ..old.clone() });
    }
    match file::resolve(resolver, wanted).await {
        Ok(file) => Found::New(file),
        Err(cause) => Found::Lost(old.filter(same).cloned(), cause),
    }
}

/// Sorts what was found into lock, losses and report.
struct Sorting<'a> {
    accepted: BTreeMap<&'a str, &'a Accepted>,
    items: Vec<Item>,
    missing: Vec<Accepted>,
    unresolved: Vec<Unresolved>,
    gone: Vec<Change>,
}

impl<'a> Sorting<'a> {
    fn new(wanted: &'a Wanted) -> Sorting<'a> {
        let accepted = wanted.missing.iter().map(|lost| (lost.name.as_str(), lost)).collect();
        Sorting { accepted, items: Vec::new(), missing: Vec::new(), unresolved: Vec::new(), gone: Vec::new() }
    }

    fn settle<T>(
        &mut self,
        kind: Kind,
        name: &str,
        found: Found<T>,
        digest: impl Fn(&T) -> Digest,
    ) -> Option<T> {
        let item =
            |status, digest, reason| Item { kind, name: name.into(), digest, bytes: None, status, reason };
        match found {
            Found::Kept(value) => {
                self.items.push(item(Status::Present, Some(digest(&value)), None));
                Some(value)
            }
            Found::New(value) => {
                self.items.push(item(Status::Done, Some(digest(&value)), None));
                Some(value)
            }
            Found::Gone(old) => {
                let (name, from) = (name.to_owned(), Some(digest(&old)));
                let reason = Some("upstream does not have it any more; the old pin is kept".to_owned());
                self.items.push(item(Status::Failed, from.clone(), reason));
                let (new_referrers, gone_referrers) = (Vec::new(), Vec::new());
                let change = "gone";
                self.gone.push(Change { kind, name, change, from, to: None, new_referrers, gone_referrers });
                Some(old)
            }
            Found::Lost(Some(old), cause) => {
                let reason = format!("{}; the old pin is kept", cause.told);
                self.items.push(item(Status::Failed, Some(digest(&old)), Some(reason)));
                Some(old)
            }
            Found::Lost(None, cause) => {
                match self.accepted.get(name) {
                    Some(accepted) => {
                        let over = accepted.until < today().to_string();
                        let status = if over { Status::Missing } else { Status::Skipped };
                        let reason = format!(
                            "{} (accepted until {}): {}",
                            accepted.reason, accepted.until, cause.told
                        );
                        self.items.push(item(status, None, Some(reason)));
                        self.missing.push((*accepted).clone());
                    }
                    None => {
                        self.items.push(item(Status::Missing, None, Some(cause.told)));
                        self.unresolved.push(Unresolved { kind, name: name.into(), cause: cause.recorded });
                    }
                }
                None
            }
        }
    }
}

/// How `new` differs from `old`.
pub fn diff(old: &Lock, new: &Lock) -> Vec<Change> {
    let (old, new) = (Side::all(old), Side::all(new));
    let mut changes = Vec::new();
    let names: BTreeSet<_> = old.keys().chain(new.keys()).collect();
    for key in names {
        let (before, after) = (old.get(key), new.get(key));
        let change = match (before, after) {
            (None, _) => "added",
            (_, None) => "removed",
            (Some(a), Some(b)) if a.digest != b.digest => "moved",
            (Some(a), Some(b)) if a.whole != b.whole => "changed",
            _ => continue,
        };
        let referrers = |side: Option<&Side>| side.map(|side| side.referrers.clone()).unwrap_or_default();
        let (had, has) = (referrers(before), referrers(after));
        changes.push(Change {
            kind: key.0,
            name: key.1.clone(),
            change,
            from: before.map(|side| side.digest.clone()),
            to: after.map(|side| side.digest.clone()),
            new_referrers: has.difference(&had).cloned().collect(),
            gone_referrers: had.difference(&has).cloned().collect(),
        });
    }
    changes
}

/// What of an item counts in a comparison.
struct Side<'a> {
    digest: Digest,
    whole: Whole<'a>,
    referrers: BTreeSet<Digest>,
}

#[derive(PartialEq)]
enum Whole<'a> {
    Image(&'a Image),
    File(&'a File),
}

impl<'a> Side<'a> {
    fn all(lock: &'a Lock) -> BTreeMap<(Kind, String), Side<'a>> {
        let image = |image: &'a Image| {
            let referrers = image.referrers.iter().flatten().map(|one| one.digest.clone()).collect();
            let side = Side { digest: image.digest.clone(), whole: Whole::Image(image), referrers };
            ((Kind::Image, image.name.to_string()), side)
        };
        let file = |file: &'a File| {
            let (digest, whole) = (file.digest.clone(), Whole::File(file));
            ((Kind::File, file.name.clone()), Side { digest, whole, referrers: BTreeSet::new() })
        };
        lock.images.iter().map(image).chain(lock.files.iter().map(file)).collect()
    }
}
