//! The items that rules of `verify:` may match.

use landfall_model::ImageRef;

/// An item that rules may match, by the names that a rule may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuleSubject {
    /// An image, or a chart in a registry. Only rules without a scheme match it.
    Image(ImageRef),
    /// The URLs of a file, or of a chart in an HTTP repository. Only rules with a scheme match it,
    /// so that a rule for all images (`*`) does not include files.
    Urls(Vec<String>),
}

impl From<&ImageRef> for RuleSubject {
    fn from(image: &ImageRef) -> RuleSubject {
        RuleSubject::Image(image.clone())
    }
}
