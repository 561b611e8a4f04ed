//! Containers of pods, workflows and Compose: their `image` without a tag means `latest`.

use crate::role::Role;
use crate::walk::{Members, Shape, Surroundings};
use crate::yaml::Node;

/// Keys of lists whose items are containers, or are treated as such by what reads them.
const LISTS: [&str; 5] = [
    "containers",
    "initContainers",
    "ephemeralContainers",
    "steps",
    "sidecars",
];
/// Keys of mappings that are containers (Argo Workflows).
const SINGLE: [&str; 2] = ["container", "script"];
/// Key of a mapping whose values are containers (Compose).
const SERVICES: &str = "services";

pub(super) struct Containers;

impl Shape for Containers {
    fn entry<'s>(&self, members: &Members<'s>, value: &'s Node<'s>, below: &mut Surroundings<'s>) {
        let around = &members.around;
        match value {
            Node::Scalar(_) => match below.key {
                Some("image") if around.container => below.role = Role::Container,
                // the image of an image volume
                Some("reference") if around.key == Some("image") => below.role = Role::Container,
                _ => {}
            },
            _ => below.container = is_container(below.key, around.key, around.container),
        }
    }

    fn items<'s>(&self, list: &Surroundings<'s>, below: &mut Surroundings<'s>) {
        below.container = list.key.is_some_and(is_list_of_containers);
    }
}

/// Whether the items of the list under `key` are containers.
pub(crate) fn is_list_of_containers(key: &str) -> bool {
    LISTS.contains(&key)
}

/// Whether the mapping under `key` is a container. It is in a mapping under `above`, which may be
/// one itself.
pub(crate) fn is_container(key: Option<&str>, above: Option<&str>, in_container: bool) -> bool {
    above == Some(SERVICES) || key.is_some_and(|key| SINGLE.contains(&key) && !in_container)
}
