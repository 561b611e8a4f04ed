//! Finds values of Secrets, so that a diff can mask them.

use crate::walk::{MappingContext, NodeContext, ReferenceRule};
use crate::yaml::YamlNode;

pub(super) struct SecretRule;

impl ReferenceRule for SecretRule {
    fn is_secret(&self, members: &MappingContext<'_>) -> bool {
        members.around.in_secrets || matches!(members.kind, "Secret" | "SecretList")
    }

    fn entry<'s>(
        &self,
        members: &MappingContext<'s>,
        _value: &'s YamlNode<'s>,
        child: &mut NodeContext<'s>,
    ) {
        let Some(key) = child.key else { return };
        child.secret |=
            self.is_secret(members) && matches!(key, "data" | "stringData" | "literals");
        // neither the items of a SecretList nor the entries of kustomize's `secretGenerator` have a
        // kind
        child.in_secrets |=
            key == "secretGenerator" || (members.kind == "SecretList" && key == "items");
    }
}
