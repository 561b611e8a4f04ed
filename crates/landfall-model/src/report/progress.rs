//! Progress of a run. The library reports it through a trait and prints nothing itself.

/// Receives the progress of a run. Any thread may call any method.
pub trait Progress: Send + Sync {
    /// Begins a phase such as `pull` with its number of items and bytes; 0 bytes means unknown.
    fn begin(&self, what: &str, items: u64, bytes: u64);
    /// Reports that `count` more bytes were transferred.
    fn bytes(&self, count: u64);
    /// Adds bytes to the total that [`Progress::begin`] announced, because content is transferred
    /// again.
    fn more(&self, _bytes: u64) {}
    /// Announces the number of blobs and manifests in the phase: each costs a request, however
    /// small it is.
    fn parts(&self, _count: u64) {}
    /// Reports that `count` more blobs or manifests are done.
    fn parts_done(&self, _count: u64) {}
    /// Reports that the item `name` is done.
    fn item(&self, name: &str);
    /// Shows a line that belongs to the progress: it is omitted if no progress is shown.
    fn tell(&self, _line: &str) {}
    /// Shows a line that people must see at once, such as a warning.
    fn note(&self, line: &str);
    /// Ends the phase that [`Progress::begin`] began.
    fn end(&self);
}

/// Discards all progress, for callers that show none.
pub struct SilentProgress;

impl Progress for SilentProgress {
    fn begin(&self, _what: &str, _items: u64, _bytes: u64) {}
    fn bytes(&self, _count: u64) {}
    fn item(&self, _name: &str) {}
    fn note(&self, _line: &str) {}
    fn end(&self) {}
}
