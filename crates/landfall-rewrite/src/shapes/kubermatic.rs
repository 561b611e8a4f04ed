//! `dockerRepository` of Kubermatic (KKP): a repository whose tag is the version of what reads it.

use crate::role::Role;
use crate::walk::{Members, Shape, Surroundings};
use crate::yaml::Node;

pub(super) struct Kubermatic;

impl Shape for Kubermatic {
    fn entry<'s>(
        &self,
        _members: &Members<'s>,
        _value: &'s Node<'s>,
        below: &mut Surroundings<'s>,
    ) {
        if below.key == Some("dockerRepository") {
            below.role = Role::Repository;
        }
    }
}
