//! The role of a reference: what the place where it stands says about it.

use serde::Serialize;

/// The role of a reference. It decides what a missing tag means.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The `image` of a container or of an image volume: no tag means `latest`.
    Container,
    /// Another key that is named after an image.
    Image,
    /// A reference in parts; where it has no tag, the tag is set elsewhere.
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
    /// A URL.
    Url,
}

impl Role {
    /// Whether what stands there is an image, whatever it looks like.
    pub fn is_image(self) -> bool {
        matches!(self, Role::Container | Role::Image | Role::Repository)
    }
}
