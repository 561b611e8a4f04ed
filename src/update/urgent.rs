//! Versions that are used before their minimum age: `--urgent NAME=VERSION`.

use std::str::FromStr;

/// A version of a variable, item or list that need not wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UrgentVersion {
    /// The name of the variable, item or list, as the report of `update` shows it.
    name: String,
    /// The version, or the digest of a list or of a tag that moved.
    version: String,
}

impl UrgentVersion {
    pub(crate) fn is(&self, name: &str, version: &str) -> bool {
        self.name == name && self.version == version
    }
}

impl std::fmt::Display for UrgentVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}={}", self.name, self.version)
    }
}

impl FromStr for UrgentVersion {
    type Err = String;

    fn from_str(text: &str) -> Result<UrgentVersion, String> {
        match text.rsplit_once('=') {
            Some((name, version)) if !name.is_empty() && !version.is_empty() => Ok(UrgentVersion {
                name: name.to_owned(),
                version: version.to_owned(),
            }),
            _ => Err("write the name and the version, as in kubernetes=v1.33.6".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_urgent_version_has_a_name_and_a_version() {
        let urgent: UrgentVersion = "quay.io/a/b=v1.0.1".parse().unwrap();
        assert!(urgent.is("quay.io/a/b", "v1.0.1") && !urgent.is("quay.io/a/b", "v1.0.2"));
        assert_eq!(urgent.to_string(), "quay.io/a/b=v1.0.1");
        for bad in ["a", "a=", "=1", ""] {
            assert!(bad.parse::<UrgentVersion>().is_err(), "{bad}");
        }
    }
}
