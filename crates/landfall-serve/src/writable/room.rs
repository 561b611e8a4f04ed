//! How many bytes the folder for pushes has, and how many it may have. An upload takes its share as
//! it comes in, and gives it back where it is not kept.

use super::error::KeepError;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The bytes of the folder, uploads in progress included.
pub(in super::super) struct Room {
    used: AtomicU64,
    most: Option<u64>,
}

impl Room {
    /// `used` bytes are there, and there may be `most`.
    pub(super) fn new(used: u64, most: Option<u64>) -> Room {
        Room {
            used: AtomicU64::new(used),
            most,
        }
    }

    /// How many bytes there are.
    pub(in super::super) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// How many bytes there may be.
    pub(in super::super) fn most(&self) -> Option<u64> {
        self.most
    }

    /// Whether so many more bytes fit now.
    pub(in super::super) fn fits(&self, bytes: u64) -> bool {
        self.most
            .is_none_or(|most| self.used().saturating_add(bytes) <= most)
    }

    /// Takes room for so many bytes.
    fn take(&self, bytes: u64) -> Result<(), KeepError> {
        let most = self.most.unwrap_or(u64::MAX);
        let more = |used: u64| used.checked_add(bytes).filter(|after| *after <= most);
        let taken = self
            .used
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, more);
        taken
            .map(|_| ())
            .map_err(|used| KeepError::Full { used, most })
    }

    /// So many bytes are removed.
    pub(super) fn give_back(&self, bytes: u64) {
        let less = |used: u64| Some(used.saturating_sub(bytes));
        let _ = self
            .used
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, less);
    }

    /// Why so many bytes do not fit.
    pub(in super::super) fn full(&self) -> KeepError {
        KeepError::Full {
            used: self.used(),
            most: self.most.unwrap_or(u64::MAX),
        }
    }
}

/// What an upload has taken of the room.
pub(super) struct Share {
    room: Arc<Room>,
    bytes: u64,
}

impl Share {
    /// Nothing yet.
    pub(super) fn of(room: Arc<Room>) -> Share {
        Share { room, bytes: 0 }
    }

    /// So many bytes more.
    ///
    /// # Errors
    /// When they do not fit.
    pub(super) fn grow(&mut self, bytes: u64) -> Result<(), KeepError> {
        self.room.take(bytes)?;
        self.bytes += bytes;
        Ok(())
    }

    /// So many bytes less.
    pub(super) fn shrink(&mut self, bytes: u64) {
        self.room.give_back(bytes);
        self.bytes -= bytes;
    }

    /// The bytes stay, in place of so many that were there.
    pub(super) fn keep(mut self, instead: u64) {
        self.bytes = 0;
        self.room.give_back(instead);
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.room.give_back(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_refused_and_what_is_not_kept_is_given_back() {
        let room = Arc::new(Room::new(10, Some(100)));
        let mut share = Share::of(room.clone());
        share.grow(80).unwrap();
        assert!(matches!(
            share.grow(11),
            Err(KeepError::Full {
                used: 90,
                most: 100
            })
        ));
        assert!(room.fits(10) && !room.fits(11));
        drop(share);
        assert_eq!(room.used(), 10);
        let mut share = Share::of(room.clone());
        share.grow(20).unwrap();
        share.keep(5);
        assert_eq!(room.used(), 25);
    }
}
