//! Arguments that are named after an image: `--x-image=REF`, and `--x-image` with REF as the next
//! item.

use super::claim::Claim;
use super::enclosing::Enclosing;
use super::image_keys::is_image_name;
use super::position::Position;
use crate::audit::inventory::Inventory;
use crate::yaml::Node;

/// `--x-image=REF`.
pub(super) struct ImageFlags;

impl Position for ImageFlags {
    fn scalar<'t>(
        &self,
        text: &'t str,
        _around: &Enclosing<'_>,
        _inventory: &Inventory<'_>,
    ) -> Option<Claim<'t>> {
        let (flag, written) = text
            .split_once('=')
            .filter(|(flag, _)| flag.starts_with('-'))?;
        let is_image = flag.to_ascii_lowercase().contains("image");
        is_image.then_some(Claim {
            written,
            sure: false,
            in_container: false,
        })
    }
}

/// `--x-image` with REF as the next item.
pub(super) struct FlagValues;

impl Position for FlagValues {
    fn item<'d>(
        &self,
        _list: Option<&str>,
        previous: Option<&'d Node<'d>>,
        below: &mut Enclosing<'d>,
    ) {
        if previous.is_some_and(is_image_flag) {
            below.key = Some("image");
        }
    }
}

/// Whether an argument is a flag whose value comes next.
fn is_image_flag(node: &Node<'_>) -> bool {
    let text = node.scalar().map(|scalar| scalar.value.trim());
    text.is_some_and(|text| text.starts_with('-') && !text.contains('=') && is_image_name(text))
}
