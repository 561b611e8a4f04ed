//! The status of a pod: the running images by digest.

use crate::inventory::Inventory;
use crate::walk::{
    ImageCandidate, ImageClaim, MappingContext, NodeContext, ReferenceCollector, ReferenceRule,
    text_start,
};
use crate::yaml::{YamlNode, text_of, value_of};
use landfall_model::{Digest, ImageRef};

/// Keys of lists in the status of a pod.
const STATUSES: [&str; 3] = [
    "containerStatuses",
    "initContainerStatuses",
    "ephemeralContainerStatuses",
];

pub(super) struct PodStatusRule;

impl ReferenceRule for PodStatusRule {
    fn candidates<'s>(
        &self,
        collector: &mut ReferenceCollector<'_, 's>,
        inventory: &Inventory<'_>,
        members: &MappingContext<'s>,
        _taken: &[usize],
    ) -> Vec<usize> {
        if !members.around.status {
            return Vec::new();
        }
        add(collector, inventory, members);
        // nothing else in the status is read: `image` is the same image, by its tag
        (0..members.entries.len()).collect()
    }

    fn item<'s>(
        &self,
        list: &NodeContext<'s>,
        _previous: Option<&'s YamlNode<'s>>,
        child: &mut NodeContext<'s>,
    ) {
        child.status = list.key.is_some_and(|key| STATUSES.contains(&key));
    }
}

fn add(
    collector: &mut ReferenceCollector<'_, '_>,
    inventory: &Inventory<'_>,
    members: &MappingContext<'_>,
) {
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
        let (written, why_not) = match inventory.with_config(&config) {
            Some(name) => (name.to_string(), None),
            None => {
                let why =
                    "the runtime only reports the digest of its config, which is not in the lock";
                (format!("{image} ({id})"), Some(why.to_owned()))
            }
        };
        return collector.add_candidate(ImageCandidate {
            at,
            path: Vec::new(),
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
    collector.add_claim(
        at,
        ImageClaim {
            written: &written,
            sure: true,
            in_container: true,
        },
    );
}
