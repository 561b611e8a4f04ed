//! Credentials of registries and proxies.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// A user name and a password. `Debug` is not implemented, so that no message prints them.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct BasicCredentials {
    pub(crate) username: String,
    pub(crate) password: String,
}

impl BasicCredentials {
    /// The value of `Authorization: Basic` (RFC 7617) and of `auth` in auth files.
    pub(crate) fn encoded(&self) -> String {
        STANDARD.encode(format!("{}:{}", self.username, self.password))
    }
}

impl From<(String, String)> for BasicCredentials {
    fn from((username, password): (String, String)) -> BasicCredentials {
        BasicCredentials { username, password }
    }
}
