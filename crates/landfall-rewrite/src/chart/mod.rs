//! Reads Helm charts (folders and `.tgz`) without helm: metadata, default values, subcharts.
//!
//! The rules are those of Helm's loader, `ProcessDependencies` and `CoalesceValues`: subcharts are
//! folders and archives in `charts/`, a dependency may give a subchart an alias, and the values of
//! a parent override those of a subchart.

mod chart_folder;
mod error;
mod helm_chart;
mod load;
mod metadata;
mod read;
mod values;
mod yaml_words;

pub use error::ChartError;
pub(crate) use helm_chart::ChartTemplate;
pub use helm_chart::HelmChart;
pub(super) use values::plain;
pub use values::{coalesce, values_of, values_text};
