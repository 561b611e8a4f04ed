//! A bundle that is made straight from upstream as a place where parts are brought to, and where those that are
//! here already are read from.

use super::contents::Frame;
use super::ground::StoredGround;
use super::plan::Content;
use super::straight::{Inner, Straight};
use super::{frame, header};
use crate::content::Entry;
use crate::content::{BlobRead, ByteRange, ContentError, LocalSink, WriteError, Writer};
use crate::model::{Descriptor, Digest};
use crate::store::Disk;
use std::io::Read;
use std::sync::PoisonError;

impl Inner {
    /// A stored blob has come, in these frames.
    pub(super) fn came(&self, digest: &Digest, frames: Vec<Frame>) {
        if let Some(&place) = self.places.get(digest) {
            self.stored.lock().unwrap_or_else(PoisonError::into_inner).insert(place, frames);
        }
        if let Some(previous) = &self.previous {
            previous.drop_copy(digest);
        }
    }

    /// The stores that may have content that need not be fetched, the spool first.
    fn disks(&self) -> impl Iterator<Item = &Disk> {
        std::iter::once(&self.spool).chain(&self.store)
    }

    /// Who has this content here.
    fn near(&self, digest: &Digest) -> Option<&dyn BlobRead> {
        let size = self.plan.pieces[*self.places.get(digest)?].descriptor.size;
        let disk = self.disks().find(|disk| disk.has(digest, size).unwrap_or(false));
        let others = self.old.iter().map(|old| old as &dyn BlobRead);
        let mut others = others.chain(self.previous.iter().map(|previous| previous as &dyn BlobRead));
        let other = || others.find(|blobs| blobs.stat(digest).is_ok_and(|found| found == Some(size)));
        disk.map(|disk| disk as &dyn BlobRead).or_else(other)
    }

    /// Looks again at content that turned out to be damaged: what a store has wrong is removed.
    pub(super) fn distrust(&self, digest: &Digest) {
        if let Some(&place) = self.places.get(digest) {
            let size = self.plan.pieces[place].descriptor.size;
            self.disks().for_each(|disk| drop(disk.rehash(digest, size)));
        }
    }
}

impl BlobRead for Straight {
    fn stat(&self, digest: &Digest) -> Result<Option<u64>, ContentError> {
        self.0.near(digest).map_or(Ok(None), |blobs| blobs.stat(digest))
    }

    fn open(&self, digest: &Digest, offset: u64) -> Result<Box<dyn Read + Send>, ContentError> {
        let missing = || ContentError::Missing { digest: digest.clone() };
        self.0.near(digest).ok_or_else(missing)?.open(digest, offset)
    }
}

impl LocalSink for Straight {
    fn holds(&self, descriptor: &Descriptor, rehash: bool) -> Result<bool, WriteError> {
        let Descriptor { digest, size, .. } = descriptor;
        let inner = &*self.0;
        if rehash {
            inner.distrust(digest);
        }
        let Some(&place) = inner.places.get(digest) else { return Ok(false) };
        let piece = &inner.plan.pieces[place];
        if !matches!(piece.content, Content::Store) {
            return Ok(true);
        }
        // whether a stored blob is there shows when its bytes are looked at
        if place < inner.compressed {
            return Ok(false);
        }
        let written = |place: usize| place < inner.compressed + inner.squeezed().frames.len();
        let trimmed = inner.untrimmed.get(digest).into_iter().flatten();
        if trimmed.chain([&place]).all(|&place| written(place)) {
            return Ok(true);
        }
        for disk in inner.disks() {
            if disk.has(digest, *size)? {
                self.settled(digest);
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn take(&self, _: &Descriptor, _: &[u8]) -> Result<(), WriteError> {
        // what is not fetched follows from the plan
        Ok(())
    }

    fn begin(
        &self,
        descriptor: &Descriptor,
        parallel_from: bool,
    ) -> Result<Option<(Writer, Vec<ByteRange>)>, WriteError> {
        let inner = &self.0;
        let Some(entry) = inner.places.get(&descriptor.digest).filter(|place| **place < inner.compressed)
        else {
            return inner.spool.begin(descriptor, wide);
        };
        let entry = &inner.contents.entries[*entry];
        let start = entry.offset + frame::stored_len(header::encoded_len(&entry.name) as u64);
        let length = inner.file.metadata().map_or(0, |data| data.len());
        let (begin, apart) = inner.journal.there(&descriptor.digest);
        let mut writer = Writer::new(StoredGround::new(inner.clone(), descriptor, start), descriptor);
        // a file that was cut has not what its journal says
        let reach = apart.last().map_or(begin, |last| last.1);
        if reach > descriptor.size || reach > 0 && start + frame::stored_place(reach - 1).0 >= length {
            writer.restart()?;
            return Ok(Some((writer, Vec::new())));
        }
        writer.absorb(begin)?;
        Ok(Some((writer, if wide { apart } else { Vec::new() })))
    }

    fn rank(&self, descriptor: &Descriptor) -> u64 {
        // what must be compressed comes first, in its order: it stays in the spool until those before it are there
        match self.0.places.get(&descriptor.digest) {
            Some(&place) if place >= self.0.compressed => place as u64,
            _ => u64::MAX - descriptor.size,
        }
    }

    fn settled(&self, digest: &Digest) {
        self.0.arrivals.0.lock().unwrap_or_else(PoisonError::into_inner).here.insert(digest.clone());
        self.0.arrivals.1.notify_all();
    }

    fn name(&self, _: &mut dyn Iterator<Item = Entry>) -> Result<(), WriteError> {
        Ok(())
    }
}
