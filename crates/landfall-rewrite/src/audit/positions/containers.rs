//! Containers, whose `image` without a tag means `latest`, and image volumes.

use super::enclosing::{Enclosing, Members};
use super::position::Position;
use crate::shapes::{is_container, is_list_of_containers};
use crate::yaml::Node;

pub(super) struct Containers;

impl Position for Containers {
    fn entry<'d>(&self, members: &Members<'d>, value: &'d Node<'d>, below: &mut Enclosing<'d>) {
        let around = &members.around;
        let volume = around.key == Some("image") && below.key == Some("reference");
        below.container = match value {
            Node::Scalar(_) => volume || (around.container && below.key == Some("image")),
            _ => is_container(below.key, around.key, around.container),
        };
        if volume {
            below.key = Some("image");
        }
    }

    fn item<'d>(
        &self,
        list: Option<&str>,
        _previous: Option<&'d Node<'d>>,
        below: &mut Enclosing<'d>,
    ) {
        below.container = list.is_some_and(is_list_of_containers);
    }
}
