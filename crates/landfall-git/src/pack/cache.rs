//! The contents of objects that were read last, as bases of the next deltas.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// The maximum number of bytes of contents that are kept.
const MAX_BYTES: usize = 96 << 20;

/// The contents of objects that were read last.
#[derive(Default)]
pub(super) struct ContentCache {
    contents: HashMap<u32, CachedContent>,
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
        let cached = self.contents.get_mut(&object)?;
        self.by_use.remove(&cached.used);
        self.by_use.insert(self.uses, object);
        cached.used = self.uses;
        Some(cached.content.clone())
    }

    pub(super) fn put(&mut self, object: u32, content: Arc<[u8]>) {
        // a content of this size would displace too many others
        if content.len() > MAX_BYTES / 4 || self.contents.contains_key(&object) {
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
