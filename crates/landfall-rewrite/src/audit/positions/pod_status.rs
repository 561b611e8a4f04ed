//! The status of a pod: the running images by digest.

use super::candidate_collector::{CandidateCollector, text_start};
use super::image_claim::ImageClaim;
use super::image_position::ImagePosition;
use super::node_position::{MappingContents, NodePosition};
use crate::audit::candidate::ImageCandidate;
use crate::yaml::{YamlNode, text_of, value_of};
use landfall_model::{Digest, ImageRef};

/// Keys of lists in the status of a pod.
const STATUSES: [&str; 3] = [
    "containerStatuses",
    "initContainerStatuses",
    "ephemeralContainerStatuses",
];

pub(super) struct PodStatusPosition;

impl ImagePosition for PodStatusPosition {
    fn references<'d>(
        &self,
        reader: &mut CandidateCollector<'d, '_>,
        members: &MappingContents<'d>,
        _taken: &[usize],
    ) -> Vec<usize> {
        if !members.around.status {
            return Vec::new();
        }
        add(reader, members);
        // nothing else in the status is read: `image` is the same image, by its tag
        (0..members.entries.len()).collect()
    }

    fn item<'d>(
        &self,
        list: Option<&str>,
        _previous: Option<&'d YamlNode<'d>>,
        child: &mut NodePosition<'d>,
    ) {
        child.status = list.is_some_and(|list| STATUSES.contains(&list));
    }
}

fn add(reader: &mut CandidateCollector<'_, '_>, members: &MappingContents<'_>) {
    let Some(scalar) = value_of(members.entries, "imageID").and_then(YamlNode::scalar) else {
        return;
    };
    let Some(id) = scalar.text() else { return };
    let id = ["docker-pullable://", "docker://"]
        .iter()
        .find_map(|head| id.strip_prefix(head))
        .unwrap_or(id);
    let image = text_of(members.entries, "image").unwrap_or_default();
    let at = text_start(scalar);
    if let Ok(config) = id.parse::<Digest>() {
        let (written, why_not) = match reader.inventory.with_config(&config) {
            Some(name) => (name.to_string(), None),
            None => {
                let why =
                    "the runtime only reports the digest of its config, which is not in the lock";
                (format!("{image} ({id})"), Some(why.to_owned()))
            }
        };
        let path = reader.path.clone();
        return reader.found.push(ImageCandidate {
            at,
            path,
            written,
            sure: true,
            in_container: true,
            is_chart: false,
            why_not,
        });
    }
    let Ok(ran) = id.parse::<ImageRef>() else {
        return;
    };
    // `imageID` has the digest that runs; `image` has the tag that was requested
    let requested = image
        .parse::<ImageRef>()
        .ok()
        .filter(|requested| requested.name() == ran.name());
    let tag = requested.and_then(|requested| requested.tag);
    let written = ImageRef {
        tag: tag.or(ran.tag.clone()),
        ..ran
    }
    .to_string();
    reader.add(
        at,
        ImageClaim {
            written: &written,
            sure: true,
            in_container: true,
        },
    );
}
