//! What the tests use of the library itself: every path into it stands here and nowhere else.

pub use landfall::internals::{
    AcceptedLoss, Algorithm, Content, Descriptor, Input, ItemRequests, LockedManifest,
    LockedSidecar, LockedTrimmedIndex, Meaning, ReadAs, UnresolvedItem, cost, file_repository,
    inputs, media_type, read, scan, split, trim_index,
};
pub use landfall::{
    BlobRead, Bundle, BundleOptions, CachePolicy, Client, ClientBuilder, DestinationMap, Digest,
    EntryKind as ItemKind, ImageRef, ItemStatus, Limits, Lock, Locked, LockedFile, LockedImage,
    MergedManifest, Omitted, PackOptions, PackPlan, Packaging, PinPolicy, Progress, PushError,
    PushOptions, Pushed, ReferenceIndex, ReportItem, RewriteOptions, Rewritten, Site, Store,
    Syntax, destination_map, load_manifests, pack, rewrite, today,
};
