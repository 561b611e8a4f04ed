//! The names by which rules of `verify:` match an item.

use landfall_model::ImageRef;

/// An item that rules may match, with the names by which they match it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleSubject {
    names: Vec<String>,
    /// Whether it is a file or a chart of an HTTP repository. Only rules with a scheme match these,
    /// so that a rule for all images (`*`) does not include them.
    has_scheme: bool,
}

impl RuleSubject {
    /// A file or a chart of an HTTP repository, with the URLs that a rule may name.
    pub fn at_urls(urls: impl IntoIterator<Item = String>) -> RuleSubject {
        RuleSubject {
            names: urls.into_iter().collect(),
            has_scheme: true,
        }
    }

    /// The names by which rules of the same kind match the item.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// Whether a rule with this pattern is about items of this kind.
    pub(crate) fn is_of_kind(&self, pattern: &str) -> bool {
        pattern.contains("://") == self.has_scheme
    }
}

impl From<&ImageRef> for RuleSubject {
    fn from(image: &ImageRef) -> RuleSubject {
        RuleSubject {
            names: vec![image.to_string(), image.name()],
            has_scheme: false,
        }
    }
}
