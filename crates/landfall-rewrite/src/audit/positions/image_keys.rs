//! Keys whose name says that the value is an image.

use super::image_claim::ImageClaim;
use super::image_position::ImagePosition;
use super::node_position::NodePosition;
use crate::audit::candidate::is_list;
use crate::audit::inventory::Inventory;

pub(super) struct ImageKeyPosition;

impl ImagePosition for ImageKeyPosition {
    fn scalar<'t>(
        &self,
        text: &'t str,
        around: &NodePosition<'_>,
        _inventory: &Inventory<'_>,
    ) -> Option<ImageClaim<'t>> {
        let sure = around.container;
        let in_container = around.container;
        let name = around.key?;
        let is_image = is_image_name(name) || (is_list_name(name) && is_list(text));
        is_image.then_some(ImageClaim {
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
