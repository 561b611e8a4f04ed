//! The names by which a platform asks for locked images, where the registry has none of them.

use landfall_item::lockfile::Lock;
use landfall_model::{Consumer, Destination, DestinationMap, ImageRef};
use std::fmt;

/// Images that a consumer would ask for in vain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingDestinations {
    consumer: Consumer,
    pub(super) images: Vec<(ImageRef, Vec<Destination>)>,
    /// The lines of `registry.paths` that add the destinations.
    lines: Vec<String>,
}

/// The locked images that have not all the names by which `consumer` asks for them.
pub(super) fn missing_destinations(
    consumer: Consumer,
    mapping: &DestinationMap,
    lock: &Lock,
) -> Option<MissingDestinations> {
    let prefix = &mapping.target().prefix;
    let path = |place: &Destination| {
        let path = place
            .repository
            .strip_prefix(prefix.as_str())
            .unwrap_or(&place.repository);
        path.trim_start_matches('/').to_owned()
    };
    let (mut images, mut lines) = (Vec::new(), Vec::new());
    for image in lock.images.iter().map(|image| &image.name) {
        let has = mapping.destinations(image);
        let mut lacks = mapping.consumer_destinations(consumer, image);
        lacks.retain(|place| !has.contains(place));
        if lacks.is_empty() {
            continue;
        }
        let all: Vec<String> = has.iter().chain(&lacks).map(path).collect();
        lines.push(format!("    {}: [{}]", image.name(), all.join(", ")));
        images.push((image.clone(), lacks));
    }
    lines.dedup();
    (!images.is_empty()).then_some(MissingDestinations {
        consumer,
        images,
        lines,
    })
}

impl MissingDestinations {
    /// What is missing for one image.
    pub(super) fn reason(&self, lacks: &[Destination]) -> String {
        let lacks: Vec<String> = lacks.iter().map(Destination::to_string).collect();
        format!(
            "{} asks for {}, where it does not go",
            self.consumer,
            lacks.join(" and ")
        )
    }
}

impl fmt::Display for MissingDestinations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let MissingDestinations {
            consumer,
            images,
            lines,
        } = self;
        for (image, lacks) in images {
            writeln!(f, "{image}: {}", self.reason(lacks))?;
        }
        let lines = lines.join("\n");
        write!(
            f,
            "Add the destinations to the site, and push again: all of them by `consumers: [{consumer}]`, or single ones \
             under registry.paths:\n{lines}"
        )
    }
}
