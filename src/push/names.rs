//! Rules of registries about the names of repositories.

use landfall_model::{Destination, canonical_host, is_repository_component};

/// The maximum length of `host/repository` in characters. Many clients refuse longer names
/// (distribution-spec, "Pulling manifests").
const MAX_NAME_CHARS: usize = 255;

/// Whether the host belongs to Amazon ECR, where a repository must be created before a push to it.
pub(super) fn is_ecr(registry: &str) -> bool {
    let host = registry.split(':').next().unwrap_or(registry);
    host.contains(".dkr.ecr")
        && (host.ends_with(".amazonaws.com") || host.ends_with(".amazonaws.com.cn"))
}

/// Whether the host is one of the names of Docker Hub.
pub(super) fn is_docker_hub(registry: &str) -> bool {
    canonical_host(registry) == "docker.io"
}

/// The first component of a repository: the project at Harbor, or the namespace at Docker Hub and
/// other registries.
pub(super) fn project(repository: &str) -> &str {
    repository.split('/').next().unwrap_or(repository)
}

/// The reason why this registry, or any registry, cannot have a repository of this name.
pub(super) fn fault(to: &Destination) -> Option<String> {
    let full = to.to_string();
    let length = full.chars().count();
    if length > MAX_NAME_CHARS {
        return Some(format!(
            "{full} has {length} characters, more than the maximum of {MAX_NAME_CHARS}; give it a \
             shorter path in the site, under registry.paths"
        ));
    }
    let bad = to
        .repository
        .split('/')
        .find(|component| !is_repository_component(component));
    if let Some(component) = bad {
        let why = match component {
            "" => "a component is empty".into(),
            _ if component.chars().any(char::is_uppercase) => {
                format!("'{component}' has upper case")
            }
            _ => {
                format!("'{component}' must be a-z and 0-9, separated by '.', '_', '__' or hyphens")
            }
        };
        return Some(format!(
            "{full} is not a valid repository name: {why}; give it another path in the site, under \
             registry.paths"
        ));
    }
    let components = to.repository.split('/').count();
    (is_docker_hub(&to.registry) && components != 2).then(|| {
        format!(
            "{full} has {components} components, and Docker Hub has only NAMESPACE/NAME: map it in \
             the site, under registry.paths"
        )
    })
}

/// The reason why Harbor cannot have a repository of this name.
pub(super) fn harbor_fault(to: &Destination) -> Option<String> {
    (!to.repository.contains('/')).then(|| {
        format!(
            "{to} has no project: Harbor requires PROJECT/NAME; put a project before all paths \
             with --to {}/PROJECT, or before this one in the site, under registry.paths",
            to.registry
        )
    })
}

/// The command that creates a repository at Amazon ECR.
pub(super) fn ecr_command(registry: &str, repository: &str) -> String {
    // ACCOUNT.dkr.ecr.REGION.amazonaws.com
    let region = registry.split('.').nth(3).unwrap_or("REGION");
    format!("aws ecr create-repository --region {region} --repository-name {repository}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(registry: &str, repository: &str) -> Destination {
        Destination {
            registry: registry.into(),
            repository: repository.into(),
        }
    }

    #[test]
    fn names_that_no_registry_can_have() {
        for good in ["a", "a/b/c", "a-b/c__d/e.f", "a--b/0", "localhost_5001/a"] {
            assert_eq!(fault(&place("r:5000", good)), None, "{good}");
        }
        for (bad, why) in [
            ("A/b", "upper case"),
            ("a//b", "empty"),
            ("a/-b", "'-b'"),
            ("a_-b", "'a_-b'"),
            ("a..b", "'a..b'"),
            ("a___b", "'a___b'"),
            ("a/b.", "'b.'"),
            ("ä", "'ä'"),
        ] {
            let fault = fault(&place("r:5000", bad)).unwrap_or_default();
            assert!(fault.contains(why), "{bad}: {fault}");
        }
        assert_eq!(fault(&place("r:5000", &"a".repeat(248))), None);
        assert!(
            fault(&place("r:5000", &"a".repeat(249)))
                .is_some_and(|why| why.contains("256 characters"))
        );
    }

    #[test]
    fn names_that_some_registries_cannot_have() {
        assert!(
            fault(&place("docker.io", "a/b/c")).is_some_and(|why| why.contains("3 components"))
        );
        assert_eq!(fault(&place("docker.io", "a/b")), None);
        assert!(harbor_fault(&place("h", "pause")).is_some_and(|why| why.contains("PROJECT/NAME")));
        assert_eq!(harbor_fault(&place("h", "a/b")), None);
        let ecr = "123456789012.dkr.ecr.eu-central-1.amazonaws.com";
        assert!(
            is_ecr(ecr)
                && is_ecr("1.dkr.ecr.cn-north-1.amazonaws.com.cn")
                && !is_ecr("ecr.example.com")
        );
        assert_eq!(
            ecr_command(ecr, "a/b"),
            "aws ecr create-repository --region eu-central-1 --repository-name a/b"
        );
    }
}
