//! The lock as a document. It names every item by digest, and all later stages need only the lock.

#[cfg(test)]
mod all_fields;
pub mod delivered;
mod document;
mod lists;
mod load;
mod signature_verdicts;
#[cfg(test)]
mod tests;
mod text;

pub use self::document::{
    AcceptedLoss, Endpoint, Lock, LockedKind, UnresolvedItem, accepted_losses, losses,
    lost_referrer_item, lost_referrer_name, referrer_item,
};
pub use self::lists::{EXPORT_FORMATS, ExportInput};
pub use self::load::{collision, url_conflicts};
pub use self::signature_verdicts::SignatureVerdicts;

/// The default file name of the lock, and its name inside a bundle.
pub const FILE_NAME: &str = "landfall.lock";
