//! Containers of pods, workflows and Compose: an `image` without a tag means `latest`.

use crate::occurrence::ReferenceRole;
use crate::walk::{MappingContext, NodeContext, ReferenceRule};
use crate::yaml::YamlNode;

/// Keys of lists whose items are containers, or are treated like containers.
const LISTS: [&str; 5] = [
    "containers",
    "initContainers",
    "ephemeralContainers",
    "steps",
    "sidecars",
];
/// Keys of mappings that are containers (Argo Workflows).
const SINGLE: [&str; 2] = ["container", "script"];
/// The key of a mapping whose values are containers (Compose).
const SERVICES: &str = "services";

pub(super) struct ContainerRule;

impl ReferenceRule for ContainerRule {
    fn entry<'s>(
        &self,
        members: &MappingContext<'s>,
        value: &'s YamlNode<'s>,
        child: &mut NodeContext<'s>,
    ) {
        let around = &members.around;
        match value {
            YamlNode::Scalar(_) => match child.key {
                Some("image") if around.container => child.role = ReferenceRole::Container,
                // the image of an image volume
                Some("reference") if around.key == Some("image") => {
                    child.role = ReferenceRole::Container;
                    child.read_as = Some("image");
                }
                _ => {}
            },
            _ => child.container = is_container(child.key, around.key, around.container),
        }
    }

    fn item<'s>(
        &self,
        list: &NodeContext<'s>,
        _previous: Option<&'s YamlNode<'s>>,
        child: &mut NodeContext<'s>,
    ) {
        child.container = list.key.is_some_and(|key| LISTS.contains(&key));
    }
}

/// Whether the mapping under `key` is a container. The mapping that contains it is under `above`;
/// `in_container` says whether that mapping is a container itself.
fn is_container(key: Option<&str>, above: Option<&str>, in_container: bool) -> bool {
    above == Some(SERVICES) || key.is_some_and(|key| SINGLE.contains(&key) && !in_container)
}
