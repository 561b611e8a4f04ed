//! Platforms as `os/architecture[/variant]`.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// An operating system and an architecture, with an optional variant (image-index.md).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Platform {
    /// `linux`, `windows`, … (a GOOS value, or `unknown` for attestations).
    pub os: String,
    /// `amd64`, `arm64`, … (a GOARCH value, or `unknown`).
    pub architecture: String,
    /// `v7`, `v8`, …
    pub variant: Option<String>,
}

/// Why a text is no platform.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is no platform: write os/architecture or os/architecture/variant, as in linux/amd64{1}"
)]
pub struct PlatformError(String, String);

const SYSTEMS: [&str; 8] = [
    "linux", "windows", "darwin", "freebsd", "openbsd", "netbsd", "solaris", "unknown",
];
const ARCHITECTURES: [&str; 14] = [
    "amd64", "arm64", "arm", "386", "ppc64le", "ppc64", "s390x", "riscv64", "mips64le", "mips64",
    "loong64", "wasm", "mips", "unknown",
];

impl Platform {
    /// Whether an image for `self` suits a request for `wanted`.
    ///
    /// A wanted platform without a variant accepts any variant; `arm64` and `arm64/v8` are the
    /// same.
    pub fn satisfies(&self, wanted: &Platform) -> bool {
        let plain = |p: &Platform| match (p.architecture.as_str(), p.variant.as_deref()) {
            ("arm64", Some("v8")) => None,
            (_, variant) => variant.map(str::to_owned),
        };
        self.os == wanted.os
            && self.architecture == wanted.architecture
            && (plain(wanted).is_none() || plain(self) == plain(wanted))
    }

    /// Whether it is `unknown/unknown`, the platform of attestation manifests.
    pub fn is_unknown(&self) -> bool {
        self.os == "unknown" || self.architecture == "unknown"
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.os, self.architecture)?;
        self.variant
            .iter()
            .try_for_each(|variant| write!(f, "/{variant}"))
    }
}

impl FromStr for Platform {
    type Err = PlatformError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts: Vec<&str> = text.split('/').collect();
        let refuse = |mend: String| Err(PlatformError(text.into(), mend));
        if !(2..=3).contains(&parts.len()) || parts.iter().any(|part| part.is_empty()) {
            return refuse(String::new());
        }
        let nearest = |word: &str, known: &[&str]| {
            let best = known.iter().max_by(|a, b| {
                strsim::jaro_winkler(word, a).total_cmp(&strsim::jaro_winkler(word, b))
            });
            best.map(|best| format!(" (did you mean {best}?)"))
                .unwrap_or_default()
        };
        if !SYSTEMS.contains(&parts[0]) {
            return refuse(nearest(parts[0], &SYSTEMS));
        }
        if !ARCHITECTURES.contains(&parts[1]) {
            return refuse(match parts[1] {
                "x86_64" | "x86-64" => " (did you mean amd64?)".into(),
                "aarch64" => " (did you mean arm64?)".into(),
                other => nearest(other, &ARCHITECTURES),
            });
        }
        Ok(Platform {
            os: parts[0].into(),
            architecture: parts[1].into(),
            variant: parts.get(2).map(|variant| (*variant).into()),
        })
    }
}

impl TryFrom<String> for Platform {
    type Error = PlatformError;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Platform> for String {
    fn from(platform: Platform) -> Self {
        platform.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn p(text: &str) -> Platform {
        text.parse().unwrap()
    }

    #[test]
    fn variants_match_as_users_mean_them() {
        assert!(p("linux/arm64/v8").satisfies(&p("linux/arm64")));
        assert!(p("linux/arm64").satisfies(&p("linux/arm64/v8")));
        assert!(p("linux/arm/v7").satisfies(&p("linux/arm")));
        assert!(!p("linux/arm/v6").satisfies(&p("linux/arm/v7")));
        assert!(!p("linux/amd64").satisfies(&p("linux/arm64")));
    }

    #[test]
    fn a_bad_platform_names_the_nearest() {
        let message = "linux/x86_64".parse::<Platform>().unwrap_err().to_string();
        assert!(message.contains("amd64"), "{message}");
        assert!("linux".parse::<Platform>().is_err());
        assert!(
            "linus/amd64"
                .parse::<Platform>()
                .unwrap_err()
                .to_string()
                .contains("linux")
        );
    }
}
