//! Remembers when the checksum of a frame was compared last. A frame that many clients read at the
//! same time is in the page cache, where bits do not rot: comparing it again for each client would
//! find nothing.

use landfall_model::locked;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// How long a comparison is valid.
const VALIDITY: Duration = Duration::from_mins(1);

/// The times at which the checksums of frames were compared, by the content that a frame belongs to
/// and the number of the frame in it.
#[derive(Debug)]
pub struct RecentChecks<K> {
    start: Instant,
    /// For each frame, the time of its comparison in seconds since `start`, plus 1; 0 if it was not
    /// compared.
    // 4 bytes per frame of 1 MiB: an `Instant` would take four times as much
    frames: Mutex<HashMap<K, Vec<u32>>>,
}

impl<K: Eq + Hash> Default for RecentChecks<K> {
    fn default() -> RecentChecks<K> {
        RecentChecks {
            start: Instant::now(),
            frames: Mutex::default(),
        }
    }
}

impl<K: Eq + Hash> RecentChecks<K> {
    /// Whether the frame was compared within the last minute and was right.
    pub fn has(&self, content: &K, frame: usize) -> bool {
        let frames = locked(&self.frames);
        let at = frames
            .get(content)
            .and_then(|frames| frames.get(frame))
            .copied()
            .unwrap_or(0);
        at > 0 && self.now() - at < VALIDITY.as_secs() as u32
    }

    /// Records that the frame was compared now and is right.
    pub fn add(&self, content: K, frame: usize) {
        let now = self.now();
        let mut frames = locked(&self.frames);
        let frames = frames.entry(content).or_default();
        if frames.len() <= frame {
            frames.resize(frame + 1, 0);
        }
        frames[frame] = now;
    }

    /// Forgets all frames of content that was removed.
    pub fn forget(&self, content: &K) {
        locked(&self.frames).remove(content);
    }

    fn now(&self) -> u32 {
        self.start.elapsed().as_secs() as u32 + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comparison_is_valid_for_a_minute() {
        let mut checks = RecentChecks::default();
        checks.add(7, 3);
        assert!(
            checks.has(&7, 3) && !checks.has(&7, 2) && !checks.has(&7, 4) && !checks.has(&6, 3)
        );
        checks.start -= VALIDITY;
        assert!(!checks.has(&7, 3));
        checks.add(7, 3);
        checks.forget(&7);
        assert!(!checks.has(&7, 3));
    }
}
