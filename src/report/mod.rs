//! What a command did: items, totals and hosts as one document; and progress as a small trait.

mod escape;
mod item;
mod progress;
mod summary;

pub(crate) use escape::escape;
pub use item::{Item, Kind, Status};
pub use progress::{Progress, Silent};
pub use summary::Report;
pub(crate) use summary::{ErrorInfo, HostUse, RunStatus, Side, Totals};
