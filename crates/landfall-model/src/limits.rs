//! The limits of a run that a caller may change. Limits of one format are constants beside its
//! reader.

use std::time::Duration;

/// Limits on memory, concurrency, waiting times and the size of untrusted content.
///
/// They are plain numbers that every crate reads, so that a test or a caller can change any of
/// them.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The maximum number of transfers at once, over all hosts (`--jobs`).
    pub jobs: usize,
    /// The maximum number of requests at once to one host.
    pub per_host: usize,
    /// The maximum number of runners that share a lock (`--shard`).
    pub shards: usize,
    /// The maximum size of a manifest in bytes. Most registries refuse more than 4 MiB.
    pub manifest_bytes: usize,
    /// The maximum size in bytes of documents without a limit of their own, such as token
    /// responses, tag pages and checksum sidecars.
    pub document_bytes: usize,
    /// The maximum size of a chart archive in bytes, packed and unpacked. It also limits the header
    /// of an RPM package, and a JSON document with versions.
    pub archive_bytes: u64,
    /// The maximum number of members of a chart archive, or of a package of a provider.
    pub archive_files: usize,
    /// The maximum number of files and folders that one `path:` of a manifest may visit.
    pub local_files: usize,
    /// The maximum number of manifests, configs and other documents that are kept from image
    /// archives.
    pub archive_documents: usize,
    /// The maximum total size of the documents that are kept from image archives, in bytes.
    pub archive_document_bytes: u64,
    /// The maximum size of the index of a chart repository in bytes.
    pub chart_index_bytes: usize,
    /// The maximum size of an index of a package repository in bytes, packed and unpacked.
    pub package_index_bytes: u64,
    /// The maximum number of mirrors of a package repository to try if its own URL fails.
    pub package_mirrors: usize,
    /// The maximum number of steps of the yum solver: rules and packages that it visits. A second
    /// budget of the same size limits the rules that it creates; each costs many steps because it
    /// takes memory.
    ///
    /// With Debian 12 as a yum repository (65,503 packages), sets of 3,447 and 6,943 packages took
    /// 22 and 59 million steps. With five versions of each package in the repository, a set of
    /// 3,457 packages took 325 million. Sets that cannot be solved reach the limit after 13 to
    /// 141 s of CPU time and with at most 133 MiB.
    pub solver_steps: u64,
    /// The maximum number of versions that `update` tries for one value or list of values. It
    /// begins with the newest.
    pub candidates: usize,
    /// The maximum nesting depth of charts.
    pub chart_depth: usize,
    /// The maximum number of charts inside a chart, at all depths. A chart with several aliases
    /// counts once for each.
    pub charts_inside: usize,
    /// The maximum size of a chart file that is searched for references, in bytes. Helm refuses
    /// charts with larger files.
    pub chart_file_bytes: usize,
    /// The maximum total size in bytes of the helpers and templates that landfall reads for one
    /// chart, to find the values from which references are composed. A text that several references
    /// use counts once for each. References beyond the limit are reported as undecided.
    pub template_source_bytes: usize,
    /// The maximum size of a chart's entry in the index of a repository, in bytes.
    pub chart_entry_bytes: usize,
    /// The maximum number of charts and git repositories that a run resolves only as dependencies
    /// or submodules. It is also the maximum number of dependencies of one chart.
    pub chart_dependencies: usize,
    /// The maximum length of a chain of chart dependencies.
    pub chart_dependency_depth: usize,
    /// The time after which helm is stopped: the templates of a chart may have no end.
    pub helm_time: Duration,
    /// The maximum size of the output of helm, in bytes.
    pub helm_output_bytes: u64,
    /// The maximum number of objects of a git repository.
    pub git_objects: u64,
    /// The maximum size of an object of a git repository, in bytes. It is read into memory.
    pub git_object_bytes: u64,
    /// The maximum size of a pack that a git server sends, in bytes.
    pub git_pack_bytes: u64,
    /// The maximum total size of the unpacked objects and deltas of a git repository, in bytes.
    pub git_unpacked_bytes: u64,
    /// The maximum number of refs that a git server lists.
    pub git_refs: usize,
    /// The maximum number of submodules of all refs of a git repository.
    pub git_submodules: usize,
    /// The maximum total size in bytes of the different `.gitmodules`, and of the different
    /// `.lfsconfig`, of all refs of a git repository.
    pub git_config_bytes: u64,
    /// The maximum size of a list of refs that a git server sends, in bytes.
    pub git_ref_list_bytes: usize,
    /// The maximum depth of nested git submodules.
    pub git_submodule_depth: usize,
    /// The maximum number of large files (Git LFS) of a git repository. All are in one manifest.
    pub git_large_files: usize,
    /// The maximum number of Git LFS servers that the refs of a git repository name.
    pub git_lfs_servers: usize,
    /// The maximum total size of the files in a package of a provider, unpacked, in bytes.
    pub provider_unpacked_bytes: u64,
    /// The maximum number of values in a YAML text. An alias counts as all the values that it
    /// repeats.
    pub yaml_nodes: usize,
    /// The maximum number of bytes of text that the aliases of a YAML text repeat.
    pub yaml_alias_bytes: usize,
    /// The maximum nesting depth of brackets in YAML. Parsers take quadratic time for nested
    /// brackets.
    pub yaml_depth: usize,
    /// The maximum number of items to which a manifest entry with list variables expands.
    pub combinations: usize,
    /// The maximum size in bytes of the contents index of a bundle, and of a lock in a bundle, a
    /// store or a registry.
    pub contents_bytes: usize,
    /// The maximum nesting depth of embedded documents that are searched for references, such as
    /// YAML in JSON in base64.
    pub embedded_depth: usize,
    /// The maximum length of a reference or URL with placeholders, in bytes.
    pub reference_bytes: usize,
    /// The maximum unpacked size of gzipped text in a document, in bytes.
    pub unpacked_bytes: u64,
    /// The maximum total size of the signatures of a bundle, in bytes.
    pub signatures_bytes: u64,
    /// The maximum nesting depth of indexes, and the maximum length of a chain of referrers.
    pub index_depth: usize,
    /// The maximum number of manifests of one image.
    pub index_nodes: usize,
    /// The maximum total size of the manifests of one image in bytes. All its referrers together
    /// have the same limit.
    pub image_manifest_bytes: u64,
    /// The maximum number of referrers of one image, including referrers of referrers.
    pub referrers: usize,
    /// The maximum number of signatures and attestations of one image that are verified.
    pub image_signatures: usize,
    /// The maximum number of pages of a list of tags or referrers.
    pub pages: usize,
    /// The maximum number of redirects of one request.
    pub redirects: usize,
    /// The maximum number of attempts for one request, including the first.
    pub attempts: u32,
    /// The number of successive rounds of failed requests after which landfall gives up a host that
    /// responded before. A host that never responded is given up after the first request that fails
    /// at all attempts, unless the host closed the connection.
    pub lost_rounds: u32,
    /// The time after which landfall gives up a host whose requests have all failed, if they had at
    /// least [`Limits::attempts`] times [`Limits::lost_rounds`] attempts.
    pub lost_after: Duration,
    /// The number of new bytes with which an interrupted body counts as progress and costs no
    /// attempt. Without a minimum, a host that sends single bytes would be retried forever.
    pub progress: u64,
    /// The time after which a run ends if its transfers only wait for each other, with no request
    /// in flight.
    pub stuck: Duration,
    /// The maximum number of times that a server may delay one request (429 or `Retry-After`), in
    /// addition to its attempts. Half of this number applies if the server does not say how
    /// long to wait.
    pub waits: u32,
    /// The approximate pause before the second attempt; it doubles with each further attempt.
    pub backoff: Duration,
    /// The maximum pause between attempts.
    pub backoff_most: Duration,
    /// The minimum size of a blob that is fetched over several connections, in bytes.
    pub parallel_from: u64,
    /// The minimum size of a range of a blob that gets its own connection, in bytes.
    pub parallel_share: u64,
    /// The number of bytes between two journal lines of a blob that is fetched over several
    /// connections. If landfall is killed, at most this many bytes are fetched again for each
    /// connection.
    pub journal_step: u64,
    /// The chunk sizes in bytes that uploads try, in this order, if a host refuses larger bodies.
    pub chunks: [u64; 2],
    /// The maximum wait that a server may demand, in seconds (`--max-wait`).
    pub max_wait_secs: u64,
    /// The timeout for opening a connection.
    pub connect: Duration,
    /// The timeout for the first byte of a response (`--first-byte`).
    pub first_byte: Duration,
    /// The timeout for the first byte of a response through a proxy, which may read the whole body
    /// before it forwards any byte.
    pub first_byte_proxied: Duration,
    /// The timeout between two bytes of a body, received or sent (`--idle`).
    pub idle: Duration,
    /// The timeout for the response after the last byte of an upload: a registry may first hash and
    /// move a large blob.
    pub upload_answer: Duration,
    /// The maximum number of blobs that `serve` hashes at once.
    pub hashing: usize,
    /// The maximum number of manifests that `serve` keeps in memory at once, for pushes and lists
    /// of referrers.
    pub manifests: usize,
    /// The maximum number of connections to `serve` at once (`--max-connections`).
    pub connections: usize,
    /// The maximum number of requests that `serve` handles at once (`--max-requests`).
    pub requests: usize,
    /// The time that a connection to `serve` may be idle, and that a client may take to send the
    /// head of a request (`--keep-alive`).
    pub keep_alive: Duration,
    /// The time that a client of `serve` may stall in the middle of a body, sent or received
    /// (`--stall`).
    pub stall: Duration,
    /// The time after which `serve` discards an unused upload (`--upload-expiry`).
    pub upload_expiry: Duration,
    /// The maximum number of open uploads to `serve` (`--max-uploads`).
    pub uploads: usize,
    /// The maximum length of a line of the evidence log (`--log`), in bytes.
    pub log_record_bytes: usize,
    /// The maximum length of each list in a record of the evidence log, such as its digests, inputs
    /// and items.
    pub log_record_names: usize,
}

impl Limits {
    /// The limits without any configuration.
    pub const DEFAULT: Limits = Limits {
        jobs: 12,
        per_host: 12,
        shards: 10_000,
        manifest_bytes: 8 << 20,
        document_bytes: 8 << 20,
        archive_bytes: 64 << 20,
        archive_files: 10_000,
        local_files: 100_000,
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
        template_source_bytes: 256 << 20,
        chart_entry_bytes: 1 << 20,
        chart_dependencies: 300,
        chart_dependency_depth: 8,
        helm_time: Duration::from_mins(5),
        helm_output_bytes: 64 << 20,
        git_objects: 20_000_000,
        git_object_bytes: 256 << 20,
        git_pack_bytes: 16 << 30,
        git_unpacked_bytes: 256 << 30,
        git_refs: 200_000,
        git_submodules: 300,
        git_config_bytes: 16 << 20,
        git_ref_list_bytes: 64 << 20,
        git_large_files: 10_000,
        git_lfs_servers: 30,
        git_submodule_depth: 8,
        provider_unpacked_bytes: 8 << 30,
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
        image_signatures: 256,
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
        log_record_bytes: 1 << 20,
        log_record_names: 500,
    };
}

impl Default for Limits {
    fn default() -> Limits {
        Limits::DEFAULT
    }
}
