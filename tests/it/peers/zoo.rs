//! Real registries beside their profiles in the zoo: the same content and verbs have the outcome
//! that the profile expects, and the registry answers probes as the profile says.

use crate::support::gitea::{ACCOUNT, Gitea};
use crate::support::peers::{Server, distribution, docker_registry, zot};
use crate::support::programs::{LargeGoProgram, go_install};
use crate::support::pulp::{self, Pulp};
use crate::support::zoo::{FarSide, Visit, compare};
use crate::support::{Place, need};

/// zot without extensions, which takes minutes to build.
const ZOT: LargeGoProgram = LargeGoProgram {
    variable: "LANDFALL_ZOT",
    module: "zotregistry.dev/zot/v2@v2.1.20",
    path: "cmd/zot",
    go: "1.26.3",
    replace: "",
    experiment: "jsonv2",
};

fn real(server: Server) -> FarSide {
    FarSide::real(server.address.clone(), None, server)
}

/// Compares the probes and runs all verbs, each with a new registry.
fn prove(profile: &str, registry: impl Fn() -> FarSide) {
    compare(profile, &registry());
    Visit::new(profile, registry(), registry()).run();
}

#[test]
fn docker_registry_is_as_its_profile() {
    if need(&["docker-registry", "gzip"]) {
        prove("distribution-2.8", || real(docker_registry()));
    }
}

#[test]
fn distribution_3_is_as_its_profile() {
    if !need(&["gzip"]) {
        return;
    }
    let module = "github.com/distribution/distribution/v3/cmd/registry@v3.0.0";
    if let Some(program) = go_install(module) {
        prove("distribution-3", || real(distribution(&program)));
    }
}

#[test]
fn zot_is_as_its_profile() {
    if !need(&["gzip"]) {
        return;
    }
    if let Some(program) = ZOT.find() {
        prove("zot", || real(zot(&program)));
    }
}

#[test]
fn gitea_is_as_its_profile() {
    if !need(&["gzip"]) {
        return;
    }
    // the first component of a repository is an account, which must exist
    let owners = ["team", "files", "landfall"];
    let start = || {
        let place = Place::new();
        let gitea = Gitea::start(&place, &owners)?;
        let address = gitea.address.to_string();
        Some(FarSide::real(address, Some(ACCOUNT), (gitea, place)))
    };
    if let (Some(first), Some(down), Some(other)) = (start(), start(), start()) {
        compare("gitea", &first);
        Visit::new("gitea", down, other).run();
    }
}

#[test]
fn pulp_is_as_its_profile() {
    if !need(&["gzip"]) {
        return;
    }
    let start = || {
        let pulp = Pulp::start()?;
        Some(FarSide::real(
            pulp.address.to_string(),
            Some(pulp::ACCOUNT),
            pulp,
        ))
    };
    if let (Some(first), Some(down), Some(other)) = (start(), start(), start()) {
        compare("pulp", &first);
        Visit::new("pulp", down, other).run();
    }
}
