//! The sources of credentials in a site.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The source of credentials, never the credentials themselves.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct SiteCredentials {
    /// Environment variable that holds the user name.
    #[serde(default)]
    pub username_env: Option<String>,
    /// Environment variable that holds the password or token.
    #[serde(default)]
    pub password_env: Option<String>,
    /// File whose first line is `user:password`.
    #[serde(default)]
    pub file: Option<PathBuf>,
    /// A docker or podman auth file; not for a proxy.
    #[serde(default)]
    pub auth_file: Option<PathBuf>,
}
