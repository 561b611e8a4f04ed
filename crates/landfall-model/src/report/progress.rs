//! What the library says while it works. It prints nothing by itself.

/// Hears how a run proceeds. Any thread may call any method.
pub trait Progress: Send + Sync {
    /// A phase (`pull`, `push`, …) begins, with so many items and bytes. 0 bytes means unknown.
    fn begin(&self, what: &str, items: u64, bytes: u64);
    /// So many more bytes are done.
    fn bytes(&self, count: u64);
    /// So many more bytes are to be done than [`Progress::begin`] said: something is moved again.
    fn more(&self, _bytes: u64) {}
    /// The phase has so many parts (blobs, manifests): each costs a request, however small it is.
    fn parts(&self, _count: u64) {}
    /// So many more parts are done.
    fn parts_done(&self, _count: u64) {}
    /// One more item is done; `name` is its name.
    fn item(&self, name: &str);
    /// A line about what is to come, of no more weight than the progress itself.
    fn tell(&self, _line: &str) {}
    /// A line that people should read at once: a warning, a wait.
    fn note(&self, line: &str);
    /// The phase ends.
    fn end(&self);
}

/// Says nothing.
pub struct SilentProgress;

impl Progress for SilentProgress {
    fn begin(&self, _what: &str, _items: u64, _bytes: u64) {}
    fn bytes(&self, _count: u64) {}
    fn item(&self, _name: &str) {}
    fn note(&self, _line: &str) {}
    fn end(&self) {}
}
