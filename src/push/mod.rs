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

mod deliver;
mod git;
mod locks;
mod omitted;
mod plan;
mod preflight;
#[cfg(feature = "cli")]
mod prune;
mod referrers;
mod run;
#[cfg(feature = "cli")]
mod signed_images;
mod state;
mod status;
mod upload_slots;
mod uploader;

pub(crate) use self::git::push_git;
pub use self::git::{GitCollision, GitTarget};
pub use self::omitted::Omitted;
pub(crate) use self::omitted::References;
pub(crate) use self::plan::is_left_out;
pub(crate) use self::preflight::{Problem, ProblemKind};
#[cfg(feature = "cli")]
pub(crate) use self::prune::{Needed, PruneScope, Pruned, SurveyedRepository, prune};
pub(crate) use self::run::{PushContent, push};
#[cfg(feature = "cli")]
pub(crate) use self::signed_images::{SignedImages, sign_images};
#[cfg(feature = "cli")]
pub(crate) use self::state::{Delivered, Moved, Replaced};
pub(crate) use self::state::{PrunedManifest, Receipt};
pub use self::state::{PushOptions, Pushed};
pub(crate) use self::status::{MissingPart, MissingParts, missing};
#[cfg(feature = "cli")]
pub(crate) use self::status::{RegistryTag, StatusScope, TagStatus, status};
