//! Deltas between two objects, as packs contain them (gitformat-pack, "Deltified representation").

mod apply;
mod create;
mod varint;

pub(crate) use apply::{apply, sizes};
pub(crate) use create::create;
