//! An update: lists are replaced, versions move, and upstream is asked about the rest.

use super::NamePattern;
use super::asker::{Asker, Wish, wishes};
use super::outcome::{Held, Move, Noticed, Updated};
use super::sources::{versions, written_like};
use crate::document::Location;
use crate::item::{Cause, Resolver, Stand};
use crate::lockfile::Lock;
use crate::manifest::{
    Edited, Error, Slot, Versions, Wanted, list_sources, load_edited, manifest_files, set_digest,
    set_version, slots, text_of,
};
use crate::model::{Digest, Platform};
use crate::report::{Item, Kind, Status};
use futures_util::{StreamExt, stream};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// What is to be updated.
pub(crate) struct Asked<'a> {
    /// Manifests, folders of manifests, and plain lists.
    pub(crate) paths: &'a [PathBuf],
    /// The platforms of plain lists.
    pub(crate) platforms: &'a [Platform],
    /// What is locked.
    pub(crate) old: Option<&'a Lock>,
    /// What alone may move; everything where empty.
    pub(crate) only: &'a [NamePattern],
    /// Ask for the digest of an image too whose tags are listed already.
    pub(crate) every_digest: bool,
}

/// Finds out what the manifests may move to. Nothing is written.
///
/// # Errors
/// When the manifests have a fault.
pub(crate) async fn update(asked: &Asked<'_>, resolver: &Resolver) -> Result<Updated, Error> {
    let wanted = load_edited(asked.paths, asked.platforms, &Edited::new())?;
    let lists = list_sources(asked.paths, &Edited::new())?;
    let has_lists = !lists.is_empty();
    let files = manifest_files(asked.paths)?.into_iter().chain(lists.into_iter().map(|list| list.path));
    let before = files.map(|path| (path.clone(), digest_of(&path))).collect();
    let updated = Updated { wanted, before, ..Updated::default() };
    let mut run = Run { asked, asker: Asker::new(resolver), lists: BTreeMap::new(), has_lists, updated };
    resolver.progress().begin("update", wishes(&run.updated.wanted).len() as u64, 0);
    run.replace_lists().await?;
    run.move_versions().await?;
    run.look_at_the_rest().await?;
    resolver.progress().end();
    Ok(run.updated)
}

/// The digest of a file as it stands there.
fn digest_of(path: &Path) -> Digest {
    Digest::sha256(&std::fs::read(path).unwrap_or_default())
}

struct Run<'a> {
    asked: &'a Asked<'a>,
    asker: Asker<'a>,
    /// The lists that were fetched, by URL.
    lists: BTreeMap<String, Result<String, Cause>>,
    has_lists: bool,
    updated: Updated,
}

/// Why a version is not taken.
enum Refusal {
    /// Something holds it back: the next lower one may do.
    Held(String),
    /// It could not be found out.
    Unasked(Item),
}

impl From<String> for Refusal {
    fn from(why: String) -> Refusal {
        Refusal::Held(why)
    }
}

/// An item that could not be asked for.
fn failed(kind: Kind, name: impl Into<String>, cause: &Cause) -> Item {
    let (name, reason) = (name.into(), Some(cause.told.clone()));
    Item { kind, name, digest: None, bytes: None, status: Status::Failed, reason }
}

impl Run<'_> {
    fn is_asked(&self, names: &[&str]) -> bool {
        let only = self.asked.only;
        only.is_empty() || only.iter().any(|pattern| names.iter().any(|name| pattern.matches(name)))
    }

    fn load(&self, edited: &Edited) -> Result<Wanted, Error> {
        load_edited(self.asked.paths, self.asked.platforms, edited)
    }

    /// Replaces the lists that have another content at their source.
    async fn replace_lists(&mut self) -> Result<(), Error> {
        if !self.has_lists {
            return Ok(());
        }
        for source in list_sources(self.asked.paths, &self.updated.edited)? {
            let name = source.path.display().to_string();
            if !self.is_asked(&[&name, &source.url]) {
                continue;
            }
            let text = match self.list(&source.url).await {
                Ok(text) => text,
                Err(cause) => {
                    self.updated.failed.push(failed(Kind::File, source.url, &cause));
                    continue;
                }
            };
            let old = text_of(&source.path, &self.updated.edited)?;
            if old == text {
                continue;
            }
            let mut edited = self.updated.edited.clone();
            edited.insert(source.path, text.clone());
            match self.load(&edited) {
                Err(error) => {
                    let cause = Cause::from(format!("the new list cannot be used: {}", first_line(&error)));
                    self.updated.failed.push(failed(Kind::File, source.url, &cause));
                }
                Ok(wanted) => {
                    let items = fresh(&self.updated.wanted, &wanted).into_iter().map(|wish| wish.name);
                    let digest = |text: &str| Digest::sha256(text.as_bytes()).to_string();
                    self.updated.moves.push(Move {
                        at: Location { file: name.clone(), line: 1, column: 1 },
                        name,
                        policy: "list".into(),
                        from: digest(&old),
                        to: Some(digest(&text)),
                        items: items.collect(),
                        held: Vec::new(),
                    });
                    (self.updated.edited, self.updated.wanted) = (edited, wanted);
                }
            }
        }
        Ok(())
    }

    /// The list at `url`.
    async fn list(&mut self, url: &str) -> Result<String, Cause> {
        if let Some(known) = self.lists.get(url) {
            return known.clone();
        }
        let resolver = self.asker.resolver;
        let fetched = match resolver.small_file(url, resolver.limits().document_bytes, None).await {
            Ok(bytes) => {
                String::from_utf8(bytes.to_vec()).map_err(|_| Cause::from("the list is no UTF-8 text"))
            }
            Err(error) => Err(error.into()),
        };
        self.lists.insert(url.to_owned(), fetched.clone());
        fetched
    }

    /// Moves every version to the newest one that can be taken.
    async fn move_versions(&mut self) -> Result<(), Error> {
        let mut slots = slots(self.asked.paths, &self.updated.edited)?;
        slots.retain(|slot| {
            let image = match &slot.versions {
                Ok(Versions::Tags(image, ..)) => image.name(),
                _ => slot.name.clone(),
            };
            self.is_asked(&[&slot.name, &image])
        });
        let found = self.find_versions(&slots).await;
        for (at, slot) in slots.iter().enumerate() {
            let candidates = found[at].clone().and_then(|found| {
                let found = found.iter().map(|version| match &slot.versions {
                    Ok(Versions::Document(_)) => written_like(&slot.current, version),
                    _ => version.clone(),
                });
                slot.policy.newer(&slot.current, found).map_err(|error| Cause::from(error.to_string()))
            });
            match candidates {
                Ok(candidates) => self.move_version(slot, candidates).await?,
                Err(cause) => {
                    let kind = if matches!(slot.versions, Ok(Versions::Document(_))) {
                        Kind::File
                    } else {
                        Kind::Image
                    };
                    let name = format!("{} ({})", slot.name, slot.at);
                    self.updated.failed.push(failed(kind, name, &cause));
                }
            }
        }
        Ok(())
    }

    /// The versions that each slot's source has. Every source is asked once.
    async fn find_versions(&self, slots: &[Slot]) -> Vec<Result<Vec<String>, Cause>> {
        let sources: BTreeMap<String, &Versions> = slots
            .iter()
            .filter_map(|slot| slot.versions.as_ref().ok())
            .map(|from| (format!("{from:?}"), from))
            .collect();
        let sources: Vec<(&String, &&Versions)> = sources.iter().collect();
        let resolver = self.asker.resolver;
        let asking = stream::iter(0..sources.len())
            .map(async |at: usize| (sources[at].0.clone(), versions(resolver, sources[at].1).await));
        let found: BTreeMap<String, _> = asking.buffered(resolver.limits().jobs).collect().await;
        let of = |slot: &Slot| match &slot.versions {
            Ok(from) => found.get(&format!("{from:?}")).cloned().unwrap_or_else(|| Ok(Vec::new())),
            Err(why) => Err(Cause::from(why.as_str())),
        };
        slots.iter().map(of).collect()
    }

    /// Moves one version to the first of `candidates` that can be taken.
    async fn move_version(&mut self, slot: &Slot, candidates: Vec<String>) -> Result<(), Error> {
        let mut moved = Move {
            name: slot.name.clone(),
            at: slot.at.clone(),
            policy: slot.written.clone(),
            from: slot.current.clone(),
            to: None,
            items: Vec::new(),
            held: Vec::new(),
        };
        for version in candidates {
            match self.take(slot, &version).await {
                Ok(items) => {
                    (moved.to, moved.items) = (Some(version), items);
                    break;
                }
                Err(Refusal::Held(why)) => moved.held.push(Held { version, why }),
                Err(Refusal::Unasked(item)) => {
                    self.updated.failed.push(item);
                    break;
                }
            }
        }
        if moved.to.is_some() || !moved.held.is_empty() {
            self.updated.moves.push(moved);
        }
        Ok(())
    }

    /// Takes `version`, if upstream has all items that use it. Returns the items that are new.
    async fn take(&mut self, slot: &Slot, version: &str) -> Result<Vec<String>, Refusal> {
        let told = |error: Error| Refusal::Held(first_line(&error));
        if slot.others.iter().any(|other| other == version) {
            return Err(Refusal::Held(format!("it is a value of `{}` already", slot.name)));
        }
        let mut edited = self.updated.edited.clone();
        let text = text_of(&slot.file, &edited).map_err(told)?;
        edited.insert(slot.file.clone(), set_version(&text, slot, version)?);
        self.follow_lists(&mut edited).await?;
        let mut wanted = self.load(&edited).map_err(told)?;
        let fresh = fresh(&self.updated.wanted, &wanted);
        let names = fresh.iter().map(|wish| (wish.kind, wish.name.clone())).collect();
        self.asker.ask(&wanted, &names).await;
        let mut has_digests = false;
        for wish in &fresh {
            let accepted =
                wanted.missing.iter().any(|lost| (lost.kind, &lost.name) == (wish.kind, &wish.name));
            match self.asker.answer(wish) {
                Some(Err(cause)) => return Err(Refusal::Unasked(failed(wish.kind, &wish.name, cause))),
                Some(Ok(Stand::Gone)) if !accepted => {
                    return Err(Refusal::Held(format!("upstream does not have {} {}", wish.kind, wish.name)));
                }
                Some(Ok(Stand::There { digest, .. })) => {
                    has_digests |= demand(&mut edited, wish, digest.as_ref())?;
                }
                Some(Ok(Stand::Gone)) | None => {}
            }
        }
        if has_digests {
            wanted = self.load(&edited).map_err(told)?;
        }
        (self.updated.edited, self.updated.wanted) = (edited, wanted);
        Ok(fresh.into_iter().map(|wish| wish.name).collect())
    }

    /// Puts the lists in place whose URLs have a variable that moved.
    async fn follow_lists(&mut self, edited: &mut Edited) -> Result<(), Refusal> {
        if !self.has_lists {
            return Ok(());
        }
        let told = |error: Error| Refusal::Held(first_line(&error));
        for source in list_sources(self.asked.paths, edited).map_err(told)? {
            let text = self.list(&source.url).await.map_err(|cause| match cause.is_gone {
                true => Refusal::Held(format!("upstream does not have the list {}", source.url)),
                false => Refusal::Unasked(failed(Kind::File, &source.url, &cause)),
            })?;
            if text_of(&source.path, edited).map_err(told)? != text {
                edited.insert(source.path, text);
            }
        }
        Ok(())
    }

    /// Asks about everything that did not move.
    async fn look_at_the_rest(&mut self) -> Result<(), Error> {
        let wanted = self.updated.wanted.clone();
        let accepted: BTreeSet<(Kind, &str)> =
            wanted.missing.iter().map(|lost| (lost.kind, lost.name.as_str())).collect();
        let mut rest = wishes(&wanted);
        rest.retain(|wish| {
            let without_tag = wish.tagged.as_ref().map_or_else(|| wish.name.clone(), |image| image.name());
            !accepted.contains(&(wish.kind, wish.name.as_str()))
                && self.asker.answer(wish).is_none()
                && self.is_asked(&[&wish.name, &without_tag])
        });
        let names = rest.iter().filter(|wish| self.listed(wish).is_none());
        let names = names.map(|wish| (wish.kind, wish.name.clone())).collect();
        self.asker.ask(&wanted, &names).await;
        let locked = self.asked.old.map(locked).unwrap_or_default();
        for wish in rest {
            let stand = match (self.asker.answer(&wish), self.listed(&wish)) {
                (Some(Ok(stand)), _) => stand.clone(),
                (Some(Err(cause)), _) => {
                    self.updated.failed.push(failed(wish.kind, &wish.name, cause));
                    continue;
                }
                (None, Some(stand)) => stand,
                (None, None) => continue,
            };
            let locked = locked.get(&(wish.kind, wish.name.clone()));
            self.notice(&wish, &stand, locked);
        }
        if self.updated.noticed.iter().any(|noticed| noticed.taken) {
            self.updated.wanted = self.load(&self.updated.edited)?;
        }
        Ok(())
    }

    /// What the list of tags says of an image, where that is enough.
    fn listed(&self, wish: &Wish) -> Option<Stand> {
        if self.asked.every_digest || wish.policy.as_deref() == Some("digest") {
            return None;
        }
        let image = wish.tagged.as_ref()?;
        let tags = self.asker.resolver.listed_tags(image)?;
        Some(match tags.contains(image.tag.as_deref()?) {
            true => Stand::There { digest: None, size: None },
            false => Stand::Gone,
        })
    }

    /// Compares what stands upstream with what is demanded or locked.
    fn notice(&mut self, wish: &Wish, stand: &Stand, locked: Option<&(Digest, Option<u64>)>) {
        let Wish { kind, name, demanded, .. } = wish;
        let from = demanded.as_ref().map(|(digest, _)| digest).or(locked.map(|(digest, _)| digest)).cloned();
        let noticed = |what, to, taken| Noticed {
            kind: *kind,
            name: name.clone(),
            what,
            from: from.clone(),
            to,
            taken,
        };
        match stand {
            Stand::Gone => self.updated.noticed.push(noticed("gone", None, false)),
            Stand::There { digest: Some(digest), .. } if from.as_ref().is_some_and(|from| from != digest) => {
                let takes = wish.policy.as_deref() == Some("digest");
                let taken = match demanded {
                    Some(_) if takes => {
                        let demanded = demand(&mut self.updated.edited, wish, Some(digest));
                        if let Err(Refusal::Held(why)) = &demanded {
                            self.updated.failed.push(failed(*kind, name, &Cause::from(why.as_str())));
                        }
                        demanded.unwrap_or(false)
                    }
                    _ => takes,
                };
                if taken {
                    self.updated.relock.insert((*kind, name.clone()));
                }
                self.updated.noticed.push(noticed("moved", Some(digest.clone()), taken));
            }
            Stand::There { size: Some(size), .. }
                if locked.is_some_and(|(_, old)| old.is_some_and(|old| old != *size)) =>
            {
                self.updated.noticed.push(noticed("moved", None, false));
            }
            Stand::There { .. } => {}
        }
    }
}

/// Writes the digest that upstream has into the manifest, where that demands another one. Returns whether it did.
fn demand(edited: &mut Edited, wish: &Wish, digest: Option<&Digest>) -> Result<bool, Refusal> {
    let Some((old, at)) = &wish.demanded else { return Ok(false) };
    match digest {
        Some(new) if new == old => Ok(false),
        Some(new) => {
            let file = Path::new(&at.file);
            let text = text_of(file, edited).map_err(|error| Refusal::Held(first_line(&error)))?;
            let told = |why: String| Refusal::Held(format!("{}: {why}", wish.name));
            edited.insert(file.into(), set_digest(&text, at, old, new).map_err(told)?);
            Ok(true)
        }
        None => Err(Refusal::Held(format!(
            "the manifest has the checksum of {}; name a checksum file in its place, as in `checksum: ${{url}}.sha256`",
            wish.name
        ))),
    }
}

/// What `new` wants that `old` does not.
fn fresh(old: &Wanted, new: &Wanted) -> Vec<Wish> {
    let had: BTreeSet<(Kind, String)> = wishes(old).into_iter().map(|wish| (wish.kind, wish.name)).collect();
    let mut fresh = wishes(new);
    fresh.retain(|wish| !had.contains(&(wish.kind, wish.name.clone())));
    fresh
}

/// The digest of each locked item, and the size of a file.
fn locked(lock: &Lock) -> BTreeMap<(Kind, String), (Digest, Option<u64>)> {
    let item = |item: &dyn crate::item::LockedItem| {
        let size = item.files().first().map(|file| file.size);
        ((item.kind(), item.name().into_owned()), (item.digest().clone(), size))
    };
    lock.items().map(item).collect()
}

/// The first line of an error: its place and what is wrong.
fn first_line(error: &Error) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}
