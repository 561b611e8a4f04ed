//! Full names in values that no earlier rule reads. A full name has a tag or digest, and its
//! host is certainly a registry.

use crate::inventory::Inventory;
use crate::walk::{ImageClaim, NodeContext, ReferenceRule};

pub(super) struct FullNameRule;

impl ReferenceRule for FullNameRule {
    fn claim<'t>(
        &self,
        text: &'t str,
        _around: &NodeContext<'_>,
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
