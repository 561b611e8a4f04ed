//! Images in keys of their own: containers of pods, workflows and Compose, where an `image` without
//! a tag means `latest`; keys and environment variables whose name says that the value is an image.

use crate::inventory::Inventory;
use crate::occurrence::ReferenceRole;
use crate::walk::{ImageClaim, MappingContext, NodeContext, ReferenceRule, is_list};
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

// Keys whose name says that the value is an image: `image`, `sandboxImage`.

pub(super) struct ImageKeyRule;

impl ReferenceRule for ImageKeyRule {
    fn entry<'s>(
        &self,
        _members: &MappingContext<'s>,
        _value: &'s YamlNode<'s>,
        child: &mut NodeContext<'s>,
    ) {
        if child.role == ReferenceRole::Value && child.key.is_some_and(is_image_key) {
            child.role = ReferenceRole::Image;
        }
    }

    fn claim<'t>(
        &self,
        text: &'t str,
        around: &NodeContext<'_>,
        _inventory: &Inventory<'_>,
    ) -> Option<ImageClaim<'t>> {
        let in_container = around.is_of_container();
        let name = around.name()?;
        let is_image = is_image_name(name) || (is_list_name(name) && is_list(text));
        is_image.then_some(ImageClaim {
            written: text,
            sure: in_container,
            in_container,
        })
    }
}

/// Whether a key, variable or flag is named after several images: `STRIMZI_KAFKA_IMAGES`.
pub(super) fn is_list_name(name: &str) -> bool {
    name.to_ascii_lowercase().ends_with("images")
}

/// Whether a key, variable or flag is named after an image: `image`, `sandboxImage`,
/// `RELATED_IMAGE_X`.
pub(super) fn is_image_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.ends_with("image") || name.starts_with("related_image_") || name.contains("_image_ref")
}

fn is_image_key(key: &str) -> bool {
    let key = key.as_bytes();
    let word = b"image";
    key.len()
        .checked_sub(word.len())
        .is_some_and(|start| key[start..].eq_ignore_ascii_case(word))
}

// Environment variables whose name says that the value is an image:
// `{name: RELATED_IMAGE_X, value: …}`.

pub(super) struct VariableRule;

impl ReferenceRule for VariableRule {
    fn entry<'s>(
        &self,
        members: &MappingContext<'s>,
        _value: &'s YamlNode<'s>,
        child: &mut NodeContext<'s>,
    ) {
        let Some(name) = members.name.filter(|_| child.key == Some("value")) else {
            return;
        };
        if is_image_name(name) {
            child.read_as = Some("image");
        } else if is_list_name(name) {
            child.read_as = Some("images");
        }
    }
}
