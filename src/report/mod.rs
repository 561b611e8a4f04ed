//! What a command did: items, totals and hosts as one document; and progress as a small trait.

mod escape;
mod item;
mod progress;
mod summary;

pub use escape::escape;
pub use item::{Item, Kind, Status};
pub use progress::{Progress, Silent};
pub use summary::{ErrorInfo, HostUse, Report, RunStatus, Side, Totals};
