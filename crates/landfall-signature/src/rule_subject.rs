//! The items that rules of `verify:` may match.

use landfall_model::ImageRef;

/// An item that rules may match, by the names that a rule may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuleSubject {
    /// An image, or a chart in a registry. Only rules without a scheme match it.
    Image(ImageRef),
    /// A chart in an HTTP repository: its URL with and without the version. Only rules with a
    /// scheme match it, so that a rule for all images (`*`) does not include charts of such repositories.
    Urls(Vec<String>),
    /// A file: all URLs under which it is delivered. Only rules with a scheme match it. The file
    /// must meet the rule for each of its URLs.
    Addresses(Vec<String>),
    /// A git repository, by its name in the lock. Only rules that begin with `git+` match it.
    Git(String),
}

impl RuleSubject {
    /// The subjects for each of which a rule is chosen.
    pub(crate) fn addresses(self) -> Vec<RuleSubject> {
        match self {
            RuleSubject::Addresses(urls) => {
                let urls = urls.into_iter();
                urls.map(|url| RuleSubject::Urls(vec![url])).collect()
            }
            other => vec![other],
        }
    }
}

impl From<&ImageRef> for RuleSubject {
    fn from(image: &ImageRef) -> RuleSubject {
        RuleSubject::Image(image.clone())
    }
}
