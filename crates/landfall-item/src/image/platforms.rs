//! Selects the children of an index by platform.

use landfall_model::{ChildManifest, Digest, Platform};
use std::collections::BTreeSet;

/// Platforms that were requested and that an image does not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("it has no {}, only {}", .missing.join(" and no "), .has.join(", "))]
pub struct MissingPlatforms {
    /// The requested platforms that the image does not have.
    pub missing: Vec<String>,
    /// The platforms that the image has.
    pub has: Vec<String>,
}

/// Selects the children for `platforms`, or all of them if `platforms` is empty: children that
/// satisfy one of the platforms, children without a known platform (nested indexes and artifacts),
/// and the attestations of all these. If any child has a known platform, fails for a requested
/// platform that no child satisfies.
pub(super) fn select_children<'a>(
    children: &'a [ChildManifest],
    platforms: &[Platform],
) -> Result<Vec<&'a ChildManifest>, MissingPlatforms> {
    if platforms.is_empty() {
        return Ok(children.iter().collect());
    }
    let has: BTreeSet<&Platform> = children
        .iter()
        .filter_map(|child| child.platform.as_ref())
        .collect();
    let has: Vec<&Platform> = has
        .into_iter()
        .filter(|platform| !platform.is_unknown())
        .collect();
    if !has.is_empty() {
        check_platforms(&has, platforms)?;
    }
    let selected: BTreeSet<&Digest> = children
        .iter()
        .filter(|child| match &child.platform {
            Some(platform) if !platform.is_unknown() => platforms
                .iter()
                .any(|requested| platform.satisfies(requested)),
            _ => child.attests.is_none(),
        })
        .map(|child| &child.descriptor.digest)
        .collect();
    // BuildKit lists an attestation as a child with the platform `unknown/unknown`
    let with_attestations = children.iter().filter(|child| {
        selected.contains(&child.descriptor.digest)
            || child
                .attests
                .as_ref()
                .is_some_and(|subject| selected.contains(subject))
    });
    Ok(with_attestations.collect())
}

/// Checks that each of the platforms `requested` is satisfied by one of `has`.
pub(super) fn check_platforms(
    has: &[&Platform],
    requested: &[Platform],
) -> Result<(), MissingPlatforms> {
    let missing: Vec<String> = requested
        .iter()
        .filter(|requested| !has.iter().any(|platform| platform.satisfies(requested)))
        .map(Platform::to_string)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(MissingPlatforms {
        missing,
        has: has.iter().map(ToString::to_string).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use landfall_model::{Descriptor, media_type};

    fn child(name: &str, platform: Option<&str>, attests: Option<&str>) -> ChildManifest {
        ChildManifest {
            descriptor: Descriptor {
                digest: Digest::sha256(name.as_bytes()),
                size: 1,
                media_type: media_type::OCI_MANIFEST.into(),
            },
            platform: platform.map(|platform| platform.parse().unwrap()),
            attests: attests.map(|of| Digest::sha256(of.as_bytes())),
        }
    }

    fn kept(
        children: &[ChildManifest],
        platforms: &[&str],
    ) -> Result<Vec<usize>, MissingPlatforms> {
        let platforms: Vec<Platform> = platforms
            .iter()
            .map(|platform| platform.parse().unwrap())
            .collect();
        let kept = select_children(children, &platforms)?;
        Ok(children
            .iter()
            .enumerate()
            .filter(|(_, child)| kept.contains(child))
            .map(|(at, _)| at)
            .collect())
    }

    #[test]
    fn platforms_choose_children_and_their_attestations() {
        let children = [
            child("amd", Some("linux/amd64"), None),
            child("arm", Some("linux/arm64/v8"), None),
            child("att-amd", Some("unknown/unknown"), Some("amd")),
            child("att-arm", Some("unknown/unknown"), Some("arm")),
            child("artifact", None, None),
        ];
        assert_eq!(kept(&children, &[]), Ok(vec![0, 1, 2, 3, 4]));
        assert_eq!(kept(&children, &["linux/amd64"]), Ok(vec![0, 2, 4]));
        assert_eq!(kept(&children, &["linux/arm64"]), Ok(vec![1, 3, 4]));
        let error = kept(&children, &["linux/amd64", "linux/s390x"])
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("no linux/s390x, only linux/amd64, linux/arm64/v8"),
            "{error}"
        );
    }
}
