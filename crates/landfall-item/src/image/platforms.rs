//! Selects the children of an index by platform.

use crate::resolver::ResolveError;
use landfall_model::{ChildManifest, Digest, Platform, PlatformRequest};
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

impl MissingPlatforms {
    fn new(missing: &[&Platform], has: &[&Platform]) -> MissingPlatforms {
        let [missing, has] =
            [missing, has].map(|all| all.iter().map(ToString::to_string).collect());
        MissingPlatforms { missing, has }
    }
}

/// The requested platforms that an image has, and the optional ones that it lacks.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ChosenPlatforms {
    /// Empty means all.
    pub platforms: Vec<Platform>,
    pub lacks: Vec<Platform>,
}

/// Chooses from the platforms `has` of an image those that are requested. If `has` is empty, the
/// platforms of the image are not known, and it counts as having all of them. Fails if a required
/// platform is missing, or if the image has none of the requested ones.
pub(super) fn choose_platforms(
    has: &[&Platform],
    requested: &[PlatformRequest],
) -> Result<ChosenPlatforms, ResolveError> {
    let (there, lacking): (Vec<_>, Vec<_>) = requested.iter().partition(|request| {
        has.is_empty() || has.iter().any(|own| own.satisfies(&request.platform))
    });
    let platforms = |requests: Vec<&PlatformRequest>| {
        let platforms = requests.into_iter().map(|request| request.platform.clone());
        platforms.collect::<Vec<_>>()
    };
    let required = lacking.iter().filter(|request| !request.optional);
    let required: Vec<&Platform> = required.map(|request| &request.platform).collect();
    if !required.is_empty() {
        let missing = MissingPlatforms::new(&required, has);
        let why = match &missing.has[..] {
            [only] => format!(
                "it is only for {only}, not for {}",
                missing.missing.join(", ")
            ),
            _ => missing.to_string(),
        };
        let help = "give this image its own `platforms:`, or mark a platform that images may lack \
                    with `?`";
        return Err(format!("{why}; {help}").into());
    }
    if there.is_empty() && !requested.is_empty() {
        let has: Vec<String> = has.iter().map(ToString::to_string).collect();
        let why = format!("it is only for {}", has.join(", "));
        return Err(ResolveError::other_platforms(why));
    }
    Ok(ChosenPlatforms {
        platforms: platforms(there),
        lacks: platforms(lacking),
    })
}

/// The known platforms of the children of an index, sorted.
pub(super) fn known_platforms(children: &[ChildManifest]) -> Vec<&Platform> {
    let has: BTreeSet<&Platform> = children
        .iter()
        .filter_map(|child| child.platform.as_ref())
        .filter(|platform| !platform.is_unknown())
        .collect();
    has.into_iter().collect()
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
    let has = known_platforms(children);
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
    let missing: Vec<&Platform> = requested
        .iter()
        .filter(|requested| !has.iter().any(|platform| platform.satisfies(requested)))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(MissingPlatforms::new(&missing, has))
}

#[cfg(test)]
mod tests {
    use super::*;
    use landfall_model::{Descriptor, media_type};

    fn child(name: &str, platform: Option<&str>, attests: Option<&str>) -> ChildManifest {
        ChildManifest {
            descriptor: Descriptor::new(
                Digest::sha256(name.as_bytes()),
                1,
                media_type::OCI_MANIFEST,
            ),
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
    fn an_optional_platform_may_be_missing_but_not_all_of_them() {
        let choose = |has: &[&str], requested: &[&str]| {
            let has: Vec<Platform> = has.iter().map(|text| text.parse().unwrap()).collect();
            let has: Vec<&Platform> = has.iter().collect();
            let requested: Vec<_> = requested.iter().map(|text| text.parse().unwrap()).collect();
            choose_platforms(&has, &requested).map(|chosen| {
                [chosen.platforms, chosen.lacks].map(|all| {
                    all.iter()
                        .map(ToString::to_string)
                        .collect::<Vec<_>>()
                        .join(" ")
                })
            })
        };
        let both = ["linux/amd64", "linux/arm64?"];
        let chosen = |has: &[&str]| choose(has, &both).unwrap();
        assert_eq!(chosen(&["linux/amd64"]), ["linux/amd64", "linux/arm64"]);
        assert_eq!(
            chosen(&["linux/amd64", "linux/arm64/v8"]),
            ["linux/amd64 linux/arm64", ""]
        );
        // nothing is known of an artifact
        assert_eq!(chosen(&[]), ["linux/amd64 linux/arm64", ""]);
        let error = choose(&["linux/arm64"], &both).unwrap_err();
        assert!(!error.is_for_other_platforms, "{error}");
        assert!(
            error
                .message
                .starts_with("it is only for linux/arm64, not for linux/amd64; "),
            "{error}"
        );
        let error = choose(&["windows/amd64"], &["linux/amd64?", "linux/arm64?"]).unwrap_err();
        assert!(error.is_for_other_platforms, "{error}");
        assert_eq!(error.message, "it is only for windows/amd64");
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
