//! CARRY IT. The bundle: one `.tar.zst` that is also an OCI image layout, readable by offset.
//!
//! `docs/bundle-format.md` draws the format byte by byte. From the inside out: [`frame`] (zstd frames),
//! [`header`] (tar headers), [`form`] (stored or compressed), [`contents`] (index and locator),
//! [`plan`] (what goes in, in which order), [`delta`] (what is left out because bases have it), [`sign`] (its
//! signature), then the verbs [`write`], [`Bundle::open`] and [`verify`]; and [`Straight`], which makes the same
//! file as [`write`] from what comes over the network.
//! Volumes: [`volumes`] (names and sizes), [`out`] (cut while written), [`parcel`] (how all gets its names),
//! [`sums`] (`B.sha256sums`), [`medium`] (read as one), [`mod@rebuild`] (one of them again).

mod arrive;
mod contents;
mod delta;
mod draft;
mod error;
mod form;
mod frame;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
mod ground;
mod header;
#[cfg(test)]
mod hostile;
mod journal;
mod locator;
mod medium;
mod out;
mod parcel;
mod pipeline;
mod plan;
mod previous;
mod read;
mod rebuild;
#[cfg(any(test, fuzzing))]
mod sample;
mod sign;
mod squeeze;
mod straight;
mod sums;
mod tail;
#[cfg(test)]
mod tests;
mod verify;
mod volumes;
mod whole;
mod write;

pub use contents::{Contents, Frame, Hash, ItemName, LockName, PackOptions, Record};
pub use delta::{Base, BaseName};
pub use error::{Error, Fault};
pub use form::Form;
pub use parcel::Parcel;
pub use plan::{Lost, Plan};
pub use read::Bundle;
pub use rebuild::rebuild;
pub use sign::{NAMESPACE, SignedBy};
pub use straight::{Begun, Straight};
pub use sums::{explain, sums_path};
pub use verify::{Verified, verify};
pub use volumes::{VolumeSize, VolumeSizeError, is_split};
pub use write::{Written, write, write_parcel};

/// Name of the lock inside a bundle.
const LOCK: &str = "landfall.lock";
/// Name of the locator inside a bundle.
const LOCATOR: &str = "landfall-locator";
/// Name of the contents index inside a bundle.
const CONTENTS: &str = "landfall-contents.json";
/// What a bundle requires that leaves out what its bases have.
const DELTA: &str = "delta";
