//! Every image and mirrored URL that a text names: held by a lock, missing from it, or undecided.
//!
//! A rewrite looks for what the lock knows; an audit must also see what it does not know. So it
//! reads values where images are named (the table in `positions`), lines of texts that are not
//! documents, and URLs anywhere.

mod candidate;
mod chart_images;
mod dockerfile;
mod finding;
mod helm;
mod inventory;
mod list;
mod machine;
mod made_of;
mod node_list;
mod node_platforms;
mod packages;
mod positions;
mod template;
mod template_defaults;
mod text;
mod tree;
mod urls;
mod well_known;

pub use chart_images::chart_images;
pub use finding::{Coverage, FileFinding, Finding, dotted};
pub use helm::Helm;
pub use inventory::Inventory;
pub use machine::{Install, Installs, machine_installs};
pub use node_platforms::node_platforms;
pub use template_defaults::fill_template_defaults;
pub use text::audit;
pub use tree::{Audited, audit_inputs, audit_text, audit_tree, discover, in_chart};
