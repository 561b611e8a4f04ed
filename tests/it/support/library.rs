//! All items of the crate `landfall` that the tests use: no other test file imports from the crate.

pub use landfall::internals::{
    AcceptedLoss, Algorithm, Descriptor, InputContent, InputFile, ItemRequests, LockedManifest,
    LockedSidecar, LockedTrimmedIndex, ReadAs, ReferenceMeaning, UnresolvedItem, assign_shards,
    file_repository, inputs, media_type, read, scan, transfer_cost, trim_index,
};
pub use landfall::{
    BlobRead, Bundle, BundleOptions, CachePolicy, Client, ClientBuilder, DestinationMap, Digest,
    EntryKind, Failure, ImageRef, ItemStatus, Limits, Lock, Locked, LockedFile, LockedImage,
    MergedManifest, Omitted, PackOptions, PackPlan, Packaging, PinPolicy, Progress, PushOptions,
    Pushed, ReferenceIndex, ReferrerPolicy, ReportItem, RewriteOptions, RewriteResult,
    SilentProgress, Site, Store, TextSyntax, destination_map, load_manifests, pack, rewrite, today,
};
