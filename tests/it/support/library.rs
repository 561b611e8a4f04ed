//! What the tests use of the library itself: every path into it stands here and nowhere else.

pub use landfall::bundle::{self, Bundle, DirectBundle, PackOptions, PackPlan, Start};
pub use landfall::config::{Site, mapping};
pub use landfall::content::{BlobRead, Cached, Keep, LocalFirst, LocalSink, LocalSource, Source};
pub use landfall::http::{HostRule, ProxyRules, Transport, TransportConfig};
pub use landfall::item::file_repository;
pub use landfall::lock::{Locked, Pins, Resolver, lock};
pub use landfall::lockfile::{Accepted, File, Image, Lock, LockedManifest, Sidecar, Trimmed, Unresolved};
pub use landfall::manifest::{Wanted, load};
pub use landfall::model::{Algorithm, Descriptor, Digest, ImageRef, Limits, Mapping, media_type, trim_index};
pub use landfall::pull::pull;
pub use landfall::push::{Omitted, Options as PushOptions, PushError, Pushed, push};
pub use landfall::registry::{Keychain, Sessions};
pub use landfall::report::{Item, Kind as ItemKind, Progress, Status};
pub use landfall::rewrite::{
    Content, Input, Meaning, Options as RewriteOptions, ReadAs, ReferenceIndex, Rewritten, Syntax, inputs,
    read, rewrite, scan,
};
pub use landfall::store::Disk;
pub use landfall::upstream::{UploadFeed, Upstreams};
