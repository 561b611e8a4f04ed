//! What the tests use of the library itself: every path into it stands here and nowhere else.

pub use landfall::bundle::{self, Begun, Bundle, PackOptions, Plan, Straight};
pub use landfall::http::{HostRule, ProxyRules, Transport, TransportConfig};
pub use landfall::lock::{
    Accepted, File, Image, Lock, Locked, LockedManifest, Pins, Resolver, Sidecar, Trimmed, Unresolved, lock,
};
pub use landfall::manifest::{Wanted, load};
pub use landfall::model::{Algorithm, Descriptor, Digest, ImageRef, Limits, media_type, trim_index};
pub use landfall::pull::pull;
pub use landfall::push::{LeftOut, Options as PushOptions, PushError, Pushed, push};
pub use landfall::registry::{Keychain, Sessions};
pub use landfall::report::{Item, Kind as ItemKind, Progress, Status};
pub use landfall::rewrite::{
    Content, Input, Kind as TextKind, Known, Mapping, Meaning, Options as RewriteOptions, ReadAs, Rewritten,
    file_repository, inputs, read, rewrite, scan,
};
pub use landfall::site::Site;
pub use landfall::source::{Upstreams, entries};
pub use landfall::store::{Blobs, Destination, Disk, Local, Nearby};
