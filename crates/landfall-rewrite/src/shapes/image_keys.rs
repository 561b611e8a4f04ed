//! Keys whose name ends in `image`: `image`, `sandboxImage`.

use crate::role::ReferenceRole;
use crate::walk::{MappingContext, NodeContext, ReferenceShape};
use crate::yaml::YamlNode;

pub(super) struct ImageKeyShape;

impl ReferenceShape for ImageKeyShape {
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
}

fn is_image_key(key: &str) -> bool {
    let key = key.as_bytes();
    let word = b"image";
    key.len()
        .checked_sub(word.len())
        .is_some_and(|start| key[start..].eq_ignore_ascii_case(word))
}
