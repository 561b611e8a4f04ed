//! Every bound in one place.

use std::time::Duration;

/// Bounds on memory, concurrency, waiting and the size of what others send.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Transfers in flight over all hosts (`--jobs`).
    pub jobs: usize,
    /// Requests in flight to one host.
    pub per_host: usize,
    /// Largest manifest that is read, in bytes. Most registries refuse more than 4 MiB.
    pub manifest_bytes: usize,
    /// Largest document other than a manifest (token answers, tag pages, checksum sidecars), in bytes.
    pub document_bytes: usize,
    /// Largest archive (a chart) that is read, in bytes, and the most that it may unpack to.
    pub archive_bytes: u64,
    /// How many members an archive may have.
    pub archive_files: usize,
    /// How deep charts may stand inside charts.
    pub chart_depth: usize,
    /// How many items one entry of a manifest may make by its list variables.
    pub combinations: usize,
    /// Largest contents index of a bundle that is read, and largest lock inside one, in bytes.
    pub contents_bytes: usize,
    /// In how many others a text may stand and still be read for references: YAML in JSON in base64 and so on.
    pub embedded_depth: usize,
    /// How much a gzipped text or a chart may hold unpacked, in bytes.
    pub unpacked_bytes: u64,
    /// Largest signature of a bundle that is read, in bytes.
    pub signature_bytes: u64,
    /// How deep indexes may be nested, and how long a chain of referrers may be.
    pub index_depth: usize,
    /// How many manifests may stand under one image.
    pub index_nodes: usize,
    /// How many referrers one image may have, those of referrers included.
    pub referrers: usize,
    /// How many answers a list of tags or referrers may come in.
    pub pages: usize,
    /// Redirects followed for one request.
    pub redirects: usize,
    /// Attempts for one request, the first included.
    pub attempts: u32,
    /// How often one request may be sent off with "later" (429, or `Retry-After`) beside its attempts.
    pub waits: u32,
    /// About how long the first pause between attempts is; each is twice the one before.
    pub backoff: Duration,
    /// Longest pause between attempts.
    pub backoff_most: Duration,
    /// The smallest blob that is fetched over several connections, in bytes.
    pub wide: u64,
    /// The least of it that another connection takes, in bytes: less is not worth one.
    pub wide_share: u64,
    /// How much of it is written between two lines of its journal, in bytes: so much is fetched again after
    /// a kill.
    pub wide_step: u64,
    /// The sizes of chunks that uploads are tried in where a host takes no larger body, in bytes.
    pub chunks: [u64; 2],
    /// Longest wait that a server may ask for, in seconds (`--max-wait`).
    pub max_wait_secs: u64,
    /// To an open connection.
    pub connect: Duration,
    /// To the first byte of an answer (`--first-byte`).
    pub first_byte: Duration,
    /// The same through a proxy, which may read the whole body before it hands on a byte of it.
    pub first_byte_proxied: Duration,
    /// Without a byte in the middle of a body, received or sent (`--idle`).
    pub idle: Duration,
    /// To the answer of an upload after its last byte: a registry may hash and move a large blob first.
    pub upload_answer: Duration,
    /// Connections that `serve` keeps open at one time.
    pub connections: usize,
    /// Uploads to `serve` that are open at one time.
    pub uploads: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            jobs: 12,
            per_host: 12,
            manifest_bytes: 8 << 20,
            document_bytes: 8 << 20,
            archive_bytes: 64 << 20,
            archive_files: 10_000,
            chart_depth: 8,
            combinations: 10_000,
            contents_bytes: 256 << 20,
            embedded_depth: 8,
            unpacked_bytes: 64 << 20,
            signature_bytes: 16 << 10,
            index_depth: 8,
            index_nodes: 1024,
            referrers: 1024,
            pages: 64,
            redirects: 10,
            attempts: 5,
            waits: 20,
            backoff: Duration::from_millis(300),
            backoff_most: Duration::from_secs(30),
            wide: 64 << 20,
            wide_share: 8 << 20,
            wide_step: 4 << 20,
            chunks: [64 << 20, 16 << 20],
            max_wait_secs: 15 * 60,
            connect: Duration::from_secs(30),
            first_byte: Duration::from_secs(120),
            first_byte_proxied: Duration::from_secs(600),
            idle: Duration::from_secs(60),
            upload_answer: Duration::from_secs(600),
            connections: 1024,
            uploads: 1024,
        }
    }
}
