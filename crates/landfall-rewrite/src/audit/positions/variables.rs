//! Environment variables that are named after an image: `{name: RELATED_IMAGE_X, value: …}`.

use super::enclosing::{Enclosing, Members};
use super::image_keys::{is_image_name, is_list_name};
use super::position::Position;
use crate::yaml::{Node, text};

pub(super) struct Variables;

impl Position for Variables {
    fn entry<'d>(&self, members: &Members<'d>, _value: &'d Node<'d>, below: &mut Enclosing<'d>) {
        let Some(name) = text(members.entries, "name").filter(|_| below.key == Some("value"))
        else {
            return;
        };
        if is_image_name(name) {
            below.key = Some("image");
        } else if is_list_name(name) {
            below.key = Some("images");
        }
    }
}
