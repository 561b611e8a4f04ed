//! Values of Secrets, so that a diff can mask them.

use crate::walk::{Members, Shape, Surroundings};
use crate::yaml::Node;

pub(super) struct Secrets;

impl Shape for Secrets {
    fn is_secret(&self, members: &Members<'_>) -> bool {
        members.around.in_secrets || matches!(members.kind, "Secret" | "SecretList")
    }

    fn entry<'s>(&self, members: &Members<'s>, _value: &'s Node<'s>, below: &mut Surroundings<'s>) {
        let Some(key) = below.key else { return };
        below.secret |=
            self.is_secret(members) && matches!(key, "data" | "stringData" | "literals");
        // items of a list have no kind of their own, nor has what kustomize makes Secrets of
        below.in_secrets |=
            key == "secretGenerator" || (members.kind == "SecretList" && key == "items");
    }
}
