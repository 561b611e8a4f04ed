//! Keys that are named after an image.

use super::claim::Claim;
use super::enclosing::Enclosing;
use super::position::Position;
use crate::audit::candidate::is_list;
use crate::audit::inventory::Inventory;

pub(super) struct ImageKeys;

impl Position for ImageKeys {
    fn scalar<'t>(
        &self,
        text: &'t str,
        around: &Enclosing<'_>,
        _inventory: &Inventory<'_>,
    ) -> Option<Claim<'t>> {
        let (sure, in_container) = (around.container, around.container);
        let name = around.key?;
        let is_image = is_image_name(name) || (is_list_name(name) && is_list(text));
        is_image.then_some(Claim {
            written: text,
            sure,
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
