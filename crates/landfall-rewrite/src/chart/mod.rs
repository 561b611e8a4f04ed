//! Reads Helm charts (folders and `.tgz`) without helm: metadata, default values, subcharts.
//!
//! The rules are those of Helm's loader, `ProcessDependencies` and `CoalesceValues`: subcharts are
//! folders and archives in `charts/`, a dependency may give a subchart an alias, and the values of
//! a parent override those of a subchart.

mod chart_folder;
mod helm_chart;
mod load;
mod read;
mod values;
mod yaml_words;

pub(crate) use self::helm_chart::ChartTemplate;
pub use self::helm_chart::HelmChart;
pub(super) use self::values::plain;
pub use self::values::{coalesce, values_of, values_text};
