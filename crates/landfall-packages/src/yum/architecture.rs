//! The architectures of RPM packages that a machine can install, and which of them it prefers.

/// For each machine architecture, the package architectures that the machine can install, the
/// preferred one first. An excerpt of dnf's own table: only the names that are in use.
const POLICIES: &[(&str, &[&str])] = &[
    ("x86_64", &["x86_64", "i686", "i586", "i486", "i386"]),
    (
        "x86_64_v2",
        &["x86_64_v2", "x86_64", "i686", "i586", "i486", "i386"],
    ),
    ("aarch64", &["aarch64"]),
    ("ppc64le", &["ppc64le"]),
    ("s390x", &["s390x", "s390"]),
    ("riscv64", &["riscv64"]),
    ("i686", &["i686", "i586", "i486", "i386"]),
    ("armv7hl", &["armv7hl", "armv6hl"]),
];

/// Whether `name` is a known architecture of packages.
pub(super) fn is_architecture(name: &str) -> bool {
    let mut all = POLICIES.iter().flat_map(|(_, all)| *all);
    name == NOARCH || all.any(|own| *own == name)
}

/// The names that images and Debian use for architectures, each with RPM's name.
const OTHER_NAMES: &[(&str, &str)] = &[
    ("amd64", "x86_64"),
    ("arm64", "aarch64"),
    ("386", "i686"),
    ("i386", "i686"),
    ("arm", "armv7hl"),
    ("armhf", "armv7hl"),
];

/// The architecture of packages that every machine can install.
pub(super) const NOARCH: &str = "noarch";

/// The architectures whose packages a machine can install, the preferred one first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Architectures(Vec<String>);

impl Architectures {
    /// Returns the architectures for a machine of the architecture `name`. If `name` is unknown,
    /// the machine can install only packages for `name` and `noarch`.
    pub fn of(name: &str) -> Architectures {
        let name = OTHER_NAMES
            .iter()
            .find(|(other, _)| *other == name)
            .map_or(name, |(_, name)| *name);
        let policy = POLICIES.iter().find(|(own, _)| *own == name);
        Architectures(policy.map_or_else(
            || vec![name.to_owned()],
            |(_, all)| all.iter().map(|name| (*name).to_owned()).collect(),
        ))
    }

    /// Returns the architecture of the machine itself.
    pub fn native(&self) -> &str {
        &self.0[0]
    }

    /// Returns all architectures whose packages can be installed, including `noarch`.
    pub fn all(&self) -> Vec<&str> {
        self.0.iter().map(String::as_str).chain([NOARCH]).collect()
    }

    /// Returns the rank of the architecture `name`, 0 for the preferred one; `None` for `noarch`.
    pub(super) fn rank(&self, name: &str) -> Option<usize> {
        match name {
            NOARCH => None,
            // an unknown architecture ranks last
            _ => Some(
                self.0
                    .iter()
                    .position(|own| own == name)
                    .unwrap_or(self.0.len()),
            ),
        }
    }

    /// Whether two packages of the same name, one for the architecture `a` and one for `b`, exclude
    /// each other. Packages for 32 bits do not exclude packages for 64 bits.
    pub(super) fn collide(a: &str, b: &str) -> bool {
        word_sizes(a) & word_sizes(b) != 0
    }
}

/// A bit for 32-bit architectures and a bit for 64-bit ones; `noarch` has both.
fn word_sizes(name: &str) -> u8 {
    match name {
        NOARCH => 0b11,
        // `s390x` is the only 64-bit architecture in use whose name does not contain 64
        name if name.contains("64") || name.starts_with("s390x") => 0b10,
        _ => 0b01,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_prefers_its_own_architecture() {
        let x86 = Architectures::of("amd64");
        assert_eq!(x86.native(), "x86_64");
        assert_eq!(
            x86.all(),
            ["x86_64", "i686", "i586", "i486", "i386", "noarch"]
        );
        assert_eq!(
            (x86.rank("x86_64"), x86.rank("i386"), x86.rank("noarch")),
            (Some(0), Some(4), None)
        );
        assert_eq!(
            Architectures::of("loongarch64").all(),
            ["loongarch64", "noarch"]
        );
        assert_eq!(Architectures::of("arm64").native(), "aarch64");
    }

    #[test]
    fn packages_for_32_and_64_bits_do_not_exclude_each_other() {
        assert!(!Architectures::collide("x86_64", "i686"));
        assert!(
            Architectures::collide("x86_64", "noarch") && Architectures::collide("i686", "i386")
        );
    }
}
