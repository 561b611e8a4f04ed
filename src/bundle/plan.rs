//! What goes into a bundle, in which order: it follows from the lock, and from what is missing.

use super::contents::{FRONT, ItemName};
use super::{Base, BaseName, Error, Form, LOCK, delta, frame, header, locator};
use crate::content::BlobRead;
use crate::content::{Entry, Origin};
use crate::item;
use crate::lockfile::Lock;
use crate::model::{Descriptor, Digest, media_type};
use crate::report::{Item, Kind};
use crate::store::LayoutIndex;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt;

/// `oci-layout` (image-layout.md, "oci-layout file").
pub(super) const OCI_LAYOUT: &[u8] = br#"{"imageLayoutVersion":"1.0.0"}"#;

/// Everything that a bundle of one lock is made of.
#[derive(Debug)]
pub struct Plan {
    /// Items that will be in it, each whole: images by name, then files by name.
    pub items: Vec<Item>,
    /// Items that should be in it and will not.
    pub lost: Vec<Lost>,
    /// The bases of a delta. Empty where nothing is left out.
    pub bases: Vec<BaseName>,
    /// BlobRead that are left out because every base has them, by digest.
    pub omitted: Vec<Descriptor>,
    /// SHA-256 of the lock's text.
    pub fingerprint: Digest,
    pub(super) pieces: Vec<Piece>,
}

/// An item that is not whole, and so is left out of a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lost {
    /// Which item.
    pub item: ItemName,
    /// Its digest, where the lock has one.
    pub digest: Option<Digest>,
    /// Why.
    pub reason: String,
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.item.kind, self.item.name, self.reason)
    }
}

/// One entry of the tar that is to be written.
#[derive(Debug)]
pub(super) struct Piece {
    pub name: String,
    pub descriptor: Descriptor,
    pub form: Form,
    pub content: Content,
    /// The item that it is for, or the first of several.
    pub item: String,
}

/// Where a piece's bytes come from.
#[derive(Debug)]
pub(super) enum Content {
    Bytes(Vec<u8>),
    Store,
    Trimmed { of: Descriptor, keep: BTreeSet<Digest> },
}

impl Plan {
    /// Plans the bundle of `lock` from what `blobs` has. Accepted losses count until their date;
    /// `today` is after it or not.
    ///
    /// # Errors
    /// When `blobs` cannot be asked.
    pub fn new(lock: &Lock, blobs: &dyn BlobRead, today: jiff::civil::Date) -> Result<Plan, Error> {
        Plan::since(lock, blobs, &[], today)
    }

    /// The same for a delta: layers and files that every base has are left out, and `blobs` need not have
    /// them.
    ///
    /// # Errors
    /// As [`Plan::new`]; and when a manifest cannot be read.
    pub fn since(
        lock: &Lock,
        blobs: &dyn BlobRead,
        bases: &[Base],
        today: jiff::civil::Date,
    ) -> Result<Plan, Error> {
        let mut lost = Vec::new();
        let mut asked = HashMap::new();
        let mut all_kept = HashSet::new();
        for entry in item::each(lock) {
            let mut lacking = Vec::new();
            let failed = |source| Error::Content { item: entry.name.clone(), source };
            let kept =
                if bases.is_empty() { HashSet::new() } else { delta::kept(&entry, blobs).map_err(failed)? };
            for part in entry.parts.iter().filter(|part| part.is_stored()) {
                let Descriptor { digest, size, .. } = &part.descriptor;
                if !kept.contains(digest) && delta::all_have(bases, &part.descriptor) {
                    continue;
                }
                if !asked.contains_key(digest) {
                    let found = blobs.stat(digest);
                    asked.insert(digest.clone(), found.map_err(failed)?);
                }
                match asked[digest] {
                    Some(found) if found == *size => {}
                    Some(found) => lacking.push(format!("{digest} has {found} bytes, not {size}")),
                    None => lacking.push(digest.to_string()),
                }
            }
            if let Some(first) = lacking.first() {
                let more = if lacking.len() > 1 {
                    format!(" and {} more", lacking.len() - 1)
                } else {
                    String::new()
                };
                let item = ItemName { kind: entry.kind, name: entry.name };
                let reason = format!("the store lacks {first}{more}");
                lost.push(Lost { item, digest: Some(entry.digest), reason });
            } else {
                all_kept.extend(kept);
            }
        }
        let mut plan = Plan::lacking(lock, lost, today);
        plan.leave_out(|blob| !all_kept.contains(&blob.digest) && delta::all_have(bases, blob));
        if !plan.omitted.is_empty() {
            plan.bases = delta::names(bases, &plan.omitted);
        }
        Ok(plan)
    }

    /// Plans the bundle of `lock` as if everything that it names were there. Losses that the lock itself has
    /// are lost as in [`Plan::new`].
    pub fn wanted(lock: &Lock, today: jiff::civil::Date) -> Plan {
        Plan::lacking(lock, Vec::new(), today)
    }

    fn lacking(lock: &Lock, mut lost: Vec<Lost>, today: jiff::civil::Date) -> Plan {
        let name = |kind: Kind, name: &String| ItemName { kind, name: name.clone() };
        lost.extend(lock.unresolved.iter().map(|item| Lost {
            item: name(item.kind, &item.name),
            digest: None,
            reason: format!("it could not be locked: {}", item.cause),
        }));
        let past = |until: &str| until.parse::<jiff::civil::Date>().is_ok_and(|until| today <= until);
        lost.extend(lock.missing.iter().filter(|item| !past(&item.until)).map(|item| Lost {
            item: name(item.kind, &item.name),
            digest: None,
            reason: format!("its absence was accepted until {} ({})", item.until, item.reason),
        }));
        lost.sort_by(|a, b| a.item.cmp(&b.item));
        let without = lost.iter().map(|lost| lost.item.clone()).collect();
        Plan { lost, ..Plan::without(lock, &without) }
    }

    /// The plan of a bundle of `lock` that lacks exactly `without`.
    pub(super) fn without(lock: &Lock, without: &BTreeSet<ItemName>) -> Plan {
        let mut items: Vec<(usize, Item)> = item::each(lock).map(|entry| entry.item()).enumerate().collect();
        items.retain(|(_, item)| !without.contains(&ItemName { kind: item.kind, name: item.name.clone() }));
        items.sort_by(|(_, a), (_, b)| (a.kind, &a.name).cmp(&(b.kind, &b.name)));
        let entries = || items.iter().map(|(at, _)| item::entry(lock, *at));
        let mut layout = LayoutIndex::default();
        layout.add(entries());
        let mut text = lock.to_text();
        text.shrink_to_fit();
        let fingerprint = Digest::sha256(text.as_bytes());
        let front = [
            (FRONT[0], "application/vnd.oci.layout.header.v1+json", OCI_LAYOUT.to_vec()),
            (FRONT[1], media_type::OCI_INDEX, layout.to_bytes()),
            (LOCK, "application/vnd.landfall.lock.v1+yaml", text.into_bytes()),
        ];
        let mut pieces: Vec<Piece> = front.map(|(name, kind, bytes)| front_piece(name, kind, bytes)).into();
        let mut blobs = blob_pieces(entries());
        blobs.sort_by_key(|piece| piece.form != Form::Stored);
        pieces.extend(blobs);
        let items = items.into_iter().map(|(_, item)| item).collect();
        Plan { items, lost: Vec::new(), bases: Vec::new(), omitted: Vec::new(), fingerprint, pieces }
    }

    /// Takes the blobs out that `is_had`.
    fn leave_out(&mut self, is_had: impl Fn(&Descriptor) -> bool) {
        let blobs = self.pieces.split_off(super::contents::FRONT.len() + 1);
        let (out, within): (Vec<_>, Vec<_>) = blobs.into_iter().partition(|piece| is_had(&piece.descriptor));
        self.pieces.extend(within);
        self.omitted = out.into_iter().map(|piece| piece.descriptor).collect();
        self.omitted.sort_by(|a, b| a.digest.cmp(&b.digest));
    }

    /// Refuses a bundle that would be partial.
    ///
    /// # Errors
    /// When something is lost.
    pub fn check_whole(&self) -> Result<(), Error> {
        if self.lost.is_empty() { Ok(()) } else { Err(Error::Incomplete { lost: self.lost.clone() }) }
    }

    /// Size in bytes of all blobs, each once.
    pub fn content_bytes(&self) -> u64 {
        self.pieces[super::contents::FRONT.len() + 1..].iter().map(|piece| piece.descriptor.size).sum()
    }

    /// Bytes that the stored blobs take in the file, without their headers.
    pub(super) fn stored_bytes(&self) -> u64 {
        let stored = self.pieces.iter().filter(|piece| piece.form == Form::Stored);
        stored.map(|piece| frame::stored_len(piece.descriptor.size)).sum()
    }

    /// Most bytes that the file may need: nothing shrinks, and the index is long.
    pub fn needed_bytes(&self) -> u64 {
        let piece = |piece: &Piece| {
            let size = piece.descriptor.size;
            let frames = 3 + size / frame::CHUNK as u64;
            let stored = frame::stored_len(size) + size / 256 + 2 * header::BLOCK as u64 + 64;
            stored + frames * 96 + 512 + 4 * piece.name.len() as u64
        };
        // a line for what is left out, and one for its place at each registry
        let omitted = self.omitted.len() as u64 * (384 + self.bases.len() as u64 * 384);
        self.pieces.iter().map(piece).sum::<u64>() + omitted + locator::SPAN as u64 + 8192
    }
}

fn content(from: &Origin) -> Content {
    match from {
        Origin::Computed(bytes) => Content::Bytes(bytes.clone()),
        Origin::Trimmed { of, keep } => Content::Trimmed { of: of.clone(), keep: keep.clone() },
        Origin::Manifest { .. } | Origin::Blob { .. } | Origin::Foreign { .. } | Origin::Url(_) => {
            Content::Store
        }
    }
}

fn front_piece(name: &str, kind: &str, bytes: Vec<u8>) -> Piece {
    let descriptor =
        Descriptor { digest: Digest::sha256(&bytes), size: bytes.len() as u64, media_type: kind.into() };
    let (name, item) = (name.to_owned(), name.to_owned());
    Piece { name, descriptor, form: Form::Stored, content: Content::Bytes(bytes), item }
}

/// Every blob once, in the order in which the items first need them. Where several parts are one blob,
/// it is stored if one of them says so, and has the first of their media types by name.
fn blob_pieces(entries: impl Iterator<Item = Entry>) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    let mut places: BTreeMap<Digest, usize> = BTreeMap::new();
    let named = |Entry { name, parts, .. }| parts.into_iter().map(move |part| (name.clone(), part));
    for (item, part) in entries.flat_map(named) {
        let url = if let Origin::Url(url) = &part.origin { Some(url.as_str()) } else { None };
        let form = Form::of(&part.descriptor.media_type, url);
        if let Some(&place) = places.get(&part.descriptor.digest) {
            let piece = &mut pieces[place];
            if form == Form::Stored {
                piece.form = form;
            }
            if part.descriptor.media_type < piece.descriptor.media_type {
                piece.descriptor.media_type.clone_from(&part.descriptor.media_type);
            }
            if matches!(piece.content, Content::Store) {
                piece.content = content(&part.origin);
            }
            continue;
        }
        places.insert(part.descriptor.digest.clone(), pieces.len());
        pieces.push(Piece {
            name: part.descriptor.digest.layout_path(),
            descriptor: part.descriptor,
            form,
            content: content(&part.origin),
            item,
        });
    }
    pieces
}
