//! Finds locked images that lack destinations from which a platform pulls.

use landfall_item::lockfile::Lock;
use landfall_model::{Consumer, Destination, DestinationMap, ImageRef};
use std::fmt;

/// Images that lack destinations from which a consumer pulls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingDestinations {
    consumer: Consumer,
    pub(super) images: Vec<(ImageRef, Vec<Destination>)>,
    /// The lines for `registry.paths` that add the destinations.
    lines: Vec<String>,
}

/// Returns the locked images that lack a destination from which `consumer` pulls. These pulls would
/// fail on the nodes, long after the configuration was applied.
pub(super) fn missing_destinations(
    consumer: Consumer,
    mapping: &DestinationMap,
    lock: &Lock,
) -> Option<MissingDestinations> {
    let prefix = &mapping.target().prefix;
    let mut images = Vec::new();
    let mut lines = Vec::new();
    for image in lock.images.iter().map(|image| &image.name) {
        let present = mapping.destinations(image);
        let mut missing = mapping.consumer_destinations(consumer, image);
        missing.retain(|destination| !present.contains(destination));
        if missing.is_empty() {
            continue;
        }
        let paths: Vec<String> = present
            .iter()
            .chain(&missing)
            .map(|destination| {
                let repository = destination.repository.as_str();
                let path = repository
                    .strip_prefix(prefix.as_str())
                    .unwrap_or(repository);
                path.trim_start_matches('/').to_owned()
            })
            .collect();
        lines.push(format!("    {}: [{}]", image.name(), paths.join(", ")));
        images.push((image.clone(), missing));
    }
    if images.is_empty() {
        return None;
    }
    // the tags of one repository give the same line
    lines.dedup();
    Some(MissingDestinations {
        consumer,
        images,
        lines,
    })
}

impl MissingDestinations {
    /// The reason why pulls of an image fail: the site does not give it the destinations `missing`.
    pub(super) fn reason(&self, missing: &[Destination]) -> String {
        let missing: Vec<String> = missing.iter().map(Destination::to_string).collect();
        format!(
            "{} pulls it from {}, which the image's destinations do not include",
            self.consumer,
            missing.join(" and ")
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
        for (image, missing) in images {
            writeln!(f, "{image}: {}", self.reason(missing))?;
        }
        let lines = lines.join("\n");
        write!(
            f,
            "Add the destinations to the site, and push again. To add all of them, use `consumers: \
             [{consumer}]`; to add single ones, use these lines under registry.paths:\n{lines}"
        )
    }
}
