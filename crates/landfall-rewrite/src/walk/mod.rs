//! The walk over YAML documents: it asks each shape of reference what it sees, and proves that the
//! edits change the values that they are meant to change, and nothing else.

mod collector;
mod proof;
mod shape;
mod surroundings;
mod walker;

pub(super) use collector::Collector;
pub(super) use shape::Shape;
pub(super) use surroundings::{Members, Surroundings};
pub(super) use walker::read;
