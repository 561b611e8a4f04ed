//! Planning: what goes into a bundle, in which order; and what a delta leaves out because its bases
//! have it.

pub(crate) mod base;
pub(crate) mod pack_plan;
pub(crate) mod planned_entry;

pub use base::DeltaBase;
pub use pack_plan::PackPlan;
