//! Positions with a special meaning in a text: images of Dockerfiles, and documents in which
//! nothing may be changed.

use super::dockerfile::{dockerfiles, images};
use super::kept_documents::kept;
use super::neighbouring_lines::NeighbouringRegistry;
use std::collections::BTreeSet;
use std::ops::Range;

/// The positions with a special meaning in a text.
pub(super) struct TextMarks {
    /// The offsets of the images of Dockerfiles.
    images: BTreeSet<usize>,
    kept: Vec<(Range<usize>, &'static str)>,
    registry: NeighbouringRegistry,
}

impl TextMarks {
    pub(super) fn of(text: &str) -> TextMarks {
        let mut offsets = BTreeSet::new();
        for part in dockerfiles(text) {
            let images = images(&text[part.clone()]).into_iter();
            offsets.extend(images.map(|image| part.start + image.origin.start));
        }
        TextMarks {
            images: offsets,
            kept: kept(text),
            registry: NeighbouringRegistry::default(),
        }
    }

    /// Whether an image of a Dockerfile begins at the byte `at`.
    pub(super) fn is_image(&self, at: usize) -> bool {
        self.images.contains(&at)
    }

    /// Whether another line of the mapping in `text`, the text of these marks, has the registry of
    /// the reference at the byte `at`.
    pub(super) fn has_registry_beside(&mut self, text: &str, at: usize) -> bool {
        self.registry.is_beside(text, at)
    }

    /// The reason why nothing at the byte `at` may be changed, if there is one.
    pub(super) fn keeps(&self, at: usize) -> Option<&'static str> {
        let next = self.kept.partition_point(|(range, _)| range.end <= at);
        self.kept
            .get(next)
            .filter(|(range, _)| range.start <= at)
            .map(|(_, why)| *why)
    }
}
