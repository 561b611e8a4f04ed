//! The contents of recently used objects, which are often the bases of the next deltas.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// The maximum total size of the contents in `ContentCache::contents`, in bytes.
const MAX_BYTES: usize = 96 << 20;

/// The contents of recently used objects.
#[derive(Default)]
pub(super) struct ContentCache {
    contents: HashMap<u32, CachedContent>,
    /// The object that was read last among those that are too large for `contents`. Without it,
    /// reading each object in a chain of deltas between large objects would apply all deltas below
    /// it again.
    large: Option<(u32, Arc<[u8]>)>,
    /// The objects by the time of their last use.
    by_use: BTreeMap<u64, u32>,
    bytes: usize,
    uses: u64,
}

struct CachedContent {
    content: Arc<[u8]>,
    used: u64,
}

impl ContentCache {
    pub(super) fn get(&mut self, object: u32) -> Option<Arc<[u8]>> {
        self.uses += 1;
        if let Some((large, content)) = &self.large
            && *large == object
        {
            return Some(content.clone());
        }
        let cached = self.contents.get_mut(&object)?;
        self.by_use.remove(&cached.used);
        self.by_use.insert(self.uses, object);
        cached.used = self.uses;
        Some(cached.content.clone())
    }

    pub(super) fn put(&mut self, object: u32, content: Arc<[u8]>) {
        // a content of this size would displace too many other contents
        if content.len() > MAX_BYTES / 4 {
            self.large = Some((object, content));
            return;
        }
        if self.contents.contains_key(&object) {
            return;
        }
        self.uses += 1;
        self.bytes += content.len();
        self.by_use.insert(self.uses, object);
        let used = self.uses;
        self.contents
            .insert(object, CachedContent { content, used });
        while self.bytes > MAX_BYTES {
            let Some((_, oldest)) = self.by_use.pop_first() else {
                return;
            };
            if let Some(removed) = self.contents.remove(&oldest) {
                self.bytes -= removed.content.len();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_large_content_is_kept_besides_small_ones() {
        let mut cache = ContentCache::default();
        let large: Arc<[u8]> = vec![0; MAX_BYTES / 4 + 1].into();
        cache.put(1, Arc::from(*b"small"));
        cache.put(2, large.clone());
        assert!(cache.get(1).is_some() && cache.get(2).is_some());
        cache.put(3, large);
        assert!(cache.get(2).is_none() && cache.get(3).is_some());
        assert_eq!(cache.bytes, 5);
    }

    #[test]
    fn the_least_recently_used_content_is_evicted() {
        let mut cache = ContentCache::default();
        let quarter: Arc<[u8]> = vec![0; MAX_BYTES / 4].into();
        for object in 0..4 {
            cache.put(object, quarter.clone());
        }
        assert!(cache.get(0).is_some());
        cache.put(4, Arc::from(*b"small"));
        let is_cached = [0, 1, 2, 3, 4].map(|object| cache.contents.contains_key(&object));
        assert_eq!(is_cached, [true, false, true, true, true]);
        assert_eq!(cache.bytes, 3 * quarter.len() + 5);
        assert_eq!(cache.by_use.len(), 4);
    }
}
