//! The zoo: every verb against the profiles of registries in `support/zoo`.

use crate::support::faults::Content;
use crate::support::need;
use crate::support::zoo::{FarSide, Profile, STEPS, Visit, names};

/// A test for each profile.
macro_rules! profiles {
    ($($test:ident: $name:literal,)*) => {
        $(#[test]
        fn $test() {
            if need(&["gzip"]) {
                let profile = Profile::read($name);
                let registry = || FarSide::own(&profile, Content::default());
                Visit::new($name, registry(), registry()).run();
            }
        })*

        #[test]
        fn every_profile_has_a_test_and_sources() {
            assert_eq!(names(), [$($name),*]);
            for name in names() {
                let profile = Profile::read(&name);
                for source in profile.sources() {
                    assert!(source.len() > 10, "{name}: {source:?} is not a source");
                }
                for step in profile.expectations() {
                    assert!(STEPS.contains(&step), "{name}: there is no step {step:?}");
                }
            }
        }
    };
}

profiles! {
    azure_container_registry: "acr",
    artifactory: "artifactory",
    artifactory_6: "artifactory-6",
    distribution_2_8: "distribution-2.8",
    distribution_3: "distribution-3",
    docker_hub: "docker-hub",
    amazon_ecr: "ecr",
    amazon_ecr_with_immutable_tags: "ecr-immutable",
    google_artifact_registry: "gar",
    github_container_registry: "ghcr",
    github_enterprise: "ghes",
    gitea: "gitea",
    gitlab: "gitlab",
    harbor: "harbor",
    nexus: "nexus",
    pulp: "pulp",
    quay: "quay",
    quay_3_8: "quay-3.8",
    zot: "zot",
}
