//! What a text says about the places in it: images of Dockerfiles, and documents in which nothing
//! may be changed.

use super::dockerfile::{dockerfiles, images};
use super::kept::kept;
use std::collections::BTreeSet;
use std::ops::Range;

/// What a text says about the places in it.
pub(super) struct Places {
    /// The offsets at which images of Dockerfiles begin.
    images: BTreeSet<usize>,
    kept: Vec<(Range<usize>, &'static str)>,
}

impl Places {
    pub(super) fn of(text: &str) -> Places {
        let in_part = |part: Range<usize>| {
            let images = images(&text[part.clone()]);
            images
                .into_iter()
                .map(move |image| part.start + image.origin.start)
        };
        let images = dockerfiles(text).into_iter().flat_map(in_part).collect();
        Places {
            images,
            kept: kept(text),
        }
    }

    /// Whether the image of a Dockerfile begins at `at`.
    pub(super) fn is_image(&self, at: usize) -> bool {
        self.images.contains(&at)
    }

    /// Why nothing at `at` may be changed, if so.
    pub(super) fn keeps(&self, at: usize) -> Option<&'static str> {
        let next = self.kept.partition_point(|(range, _)| range.end <= at);
        self.kept
            .get(next)
            .filter(|(range, _)| range.start <= at)
            .map(|(_, why)| *why)
    }
}
