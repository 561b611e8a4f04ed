//! The contents of recently used objects, which are often the bases of the next deltas.

use landfall_model::locked;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard};

/// The maximum total size of the contents in `ContentCache::contents`, in bytes.
const MAX_BYTES: usize = 96 << 20;

/// The contents of recently used objects, of one or more databases.
#[derive(Debug, Clone, Default)]
pub struct GitContentCache(Arc<Mutex<ContentCache>>);

/// The number of a database and the number of an object in it.
pub(super) type ContentKey = (u64, u32);

impl GitContentCache {
    pub(super) fn get(&self, key: ContentKey) -> Option<Arc<[u8]>> {
        self.contents().get(key)
    }

    pub(super) fn put(&self, key: ContentKey, content: Arc<[u8]>) {
        self.contents().put(key, content);
    }

    fn contents(&self) -> MutexGuard<'_, ContentCache> {
        locked(&self.0)
    }
}

#[derive(Debug, Default)]
struct ContentCache {
    contents: HashMap<ContentKey, CachedContent>,
    /// The object that was read last among those that are too large for `contents`. Without it,
    /// reading each object in a chain of deltas between large objects would apply all deltas below
    /// it again.
    large: Option<(ContentKey, Arc<[u8]>)>,
    /// The objects by the time of their last use.
    by_use: BTreeMap<u64, ContentKey>,
    bytes: usize,
    uses: u64,
}

#[derive(Debug)]
struct CachedContent {
    content: Arc<[u8]>,
    used: u64,
}

impl ContentCache {
    fn get(&mut self, object: ContentKey) -> Option<Arc<[u8]>> {
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

    fn put(&mut self, object: ContentKey, content: Arc<[u8]>) {
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
        cache.put((0, 1), Arc::from(*b"small"));
        cache.put((0, 2), large.clone());
        assert!(cache.get((0, 1)).is_some() && cache.get((0, 2)).is_some());
        cache.put((0, 3), large);
        assert!(cache.get((0, 2)).is_none() && cache.get((0, 3)).is_some());
        assert_eq!(cache.bytes, 5);
    }

    #[test]
    fn the_least_recently_used_content_is_evicted() {
        let mut cache = ContentCache::default();
        let quarter: Arc<[u8]> = vec![0; MAX_BYTES / 4].into();
        for object in 0..4 {
            cache.put((0, object), quarter.clone());
        }
        assert!(cache.get((0, 0)).is_some());
        cache.put((0, 4), Arc::from(*b"small"));
        let is_cached = [0, 1, 2, 3, 4].map(|object| cache.contents.contains_key(&(0, object)));
        assert_eq!(is_cached, [true, false, true, true, true]);
        assert_eq!(cache.bytes, 3 * quarter.len() + 5);
        assert_eq!(cache.by_use.len(), 4);
    }
}
