//! Which objects a ref needs, in a fixed order.

mod commits;
mod plan;
mod reach;
mod selection;

pub use plan::GitPackPlan;
pub use reach::reaches;
pub use selection::SelectedObjects;
