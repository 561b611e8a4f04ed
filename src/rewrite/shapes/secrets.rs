//! Values of Secrets, so that a diff can mask them.

use crate::rewrite::walk::{Members, Shape, Surroundings};
use crate::rewrite::yaml::Node;

pub(super) struct Secrets;

impl Shape for Secrets {
    fn entry<'s>(&self, members: &Members<'s>, _value: &'s Node<'s>, below: &mut Surroundings<'s>) {
        below.secret |= members.kind == "Secret" && matches!(below.key, Some("data" | "stringData"));
    }
}
