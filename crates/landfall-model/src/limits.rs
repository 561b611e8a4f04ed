//! The limits of a run that a caller may change. Limits of one format are constants beside its
//! reader.

use std::time::Duration;

/// Declares [`Limits`], with the default of each limit beside it.
macro_rules! limits {
    ($($(#[$doc:meta])* $limit:ident: $type:ty = $default:expr,)*) => {
        /// Limits on memory, concurrency, waiting times and the size of untrusted content.
        ///
        /// They are plain numbers that every crate reads, so that a test or a caller can change any
        /// of them.
        #[derive(Debug, Clone, Copy)]
        pub struct Limits {
            $($(#[$doc])* pub $limit: $type,)*
        }

        impl Limits {
            /// The limits without any configuration.
            pub const DEFAULT: Limits = Limits { $($limit: $default,)* };
        }
    };
}

limits! {
    /// The maximum number of transfers at once, over all hosts (`--jobs`).
    jobs: usize = 12,
    /// The maximum number of requests at once to one host.
    per_host: usize = 12,
    /// The maximum number of runners that share a lock (`--shard`).
    shards: usize = 10_000,
    /// The maximum size of a manifest in bytes. Most registries refuse more than 4 MiB.
    manifest_bytes: usize = 8 << 20,
    /// The maximum size in bytes of documents without a limit of their own, such as token
    /// responses, tag pages and checksum sidecars.
    document_bytes: usize = 8 << 20,
    /// The maximum size of a chart archive in bytes, packed and unpacked. It also limits the header
    /// of an RPM package, and a JSON document with versions.
    archive_bytes: u64 = 64 << 20,
    /// The maximum number of members of a chart archive, or of a package of a provider.
    archive_files: usize = 10_000,
    /// The maximum number of files and folders that one `path:` of a manifest may visit.
    local_files: usize = 100_000,
    /// The maximum number of manifests, configs and other documents that are kept from image
    /// archives.
    archive_documents: usize = 200_000,
    /// The maximum total size of the documents that are kept from image archives, in bytes.
    archive_document_bytes: u64 = 1 << 30,
    /// The maximum size of the index of a chart repository in bytes.
    chart_index_bytes: usize = 64 << 20,
    /// The maximum size of an index of a package repository in bytes, packed and unpacked.
    package_index_bytes: u64 = 512 << 20,
    /// The maximum size of the unpacked list of all files of a yum repository, in bytes. It is read
    /// as a stream.
    package_files_bytes: u64 = 8 << 30,
    /// The maximum number of mirrors of a package repository to try if its own URL fails.
    package_mirrors: usize = 8,
    /// The maximum number of steps of the yum solver: rules and packages that it visits. A second
    /// budget of the same size limits the rules that it creates; each costs many steps because it
    /// takes memory.
    ///
    /// With Debian 12 as a yum repository (65,503 packages), sets of 3,447 and 6,943 packages took
    /// 22 and 59 million steps. With five versions of each package in the repository, a set of
    /// 3,457 packages took 325 million. Sets that cannot be solved reach the limit after 13 to
    /// 141 s of CPU time and with at most 133 MiB.
    solver_steps: u64 = 2_000_000_000,
    /// The maximum number of versions that `update` tries for one value or list of values. It
    /// begins with the newest.
    candidates: usize = 50,
    /// The maximum nesting depth of charts.
    chart_depth: usize = 8,
    /// The maximum number of charts inside a chart, at all depths. A chart with several aliases
    /// counts once for each.
    charts_inside: usize = 1000,
    /// The maximum size of a chart file that is searched for references, in bytes. Helm refuses
    /// charts with larger files.
    chart_file_bytes: usize = 5 << 20,
    /// The maximum total size in bytes of the helpers and templates that landfall reads for one
    /// chart, to find the values from which references are composed. A text that several references
    /// use counts once for each. References beyond the limit are reported as undecided.
    template_source_bytes: usize = 256 << 20,
    /// The maximum size of a chart's entry in the index of a repository, in bytes.
    chart_entry_bytes: usize = 1 << 20,
    /// The maximum number of charts and git repositories that a run resolves only as dependencies
    /// or submodules. It is also the maximum number of dependencies of one chart.
    chart_dependencies: usize = 300,
    /// The maximum length of a chain of chart dependencies.
    chart_dependency_depth: usize = 8,
    /// The time after which helm is stopped: the templates of a chart may have no end.
    helm_time: Duration = Duration::from_mins(5),
    /// The maximum size of the output of helm, in bytes.
    helm_output_bytes: u64 = 64 << 20,
    /// The maximum number of objects of a git repository.
    git_objects: u64 = 20_000_000,
    /// The maximum size of an object of a git repository, in bytes. It is read into memory.
    git_object_bytes: u64 = 256 << 20,
    /// The maximum size of a pack that a git server sends, in bytes.
    git_pack_bytes: u64 = 16 << 30,
    /// The maximum total size of the unpacked objects and deltas of a git repository, in bytes.
    git_unpacked_bytes: u64 = 256 << 30,
    /// The maximum number of refs that a git server lists.
    git_refs: usize = 200_000,
    /// The maximum number of submodules of all refs of a git repository.
    git_submodules: usize = 300,
    /// The maximum total size in bytes of the different `.gitmodules`, and of the different
    /// `.lfsconfig`, of all refs of a git repository.
    git_config_bytes: u64 = 16 << 20,
    /// The maximum size of a list of refs that a git server sends, in bytes.
    git_ref_list_bytes: usize = 64 << 20,
    /// The maximum depth of nested git submodules.
    git_submodule_depth: usize = 8,
    /// The maximum number of large files (Git LFS) of a git repository. All are in one manifest.
    git_large_files: usize = 10_000,
    /// The maximum number of Git LFS servers that the refs of a git repository name.
    git_lfs_servers: usize = 30,
    /// The maximum total size of the files in a package of a provider, unpacked, in bytes.
    provider_unpacked_bytes: u64 = 8 << 30,
    /// The maximum number of values in a YAML text. An alias counts as all the values that it
    /// repeats.
    yaml_nodes: usize = 1_000_000,
    /// The maximum number of bytes of text that the aliases of a YAML text repeat.
    yaml_alias_bytes: usize = 16 << 20,
    /// The maximum nesting depth of brackets in YAML. Parsers take quadratic time for nested
    /// brackets.
    yaml_depth: usize = 64,
    /// The maximum number of items to which a manifest entry with list variables expands.
    combinations: usize = 10_000,
    /// The maximum size in bytes of the contents index of a bundle, and of a lock in a bundle, a
    /// store or a registry.
    contents_bytes: usize = 256 << 20,
    /// The maximum nesting depth of embedded documents that are searched for references, such as
    /// YAML in JSON in base64.
    embedded_depth: usize = 8,
    /// The maximum length of a reference or URL with placeholders, in bytes.
    reference_bytes: usize = 1 << 10,
    /// The maximum unpacked size of gzipped text in a document, in bytes.
    unpacked_bytes: u64 = 8 << 20,
    /// The maximum total size of the signatures of a bundle, in bytes.
    signatures_bytes: u64 = 64 << 10,
    /// The maximum nesting depth of indexes, and the maximum length of a chain of referrers.
    index_depth: usize = 8,
    /// The maximum number of manifests of one image.
    index_nodes: usize = 1024,
    /// The maximum total size of the manifests of one image in bytes. All its referrers together
    /// have the same limit.
    image_manifest_bytes: u64 = 32 << 20,
    /// The maximum number of referrers of one image, including referrers of referrers.
    referrers: usize = 1024,
    /// The maximum number of signatures and attestations of one image that are verified.
    image_signatures: usize = 256,
    /// The maximum number of pages of a list of tags or referrers.
    pages: usize = 64,
    /// The maximum number of redirects of one request.
    redirects: usize = 10,
    /// The maximum number of attempts for one request, including the first.
    attempts: u32 = 5,
    /// The number of successive rounds of failed requests after which landfall gives up a host that
    /// responded before. A host that never responded is given up after the first request that fails
    /// at all attempts, unless the host closed the connection.
    lost_rounds: u32 = 3,
    /// The time after which landfall gives up a host whose requests have all failed, if they had at
    /// least [`Limits::attempts`] times [`Limits::lost_rounds`] attempts.
    lost_after: Duration = Duration::from_mins(1),
    /// The number of new bytes with which an interrupted body counts as progress and costs no
    /// attempt. Without a minimum, a host that sends single bytes would be retried forever.
    progress: u64 = 16 << 10,
    /// The time after which a run ends if its transfers only wait for each other, with no request
    /// in flight.
    stuck: Duration = Duration::from_mins(10),
    /// The maximum number of times that a server may delay one request (429 or `Retry-After`), in
    /// addition to its attempts. Half of this number applies if the server does not say how
    /// long to wait.
    waits: u32 = 20,
    /// The approximate pause before the second attempt; it doubles with each further attempt.
    backoff: Duration = Duration::from_millis(300),
    /// The maximum pause between attempts.
    backoff_most: Duration = Duration::from_secs(30),
    /// The minimum size of a blob that is fetched over several connections, in bytes.
    parallel_from: u64 = 64 << 20,
    /// The minimum size of a range of a blob that gets its own connection, in bytes.
    parallel_share: u64 = 8 << 20,
    /// The number of bytes between two journal lines of a blob that is fetched over several
    /// connections. If landfall is killed, at most this many bytes are fetched again for each
    /// connection.
    journal_step: u64 = 4 << 20,
    /// The chunk sizes in bytes that uploads try, in this order, if a host refuses larger bodies.
    chunks: [u64; 2] = [64 << 20, 16 << 20],
    /// The maximum wait that a server may demand, in seconds (`--max-wait`).
    max_wait_secs: u64 = 15 * 60,
    /// The timeout for opening a connection.
    connect: Duration = Duration::from_secs(30),
    /// The timeout for the first byte of a response (`--first-byte`).
    first_byte: Duration = Duration::from_mins(2),
    /// The timeout for the first byte of a response through a proxy, which may read the whole body
    /// before it forwards any byte.
    first_byte_proxied: Duration = Duration::from_mins(10),
    /// The timeout between two bytes of a body, received or sent (`--idle`).
    idle: Duration = Duration::from_mins(1),
    /// The timeout for the response after the last byte of an upload: a registry may first hash and
    /// move a large blob.
    upload_answer: Duration = Duration::from_mins(10),
    /// The maximum number of blobs that `serve` hashes at once.
    hashing: usize = 4,
    /// The maximum number of manifests that `serve` keeps in memory at once, for pushes and lists
    /// of referrers.
    manifests: usize = 4,
    /// The maximum number of connections to `serve` at once (`--max-connections`).
    connections: usize = 4096,
    /// The maximum number of requests that `serve` handles at once (`--max-requests`).
    requests: usize = 1024,
    /// The time that a connection to `serve` may be idle, and that a client may take to send the
    /// head of a request (`--keep-alive`).
    keep_alive: Duration = Duration::from_mins(2),
    /// The time that a client of `serve` may stall in the middle of a body, sent or received
    /// (`--stall`).
    stall: Duration = Duration::from_mins(1),
    /// The time after which `serve` discards an unused upload (`--upload-expiry`).
    upload_expiry: Duration = Duration::from_hours(1),
    /// The maximum number of open uploads to `serve` (`--max-uploads`).
    uploads: usize = 1024,
    /// The maximum length of a line of the evidence log (`--log`), in bytes.
    log_record_bytes: usize = 1 << 20,
    /// The maximum length of each list in a record of the evidence log, such as its digests, inputs
    /// and items.
    log_record_names: usize = 500,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits::DEFAULT
    }
}
