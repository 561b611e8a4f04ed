//! `dockerRepository` of Kubermatic (KKP): a repository whose tag is KKP's own version.

use crate::occurrence::ReferenceRole;
use crate::walk::{MappingContext, NodeContext, ReferenceRule};
use crate::yaml::YamlNode;

pub(super) struct KubermaticRule;

impl ReferenceRule for KubermaticRule {
    fn entry<'s>(
        &self,
        _members: &MappingContext<'s>,
        _value: &'s YamlNode<'s>,
        child: &mut NodeContext<'s>,
    ) {
        if child.key == Some("dockerRepository") {
            child.role = ReferenceRole::Repository;
        }
    }
}
