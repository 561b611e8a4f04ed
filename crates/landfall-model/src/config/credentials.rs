//! Where a site says that secrets come from.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Where a secret comes from. Never the secret itself.
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
    /// A docker or podman auth file.
    #[serde(default)]
    pub auth_file: Option<PathBuf>,
}
