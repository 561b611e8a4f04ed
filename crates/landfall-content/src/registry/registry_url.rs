//! The URL of a registry's API.

use url::Url;

/// The URL of a registry's API, and how it was found.
#[derive(Debug, Clone)]
pub struct BaseUrl {
    /// The URL, with the path of a mirror.
    pub url: Url,
    /// The host that a mirror replaces; `None` without a mirror.
    pub origin: Option<String>,
    /// Whether credentials may be sent: not over plain http that was found by probing.
    pub trusted: bool,
    /// Whether the tag lists at this URL are complete. A caching mirror may omit tags.
    pub lists_all_tags: bool,
}
