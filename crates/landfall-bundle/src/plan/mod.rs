//! Planning: the content of a bundle and its order, and the content that a delta omits.

pub(crate) mod delta_base;
mod lost_referrers;
pub(crate) mod pack_plan;
pub(crate) mod planned_entry;

pub use delta_base::DeltaBase;
pub use pack_plan::PackPlan;
