//! Walks over YAML documents: calls each rule about references at every node, and proves that edits
//! change the intended values and nothing else.

mod candidate;
mod collector;
mod node_context;
mod proof;
mod rule;
mod scanner;
mod template_lines;
mod walker;

pub(super) use candidate::{HAS_PLACEHOLDER, ImageCandidate, ImageClaim, is_list};
pub(super) use collector::{ReferenceCollector, start_of, text_start};
pub(super) use node_context::{Collects, MappingContext, NodeContext, NodeStep};
pub(super) use rule::ReferenceRule;
pub(super) use scanner::ReferenceScanner;
pub(super) use template_lines::candidates as candidates_in_lines;
pub(super) use walker::DocumentScan;
