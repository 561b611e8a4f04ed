//! Keys whose name says that the value is an image: `image`, `sandboxImage`.

use crate::inventory::Inventory;
use crate::occurrence::ReferenceRole;
use crate::walk::{ImageClaim, MappingContext, NodeContext, ReferenceRule, is_list};
use crate::yaml::YamlNode;

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
