//! What the tests use of the library itself: every path into it stands here and nowhere else.

pub use landfall::internals::{
    Accepted, Algorithm, Content, Descriptor, Input, LockedManifest, Meaning, ReadAs, Sidecar,
    Trimmed, Unresolved, cost, file_repository, inputs, media_type, read, scan, split, trim_index,
};
pub use landfall::{
    BlobRead, Bundle, BundleOptions, Client, ClientBuilder, Digest, ImageRef, Item, Keep,
    Kind as ItemKind, Limits, Lock, Locked, LockedFile as File, LockedImage as Image, Mapping,
    Omitted, PackOptions, PackPlan, Packaging, Pins, Progress, PushError, PushOptions, Pushed,
    ReferenceIndex, RewriteOptions, Rewritten, Site, Status, Store, Syntax, Wanted, load_manifests,
    mapping, pack, rewrite, today,
};
