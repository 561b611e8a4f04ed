//! Environment variables whose name says that the value is an image:
//! `{name: RELATED_IMAGE_X, value: …}`.

use super::image_keys::{is_image_name, is_list_name};
use crate::walk::{MappingContext, NodeContext, ReferenceRule};
use crate::yaml::YamlNode;

pub(super) struct VariableRule;

impl ReferenceRule for VariableRule {
    fn entry<'s>(
        &self,
        members: &MappingContext<'s>,
        _value: &'s YamlNode<'s>,
        child: &mut NodeContext<'s>,
    ) {
        let Some(name) = members.name.filter(|_| child.key == Some("value")) else {
            return;
        };
        if is_image_name(name) {
            child.read_as = Some("image");
        } else if is_list_name(name) {
            child.read_as = Some("images");
        }
    }
}
