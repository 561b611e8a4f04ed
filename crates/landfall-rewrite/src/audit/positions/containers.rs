//! Containers and image volumes: an image without a tag means `latest`.

use super::image_position::ImagePosition;
use super::node_position::{MappingContents, NodePosition};
use crate::shapes::{is_container, is_list_of_containers};
use crate::yaml::YamlNode;

pub(super) struct ContainerPosition;

impl ImagePosition for ContainerPosition {
    fn entry<'d>(
        &self,
        members: &MappingContents<'d>,
        value: &'d YamlNode<'d>,
        child: &mut NodePosition<'d>,
    ) {
        let around = &members.around;
        let volume = around.key == Some("image") && child.key == Some("reference");
        child.container = match value {
            YamlNode::Scalar(_) => volume || (around.container && child.key == Some("image")),
            _ => is_container(child.key, around.key, around.container),
        };
        if volume {
            child.key = Some("image");
        }
    }

    fn item<'d>(
        &self,
        list: Option<&str>,
        _previous: Option<&'d YamlNode<'d>>,
        child: &mut NodePosition<'d>,
    ) {
        child.container = list.is_some_and(is_list_of_containers);
    }
}
