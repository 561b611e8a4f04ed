//! Delivers images and artifacts from a bundle, a store or upstream to a registry.
//!
//! One HEAD for each destination tag shows what the registry has (`plan`); with `--recheck`,
//! `presence` looks up every manifest and blob too. If something must be delivered, `preflight`
//! looks for everything that would make the push fail. Then the entries are delivered, those with
//! the largest blobs first. Twice `--jobs` of them are delivered at once, since some wait for a
//! blob that another delivery uploads. A blob is mounted from a repository that has it, found to be
//! present, or uploaded. The child manifests, the index and finally the tag follow. Each digest is
//! uploaded to a repository once in a run: other deliveries that need it wait for that upload.
//!
//! `git` pushes git repositories to a git server instead of a registry.
//!
//! A bundle's blob is read for an upload by `BlobRead::open_whole`: its digest is verified at its
//! end, and its last bytes are held back until then, so that a registry that checks only the length
//! does not accept damaged content. A delta and its bases are one `BlobRead`; if one of them is
//! damaged, reading continues at the damaged byte in the next one that has the blob. Blobs that the
//! delta omits and no base has are looked up at the registry before the preflight (`omitted`), and
//! are then mounted or downloaded from there.

mod blobs;
mod deliver;
mod error;
mod git;
mod locks;
mod manifests;
mod missing;
mod names;
mod omitted;
mod omitted_blob;
mod options;
mod outcome;
mod plan;
mod preflight;
mod presence;
mod problem;
#[cfg(feature = "cli")]
mod prune;
mod receipt;
mod references;
mod referrers;
mod refusal;
mod run;
#[cfg(feature = "cli")]
mod signed_images;
mod skipped;
#[cfg(feature = "cli")]
mod state;
mod status;
mod upload_slots;
mod uploader;

pub use error::PushError;
pub(crate) use git::push_git;
pub use git::{GitCollision, GitTarget};
pub(crate) use missing::{MissingParts, missing};
pub use omitted::Omitted;
pub use options::PushOptions;
pub use outcome::Pushed;
pub(crate) use problem::ProblemKind;
#[cfg(feature = "cli")]
pub(crate) use prune::{Needed, PruneScope, Pruned, prune};
pub(crate) use receipt::{PrunedManifest, Receipt};
pub(crate) use references::References;
pub(crate) use run::{PushContent, push};
#[cfg(feature = "cli")]
pub(crate) use signed_images::{SignedImages, sign_images};
pub(crate) use skipped::is_left_out;
#[cfg(feature = "cli")]
pub(crate) use status::{RegistryTag, StatusScope, TagStatus, status};
