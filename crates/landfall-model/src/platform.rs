//! Platforms in the form `os/architecture[/variant]`.

use crate::std_tools::nearest;
use std::fmt;
use std::str::FromStr;

/// An operating system and an architecture, with an optional variant (image-index.md).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Platform {
    /// `linux`, `windows`, … (a GOOS value, or `unknown` for attestations).
    pub os: String,
    /// `amd64`, `arm64`, … (a GOARCH value, or `unknown`).
    pub architecture: String,
    /// The variant of the architecture, such as `v7` or `v8`.
    pub variant: Option<String>,
}

/// The message for a text that is not a platform, with the platform that was probably meant.
fn not_a_platform(text: &str, meant: Option<Platform>) -> String {
    let suggestion = meant.map_or_else(String::new, |meant| format!(" (did you mean {meant}?)"));
    format!(
        "'{text}' is not a platform: write os/architecture or os/architecture/variant, as in \
         linux/amd64{suggestion}"
    )
}

const SYSTEMS: [&str; 8] = [
    "linux", "windows", "darwin", "freebsd", "openbsd", "netbsd", "solaris", "unknown",
];
const ARCHITECTURES: [&str; 14] = [
    "amd64", "arm64", "arm", "386", "ppc64le", "ppc64", "s390x", "riscv64", "mips64le", "mips64",
    "loong64", "wasm", "mips", "unknown",
];

impl Platform {
    /// The platform that an index or a config names in these parts. Other names of systems and
    /// architectures are replaced by those of Go, as containerd does. Returns `None` if a part is
    /// empty or cannot be part of a platform's text.
    pub fn of_parts(os: &str, architecture: &str, variant: Option<&str>) -> Option<Platform> {
        let is_word = |text: &&str| {
            !text.is_empty()
                && text
                    .bytes()
                    .all(|byte| byte.is_ascii_graphic() && byte != b'/')
        };
        let [os, architecture] = [os, architecture].map(|part| part.trim().to_ascii_lowercase());
        let os = match &*os {
            "macos" => "darwin",
            other => other,
        };
        let (architecture, implied) = match &*architecture {
            "x86_64" | "x86-64" => ("amd64", None),
            "aarch64" => ("arm64", None),
            "armhf" => ("arm", Some("v7")),
            "armel" => ("arm", Some("v6")),
            "i386" => ("386", None),
            other => (other, None),
        };
        let variant = variant.map(str::trim).filter(is_word).or(implied);
        [os, architecture].iter().all(is_word).then(|| Platform {
            os: os.into(),
            architecture: architecture.into(),
            variant: variant.map(str::to_owned),
        })
    }

    /// Whether an image for `self` satisfies a request for `wanted`.
    ///
    /// A wanted platform without a variant accepts any variant. `arm64` and `arm64/v8` are the
    /// same, and an image for `arm` is one for `arm/v7`.
    pub fn satisfies(&self, wanted: &Platform) -> bool {
        let accepts_any = wanted.variant.is_none() || wanted.distinct_variant().is_none();
        self.os == wanted.os
            && self.architecture == wanted.architecture
            && (accepts_any || wanted.distinct_variant() == self.distinct_variant())
    }

    /// The variant, with the default one as containerd has it: some builders write it, and others
    /// leave it out.
    fn distinct_variant(&self) -> Option<&str> {
        match (&*self.architecture, self.variant.as_deref()) {
            ("arm64", Some("v8")) => None,
            ("arm", None) => Some("v7"),
            (_, variant) => variant,
        }
    }

    /// The known platform that is most similar to this one.
    fn nearest(self) -> Option<Platform> {
        Some(Platform {
            os: nearest(&self.os, SYSTEMS)?.into(),
            architecture: nearest(&self.architecture, ARCHITECTURES)?.into(),
            variant: self.variant,
        })
    }

    /// Whether the operating system or the architecture is `unknown`, as in `unknown/unknown`, the
    /// platform of attestation manifests.
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
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts: Vec<&str> = text.split('/').collect();
        let (os, architecture, variant) = match parts[..] {
            [architecture] => ("linux", architecture, None),
            [os, architecture] => (os, architecture, None),
            [os, architecture, variant] => (os, architecture, Some(variant)),
            _ => return Err(not_a_platform(text, None)),
        };
        let is_known = SYSTEMS.contains(&os) && ARCHITECTURES.contains(&architecture);
        if is_known && parts.len() > 1 && variant != Some("") {
            return Ok(Platform {
                os: os.into(),
                architecture: architecture.into(),
                variant: variant.map(str::to_owned),
            });
        }
        let meant = Platform::of_parts(os, architecture, variant).and_then(Platform::nearest);
        Err(not_a_platform(text, meant))
    }
}

crate::serde_as_text!(Platform);

/// A platform that a landfall manifest requests: `linux/amd64`, or with a question mark
/// (`linux/arm64?`) a platform that is carried if the image has it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, derive_more::Display)]
#[display("{platform}{}", if *optional { "?" } else { "" })]
pub struct PlatformRequest {
    /// The platform.
    pub platform: Platform,
    /// Whether an image may lack it.
    pub optional: bool,
}

impl From<Platform> for PlatformRequest {
    /// The platform, required.
    fn from(platform: Platform) -> PlatformRequest {
        PlatformRequest {
            platform,
            optional: false,
        }
    }
}

impl FromStr for PlatformRequest {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let platform = text.strip_suffix('?').unwrap_or(text);
        Ok(PlatformRequest {
            platform: platform.parse()?,
            optional: platform != text,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn p(text: &str) -> Platform {
        text.parse().unwrap()
    }

    #[test]
    fn a_wanted_variant_must_match_unless_it_is_the_default_one() {
        assert!(p("linux/arm64/v8").satisfies(&p("linux/arm64")));
        assert!(p("linux/arm64").satisfies(&p("linux/arm64/v8")));
        assert!(p("linux/arm/v7").satisfies(&p("linux/arm")));
        assert!(!p("linux/arm/v6").satisfies(&p("linux/arm/v7")));
        // as in indexes of Kubernetes
        assert!(p("linux/arm").satisfies(&p("linux/arm/v7")));
        assert!(!p("linux/arm").satisfies(&p("linux/arm/v6")));
        assert!(!p("linux/amd64").satisfies(&p("linux/arm64")));
    }

    #[test]
    fn other_names_of_systems_and_architectures_are_those_of_go() {
        let read = |os, architecture, variant| {
            Platform::of_parts(os, architecture, variant).map(|found| found.to_string())
        };
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(read("Linux", "x86_64", Some("")), some("linux/amd64"));
        assert_eq!(read("linux", "aarch64", Some("v8")), some("linux/arm64/v8"));
        assert_eq!(read("linux", "armhf", None), some("linux/arm/v7"));
        assert_eq!(read("linux", "arm64", Some("v8/x")), some("linux/arm64"));
        for (os, architecture) in [("", "amd64"), ("linux", ""), ("a/b", "c"), ("a b", "c")] {
            assert_eq!(read(os, architecture, None), None);
        }
    }

    #[test]
    fn an_invalid_platform_is_refused_with_the_nearest_one_or_an_example() {
        for (text, suggestion) in [
            ("linux/x86_64", " (did you mean linux/amd64?)"),
            ("linux/aarch64", " (did you mean linux/arm64?)"),
            ("linux/amd46", " (did you mean linux/amd64?)"),
            ("linus/amd64", " (did you mean linux/amd64?)"),
            ("arm64", " (did you mean linux/arm64?)"),
            ("x86_64", " (did you mean linux/amd64?)"),
            ("Linux/AMD64", " (did you mean linux/amd64?)"),
            ("macos/arm64", " (did you mean darwin/arm64?)"),
            ("linux/armhf", " (did you mean linux/arm/v7?)"),
            ("linux/amd64/", " (did you mean linux/amd64?)"),
            ("amd64/linux", "as in linux/amd64"),
            ("linux/*", "as in linux/amd64"),
            ("linux/amd64,linux/arm64", "as in linux/amd64"),
            ("linux/arm/v7/x", "as in linux/amd64"),
            ("linux", "as in linux/amd64"),
            ("linux//v7", "as in linux/amd64"),
        ] {
            let message = text.parse::<Platform>().unwrap_err();
            assert!(message.ends_with(suggestion), "{message}");
        }
    }
}
