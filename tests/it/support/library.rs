//! What the tests use of the library itself: every path into it stands here and nowhere else.

pub use landfall::internals::{
    Accepted, Algorithm, Content, Descriptor, Input, LockedManifest, Meaning, ReadAs, Sidecar,
    Trimmed, Unresolved, cost, file_repository, inputs, media_type, read, scan, split, trim_index,
};
pub use landfall::{
    BlobRead, Bundle, BundleOptions, CachePolicy, Client, ClientBuilder, DestinationMap, Digest,
    EntryKind as ItemKind, ImageRef, ItemStatus, Limits, Lock, Locked, LockedFile as File,
    LockedImage as Image, Omitted, PackOptions, PackPlan, Packaging, Pins, Progress, PushError,
    PushOptions, Pushed, ReferenceIndex, ReportItem, RewriteOptions, Rewritten, Site, Store,
    Syntax, Wanted, destination_map, load_manifests, pack, rewrite, today,
};
