//! The role of a reference, by its position.

use serde::Serialize;

/// The role of a reference, which decides the meaning of a missing tag.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ReferenceRole {
    /// The `image` of a container or an image volume. Without a tag, it means `latest`.
    Container,
    /// The value of another key that is named after an image.
    Image,
    /// A reference in parts. Without a tag, the tag is set elsewhere.
    Repository,
    /// The prefix that several references share, such as `global.imageRegistry`.
    Prefix,
    /// Any other value of a document.
    #[default]
    Value,
    /// A word of a text: an argument, a script, a template.
    Text,
    /// A literal in the call of a template: `{{ image "a/b:1" }}`.
    Literal,
    /// The URL of a file or a git repository.
    Url,
}

impl ReferenceRole {
    /// Whether the position requires an image, even if the value does not look like a reference.
    pub fn is_image(self) -> bool {
        matches!(
            self,
            ReferenceRole::Container | ReferenceRole::Image | ReferenceRole::Repository
        )
    }
}
