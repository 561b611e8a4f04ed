//! Audits texts: finds the images, mirrored URLs, packages and git repositories that they name, and
//! says whether the lock contains them.
//!
//! A rewrite searches for references that the lock contains; an audit must also find references
//! that the lock does not contain. Therefore an audit also collects the candidates of the walk
//! (`rules`): values where images are named. It reads lines of texts that are not documents, and
//! URLs anywhere.

mod access_log;
mod chart_images;
mod dockerfile;
mod fetches;
mod finding;
mod git_coverage;
mod helm;
mod machine;
mod node_list;
mod node_platforms;
mod packages;
mod page;
mod reference_sources;
mod template_actions;
mod template_defaults;
mod text;
mod tree;
mod urls;

pub use self::access_log::{AccessLogMisses, access_log_misses};
pub use self::chart_images::chart_images;
pub use self::finding::{AuditFinding, FileFinding, NamedRepository, dotted};
pub use self::helm::HelmCommand;
pub use self::machine::{MachineInstall, MachineInstalls, machine_installs};
pub use self::node_platforms::node_platforms;
pub use self::template_defaults::fill_template_defaults;
pub use self::text::audit;
pub use self::tree::{
    AuditResult, UnreadFile, audit_inputs, audit_text, audit_tree, discover, in_chart,
};
pub use crate::inventory::{Inventory, LockCoverage};
