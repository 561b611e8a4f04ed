//! Environment variables that are named after an image: `{name: RELATED_IMAGE_X, value: …}`.

use super::enclosing::{Enclosing, Members};
use super::image_keys::is_image_name;
use super::position::Position;
use crate::rewrite::yaml::{Node, text};

pub(super) struct Variables;

impl Position for Variables {
    fn entry<'d>(&self, members: &Members<'d>, _value: &'d Node<'d>, below: &mut Enclosing<'d>) {
        if below.key == Some("value") && text(members.entries, "name").is_some_and(is_image_name) {
            below.key = Some("image");
        }
    }
}
