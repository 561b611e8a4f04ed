//! Planning: the content of a bundle and its order, and the content that a delta omits.

pub(crate) mod delta_base;
pub(crate) mod pack_plan;

pub use self::delta_base::DeltaBase;
pub use self::pack_plan::PackPlan;
