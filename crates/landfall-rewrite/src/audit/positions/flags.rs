//! Arguments that are named after an image: `--x-image=REF`, and `--x-image` followed by the item
//! REF.

use super::image_claim::ImageClaim;
use super::image_keys::is_image_name;
use super::image_position::ImagePosition;
use super::node_position::NodePosition;
use crate::audit::inventory::Inventory;
use crate::yaml::YamlNode;

/// The argument `--x-image=REF`.
pub(super) struct ImageFlagPosition;

impl ImagePosition for ImageFlagPosition {
    fn scalar<'t>(
        &self,
        text: &'t str,
        _around: &NodePosition<'_>,
        _inventory: &Inventory<'_>,
    ) -> Option<ImageClaim<'t>> {
        let (flag, written) = text
            .split_once('=')
            .filter(|(flag, _)| flag.starts_with('-'))?;
        let is_image = flag.to_ascii_lowercase().contains("image");
        is_image.then_some(ImageClaim {
            written,
            sure: false,
            in_container: false,
        })
    }
}

/// The argument `--x-image`, followed by the item REF.
pub(super) struct FlagValuePosition;

impl ImagePosition for FlagValuePosition {
    fn item<'d>(
        &self,
        _list: Option<&str>,
        previous: Option<&'d YamlNode<'d>>,
        child: &mut NodePosition<'d>,
    ) {
        if previous.is_some_and(is_image_flag) {
            child.key = Some("image");
        }
    }
}

/// Whether an argument is a flag that is named after an image, and whose value is the next item.
fn is_image_flag(node: &YamlNode<'_>) -> bool {
    let text = node.scalar().map(|scalar| scalar.value.trim());
    text.is_some_and(|text| text.starts_with('-') && !text.contains('=') && is_image_name(text))
}
