//! The URL that a registry is reached at.

use url::Url;

/// The URL of a registry, and what is known of it.
#[derive(Debug, Clone)]
pub struct BaseUrl {
    /// The URL, with a mirror's path.
    pub url: Url,
    /// The host that a mirror replaces.
    pub origin: Option<String>,
    /// Credentials may be sent: plain http was not found by probing.
    pub trusted: bool,
    /// Its lists of tags are whole.
    pub lists_all_tags: bool,
}
