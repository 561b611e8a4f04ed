//! Anywhere else: a full name with a tag or digest, at a host that is a registry beyond doubt.

use super::claim::Claim;
use super::enclosing::Enclosing;
use super::position::Position;
use crate::audit::inventory::Inventory;

pub(super) struct FullNames;

impl Position for FullNames {
    fn scalar<'t>(
        &self,
        text: &'t str,
        _around: &Enclosing<'_>,
        inventory: &Inventory<'_>,
    ) -> Option<Claim<'t>> {
        let value = text
            .split_once('=')
            .filter(|(flag, _)| flag.starts_with('-'))
            .map(|(_, value)| value);
        let written = value.unwrap_or(text);
        inventory.is_full_name(written).then_some(Claim {
            written,
            sure: true,
            in_container: false,
        })
    }
}
