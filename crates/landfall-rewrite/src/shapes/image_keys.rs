//! Keys that are named after an image: `image`, `sandboxImage`.

use crate::role::Role;
use crate::walk::{Members, Shape, Surroundings};
use crate::yaml::Node;

pub(super) struct ImageKeys;

impl Shape for ImageKeys {
    fn entry<'s>(
        &self,
        _members: &Members<'s>,
        _value: &'s Node<'s>,
        below: &mut Surroundings<'s>,
    ) {
        if below.role == Role::Value && below.key.is_some_and(is_image_key) {
            below.role = Role::Image;
        }
    }
}

/// Whether `key` ends in `image`.
fn is_image_key(key: &str) -> bool {
    let (key, word) = (key.as_bytes(), b"image");
    key.len()
        .checked_sub(word.len())
        .is_some_and(|start| key[start..].eq_ignore_ascii_case(word))
}
