//! Requests for a package in one version, in the syntax of `dnf install`: `name-version` or
//! `name-version-release`. An epoch may precede the version, and `.arch` may follow it.

use super::architecture::is_architecture;
use super::version::Evr;
use std::ops::Range;

/// A parsed request for a package in one version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RpmPin<'t> {
    /// The name of the package, without its version.
    pub name: &'t str,
    /// The architecture, if the request has one.
    pub arch: Option<&'t str>,
    /// The byte range of the version in the text of the request.
    pub version: Range<usize>,
}

impl<'t> RpmPin<'t> {
    /// Parses a request. Returns `None` if it has no version, or is a pattern, a capability with a
    /// version, a file, a rich dependency, or a text with variables.
    ///
    /// Names may contain dashes; versions and releases may not (`rpm-version(7)`). So the version
    /// is the last part of the text, or its last two parts. A version begins with a digit. A
    /// release may begin with a letter, as in `lp155.2.1` and `alt1`, but so does the last part of
    /// names such as `java-17-openjdk` and `dbus-1-x11`. A last part that begins with a letter
    /// counts as a release if it contains a digit and the part before it is clearly a version: that
    /// part begins with a digit and contains a dot or an epoch.
    pub fn parse(text: &'t str) -> Option<RpmPin<'t>> {
        if text.contains(['*', '?', ' ', '/', '(', '$']) {
            return None;
        }
        // only known architectures: releases contain dots too, such as `2.el9`
        let arch = text
            .rsplit_once('.')
            .map(|(_, arch)| arch)
            .filter(|arch| is_architecture(arch));
        let body = arch.map_or(text, |arch| &text[..text.len() - arch.len() - 1]);
        let last = body.rfind('-')?;
        let release = &body[last + 1..];
        let before = body[..last]
            .rfind('-')
            .filter(|dash| begins_with_digit(&body[dash + 1..]));
        let dash = if begins_with_digit(release) {
            before.unwrap_or(last)
        } else {
            let is_version = |dash: &usize| body[dash + 1..last].contains(['.', ':']);
            before.filter(|dash| is_version(dash) && is_release(release))?
        };
        if dash == 0 {
            return None;
        }
        Some(RpmPin {
            name: &body[..dash],
            arch,
            version: dash + 1..body.len(),
        })
    }

    /// Returns `evr` with an epoch if `current` has one, and with a release if `current` has one.
    pub fn written_like(current: &str, evr: &str) -> String {
        let Evr {
            epoch,
            version,
            release,
        } = Evr::parse(evr);
        let has = Evr::parse(current);
        let epoch = if current.contains(':') {
            format!("{epoch}:")
        } else {
            String::new()
        };
        let release = release
            .filter(|_| has.release.is_some())
            .map(|release| format!("-{release}"));
        format!("{epoch}{version}{}", release.unwrap_or_default())
    }

    /// Returns the upstream version in `evr`: without epoch and release.
    pub fn upstream(evr: &str) -> &str {
        Evr::parse(evr).version
    }
}

fn begins_with_digit(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit())
}

/// Whether `text` is a release rather than a word: it contains a digit, and only characters that
/// rpm allows.
fn is_release(text: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "._+~^".contains(c);
    text.chars().all(is_allowed) && text.contains(|c: char| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_and_version_are_separated() {
        for (text, name, version) in [
            ("containerd.io-1.7.24", "containerd.io", "1.7.24"),
            ("kubelet-1.33.4-150500.1.1", "kubelet", "1.33.4-150500.1.1"),
            (
                "java-17-openjdk-17.0.9.0.9-2.el9",
                "java-17-openjdk",
                "17.0.9.0.9-2.el9",
            ),
            (
                "nfs-utils-1:2.5.4-20.el9.x86_64",
                "nfs-utils",
                "1:2.5.4-20.el9",
            ),
            (
                "docker-24.0.5_ce-lp155.1.2",
                "docker",
                "24.0.5_ce-lp155.1.2",
            ),
            (
                "containerd-1.7.27-bp156.1.1.i586",
                "containerd",
                "1.7.27-bp156.1.1",
            ),
            ("libssl-0:3-alt1", "libssl", "0:3-alt1"),
        ] {
            let pin = RpmPin::parse(text).unwrap();
            assert_eq!((pin.name, &text[pin.version]), (name, version), "{text}");
        }
        for none in [
            "containerd.io",
            "nfs-utils",
            "java-17-openjdk",
            "java-17-openjdk.x86_64",
            "java-1.8.0-openjdk",
            "dbus-1-x11",
            "gcc-c++-x1",
            "kubelet-1.33.*",
            "a >= 1",
            "/usr/bin/env-1",
            "-1",
        ] {
            assert_eq!(RpmPin::parse(none), None, "{none}");
        }
    }

    #[test]
    fn a_new_version_is_written_like_the_old_one() {
        for (current, evr, written) in [
            ("1.0", "1:2.0-3", "2.0"),
            ("1.0-1", "1:2.0-3", "2.0-3"),
            ("0:1.0-1", "2.0-3", "0:2.0-3"),
            ("1:1.0", "1:2.0-3", "1:2.0"),
        ] {
            assert_eq!(RpmPin::written_like(current, evr), written);
        }
    }
}
