//! Environment variables whose name says that the value is an image:
//! `{name: RELATED_IMAGE_X, value: …}`.

use super::image_keys::{is_image_name, is_list_name};
use super::image_position::ImagePosition;
use super::node_position::{MappingContents, NodePosition};
use crate::yaml::YamlNode;

pub(super) struct VariablePosition;

impl ImagePosition for VariablePosition {
    fn entry<'d>(
        &self,
        members: &MappingContents<'d>,
        _value: &'d YamlNode<'d>,
        child: &mut NodePosition<'d>,
    ) {
        let Some(name) = members.name.filter(|_| child.key == Some("value")) else {
            return;
        };
        if is_image_name(name) {
            child.key = Some("image");
        } else if is_list_name(name) {
            child.key = Some("images");
        }
    }
}
