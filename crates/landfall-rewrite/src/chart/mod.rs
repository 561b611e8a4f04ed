//! Helm charts as they lie on disk, folder or `.tgz`, without helm: metadata, defaults, subcharts.
//!
//! What is followed is Helm's loader and its `ProcessDependencies` and `CoalesceValues`: subcharts
//! are folders and archives in `charts/`, a dependency may give one an alias, and a parent's values
//! win over a subchart's.

mod chart_folder;
mod error;
mod helm_chart;
mod load;
mod metadata;
mod read;
mod values;

pub use error::ChartError;
pub(crate) use helm_chart::ChartTemplate;
pub use helm_chart::HelmChart;
pub(super) use values::plain;
pub use values::{coalesce, values_of};
