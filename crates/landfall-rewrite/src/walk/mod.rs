//! Walks over YAML documents: calls each rule about references at every node, and proves that edits
//! change the intended values and nothing else.

mod collector;
mod rule;
mod scanner;
mod walker;

pub(super) use self::collector::{
    HAS_PLACEHOLDER, ImageCandidate, ImageClaim, ReferenceCollector, is_list, start_of, text_start,
};
pub(super) use self::rule::{Collects, MappingContext, NodeContext, NodeStep, ReferenceRule};
pub(super) use self::scanner::{ReferenceScanner, candidates as candidates_in_lines};
pub(super) use self::walker::DocumentScan;
