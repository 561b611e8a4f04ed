//! Walks over YAML documents: calls each shape of reference at every node, and proves that the
//! edits change the intended values and nothing else.

mod collector;
mod node_context;
mod proof;
mod shape;
mod walker;

pub(super) use collector::OccurrenceCollector;
pub(super) use node_context::{MappingContext, NodeContext};
pub(super) use shape::ReferenceShape;
pub(super) use walker::read;
