//! All bounds in one place.

use std::time::Duration;

/// Bounds on memory, concurrency, waiting times and the size of content from outside.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Transfers in flight over all hosts (`--jobs`).
    pub jobs: usize,
    /// Requests in flight to one host.
    pub per_host: usize,
    /// How many runners may share a lock (`--shard`).
    pub shards: usize,
    /// Largest manifest that is read, in bytes. Most registries refuse more than 4 MiB.
    pub manifest_bytes: usize,
    /// Largest document other than a manifest (token answers, tag pages, checksum sidecars), in
    /// bytes.
    pub document_bytes: usize,
    /// Largest archive (a chart) that is read, in bytes, and the most that it may unpack to.
    pub archive_bytes: u64,
    /// How many members an archive may have.
    pub archive_files: usize,
    /// How many manifests, configs and other documents are kept of the archives that a lock may
    /// use.
    pub archive_documents: usize,
    /// How many bytes these have together.
    pub archive_document_bytes: u64,
    /// Largest index of an HTTP repository of charts that is read, in bytes.
    pub chart_index_bytes: usize,
    /// Largest index of a package repository that is read, in bytes; also the most that it may
    /// unpack to.
    pub package_index_bytes: u64,
    /// How many mirrors of a package repository are asked where its own URL fails.
    pub package_mirrors: usize,
    /// Steps of the choice of packages of yum: how many rules it looks at, and packages. With
    /// Debian 12 as a yum repository (65,503 packages), sets of 3,447 and 6,943 packages took 22
    /// and 59 million, and one of 3,457 took 325 million where the repository had five versions of
    /// each; sets that cannot be decided reach the limit after 13 to 141 s of CPU time and with at
    /// most 133 MiB.
    pub solver_steps: u64,
    /// How many versions `update` tries for one that cannot move to the newest.
    pub candidates: usize,
    /// How deeply charts may be nested.
    pub chart_depth: usize,
    /// How many charts may be in one, at all depths, a chart that has several aliases counted each
    /// time.
    pub charts_inside: usize,
    /// Largest document of a chart that is read for its references, in bytes. Helm refuses charts
    /// with larger files.
    pub chart_file_bytes: usize,
    /// Largest entry of a chart in the index of a repository, in bytes.
    pub chart_entry_bytes: usize,
    /// How many charts a run resolves that only other charts name, and how many of them one chart
    /// may name.
    pub chart_dependencies: usize,
    /// How long a chain of charts that name each other may be.
    pub chart_dependency_depth: usize,
    /// How many values a YAML text may have. An alias counts as all that it stands for.
    pub yaml_nodes: usize,
    /// How many bytes of text the aliases of a YAML text may repeat.
    pub yaml_alias_bytes: usize,
    /// How deeply brackets may be nested in YAML; parsers take quadratic time for more.
    pub yaml_depth: usize,
    /// How many items one entry of a manifest may make by its list variables.
    pub combinations: usize,
    /// Largest contents index of a bundle that is read, and largest lock inside one, in bytes.
    pub contents_bytes: usize,
    /// How deeply texts that are read for references may be nested: YAML in JSON in base64, for
    /// example.
    pub embedded_depth: usize,
    /// How much of a reference or URL with placeholders in it is read and shown, in bytes.
    pub reference_bytes: usize,
    /// How large a gzipped text in a document may be when unpacked, in bytes.
    pub unpacked_bytes: u64,
    /// Most bytes of a bundle's signatures that are read, of all together.
    pub signatures_bytes: u64,
    /// How deep indexes may be nested, and how long a chain of referrers may be.
    pub index_depth: usize,
    /// How many manifests one image may have.
    pub index_nodes: usize,
    /// The most that the manifests under one image's index may have together, and those of its
    /// referrers, in bytes.
    pub image_manifest_bytes: u64,
    /// How many referrers one image may have, those of referrers included.
    pub referrers: usize,
    /// How many pages a list of tags or referrers may have.
    pub pages: usize,
    /// Redirects followed for one request.
    pub redirects: usize,
    /// Attempts for one request, the first included.
    pub attempts: u32,
    /// After how many rounds of requests that failed at all attempts a host is given up that has
    /// answered before, hangs up or answers with errors of its own. One that never answered is
    /// given up when the first request to it has used up its attempts.
    pub lost_rounds: u32,
    /// After how long a host is given up that has done nothing but fail.
    pub lost_after: Duration,
    /// How many new bytes a body must bring before it breaks off to count as progress, for which no
    /// attempt is spent. A host that always sends fewer is one that fails.
    pub progress: u64,
    /// After how long a run ends whose transfers wait for each other, with no request in flight.
    pub stuck: Duration,
    /// How often a server may put off one request (429, or `Retry-After`), in addition to its
    /// attempts.
    pub waits: u32,
    /// The first pause between attempts, roughly; each later one is twice as long.
    pub backoff: Duration,
    /// Longest pause between attempts.
    pub backoff_most: Duration,
    /// The smallest blob that is fetched over several connections, in bytes.
    pub parallel_from: u64,
    /// The smallest range of such a blob that is worth a connection of its own, in bytes.
    pub parallel_share: u64,
    /// How many bytes of such a blob are written between two lines of its journal: so much is
    /// fetched again after a kill.
    pub journal_step: u64,
    /// The chunk sizes that uploads try, in this order, where a host refuses larger bodies, in
    /// bytes.
    pub chunks: [u64; 2],
    /// Longest wait that a server may ask for, in seconds (`--max-wait`).
    pub max_wait_secs: u64,
    /// Longest time to open a connection.
    pub connect: Duration,
    /// Longest time to the first byte of a response (`--first-byte`).
    pub first_byte: Duration,
    /// The same through a proxy, which may read the whole body before it sends a byte of it.
    pub first_byte_proxied: Duration,
    /// Longest time without a byte in the middle of a body, received or sent (`--idle`).
    pub idle: Duration,
    /// Longest time to the response after the last byte of an upload: a registry may first hash and
    /// move a large blob.
    pub upload_answer: Duration,
    /// Blobs that `serve` hashes at one time.
    pub hashing: usize,
    /// Manifests that `serve` holds in memory at one time, because they were pushed or for a list
    /// of referrers.
    pub manifests: usize,
    /// Connections that `serve` keeps open at one time (`--max-connections`).
    pub connections: usize,
    /// Requests that `serve` answers at one time (`--max-requests`).
    pub requests: usize,
    /// How long a connection to `serve` may be idle, or a client may take for the head of a request
    /// (`--keep-alive`).
    pub keep_alive: Duration,
    /// How long a client of `serve` may stand still in the middle of a body, sent or received
    /// (`--stall`).
    pub stall: Duration,
    /// How long an upload to `serve` may be unused (`--upload-expiry`).
    pub upload_expiry: Duration,
    /// Uploads to `serve` that are open at one time (`--max-uploads`).
    pub uploads: usize,
}

impl Limits {
    /// The limits of a run that nobody configured.
    pub const DEFAULT: Limits = Limits {
        jobs: 12,
        per_host: 12,
        shards: 10_000,
        manifest_bytes: 8 << 20,
        document_bytes: 8 << 20,
        archive_bytes: 64 << 20,
        archive_files: 10_000,
        archive_documents: 200_000,
        archive_document_bytes: 1 << 30,
        chart_index_bytes: 64 << 20,
        package_index_bytes: 512 << 20,
        package_mirrors: 8,
        solver_steps: 2_000_000_000,
        candidates: 50,
        chart_depth: 8,
        charts_inside: 1000,
        chart_file_bytes: 5 << 20,
        chart_entry_bytes: 1 << 20,
        chart_dependencies: 300,
        chart_dependency_depth: 8,
        yaml_nodes: 1_000_000,
        yaml_alias_bytes: 16 << 20,
        yaml_depth: 64,
        combinations: 10_000,
        contents_bytes: 256 << 20,
        embedded_depth: 8,
        reference_bytes: 1 << 10,
        unpacked_bytes: 8 << 20,
        signatures_bytes: 64 << 10,
        index_depth: 8,
        index_nodes: 1024,
        image_manifest_bytes: 32 << 20,
        referrers: 1024,
        pages: 64,
        redirects: 10,
        attempts: 5,
        lost_rounds: 3,
        lost_after: Duration::from_mins(1),
        progress: 16 << 10,
        stuck: Duration::from_mins(10),
        waits: 20,
        backoff: Duration::from_millis(300),
        backoff_most: Duration::from_secs(30),
        parallel_from: 64 << 20,
        parallel_share: 8 << 20,
        journal_step: 4 << 20,
        chunks: [64 << 20, 16 << 20],
        max_wait_secs: 15 * 60,
        connect: Duration::from_secs(30),
        first_byte: Duration::from_mins(2),
        first_byte_proxied: Duration::from_mins(10),
        idle: Duration::from_mins(1),
        upload_answer: Duration::from_mins(10),
        hashing: 4,
        manifests: 4,
        connections: 4096,
        requests: 1024,
        keep_alive: Duration::from_mins(2),
        stall: Duration::from_mins(1),
        upload_expiry: Duration::from_hours(1),
        uploads: 1024,
    };
}

impl Default for Limits {
    fn default() -> Limits {
        Limits::DEFAULT
    }
}
