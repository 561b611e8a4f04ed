//! Full names in values that no earlier position reads. A full name has a tag or digest, and its
//! host is certainly a registry.

use super::image_claim::ImageClaim;
use super::image_position::ImagePosition;
use super::node_position::NodePosition;
use crate::audit::inventory::Inventory;

pub(super) struct FullNamePosition;

impl ImagePosition for FullNamePosition {
    fn scalar<'t>(
        &self,
        text: &'t str,
        _around: &NodePosition<'_>,
        inventory: &Inventory<'_>,
    ) -> Option<ImageClaim<'t>> {
        let value = text
            .split_once('=')
            .filter(|(flag, _)| flag.starts_with('-'))
            .map(|(_, value)| value);
        let written = value.unwrap_or(text);
        inventory.is_full_name(written).then_some(ImageClaim {
            written,
            sure: true,
            in_container: false,
        })
    }
}
