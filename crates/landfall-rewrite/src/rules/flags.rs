//! Arguments that are named after an image: `--x-image=REF`, and `--x-image` followed by the item
//! REF.

use super::image_keys::is_image_name;
use crate::inventory::Inventory;
use crate::walk::{ImageClaim, NodeContext, ReferenceRule};
use crate::yaml::YamlNode;

/// The argument `--x-image=REF`.
pub(super) struct ImageFlagRule;

impl ReferenceRule for ImageFlagRule {
    fn claim<'t>(
        &self,
        text: &'t str,
        _around: &NodeContext<'_>,
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
pub(super) struct FlagValueRule;

impl ReferenceRule for FlagValueRule {
    fn item<'s>(
        &self,
        list: &NodeContext<'s>,
        previous: Option<&'s YamlNode<'s>>,
        child: &mut NodeContext<'s>,
    ) {
        if list.collects.candidates && previous.is_some_and(is_image_flag) {
            child.read_as = Some("image");
        }
    }
}

/// Whether an argument is a flag that is named after an image, and whose value is the next item.
fn is_image_flag(node: &YamlNode<'_>) -> bool {
    let text = node.scalar().map(|scalar| scalar.value.trim());
    text.is_some_and(|text| text.starts_with('-') && !text.contains('=') && is_image_name(text))
}
