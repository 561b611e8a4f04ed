//! A closed network of namespaces without a route out, a copied bundle, and a private registry.

use crate::support::netns::{Network, REGISTRY};
use crate::support::peers::docker_registry_config;
use crate::support::pki::Authority;
use crate::support::process::Guard;
use crate::support::{Place, World, need, run};
use std::process::Command;

const NEEDS: [&str; 7] = [
    "docker-registry",
    "skopeo",
    "nginx",
    "gzip",
    "containerd",
    "ctr",
    "curl",
];

/// The account of [`FarSide::registry_with_account`].
const ACCOUNT: [&str; 2] = ["robot", "hush 100%"];
/// The key of a site's `registry` that names the variables with [`ACCOUNT`]. [`FarSide::operator`]
/// sets the variables.
pub(super) const CREDENTIALS: &str = "credentials: {usernameEnv: U, passwordEnv: P}";

pub(super) struct FarSide {
    pub(super) network: Network,
    /// The operator's folder: `bundle.tar.zst`, and the `site.yaml` of the connected side.
    pub(super) place: Place,
    pub(super) world: World,
}

impl FarSide {
    /// Returns `None`, and counts the test as skipped, if a program or a permission is missing.
    /// `more` are programs that the test itself needs.
    pub(super) fn new(more: &[&str]) -> Option<FarSide> {
        if !need(&[&NEEDS, more].concat()) {
            return None;
        }
        let world = World::new();
        world.place.write("site.yaml", world.site(REGISTRY));
        for args in [
            &["lock", "-f", "manifest.yaml"][..],
            &["pull"],
            &["pack", "-o", "bundle.tar.zst"],
        ] {
            world
                .place
                .json(0, &[args, &["--site", "site.yaml"]].concat());
        }
        let place = Place::new();
        for name in ["bundle.tar.zst", "site.yaml"] {
            std::fs::copy(world.place.path(name), place.path(name)).unwrap();
        }
        Some(FarSide {
            network: Network::new()?,
            place,
            world,
        })
    }

    /// Writes `far.yaml`, the site of the closed network.
    pub(super) fn site(&self, text: &str) {
        self.place.write(
            "far.yaml",
            format!("apiVersion: landfall/v1\nkind: Site\n{text}"),
        );
    }

    /// A command on the operator's machine, with the site and the account.
    pub(super) fn operator(&self, args: &[&str]) -> Command {
        let mut command = self.place.command();
        command
            .args(args)
            .args(["--site", "far.yaml", "--progress", "none"]);
        command.env("U", ACCOUNT[0]).env("P", ACCOUNT[1]);
        self.network.on("operator", &command)
    }

    /// Pushes the bundle with `far.yaml`.
    pub(super) fn push(&self) {
        run(&mut self.operator(&["push", "bundle.tar.zst"]));
    }

    /// Renders a platform for the bundle.
    pub(super) fn render(&self, args: &[&str]) {
        run(&mut self.operator(&[&["render"], args, &["--bundle", "bundle.tar.zst"]].concat()));
    }

    /// Starts the registry over TLS with a certificate of `authority`. `in_tls` is added to its
    /// configuration in `http.tls`, and `beside` next to `http`.
    fn registry_over_tls(&self, authority: &Authority, in_tls: &str, beside: &str) -> Guard {
        let (certificate, key) = authority.issue(&self.place, &["172.20.0.2"]);
        let tls = format!("certificate: {certificate:?}, key: {key:?}{in_tls}");
        let config = format!("http: {{addr: \"{REGISTRY}\", tls: {{{tls}}}}}\n{beside}");
        let mut command = self.place.clean("docker-registry");
        command
            .arg("serve")
            .arg(docker_registry_config(&self.place, REGISTRY, &config));
        self.network.serve("registry", &command, REGISTRY)
    }

    /// The registry over TLS, without an account.
    pub(super) fn registry_with_authority(&self) -> (Guard, Authority) {
        let authority = Authority::new(&self.place, "corp");
        (self.registry_over_tls(&authority, "", ""), authority)
    }

    /// The registry over TLS. It requires [`ACCOUNT`] and, if `clients` is set, a client
    /// certificate that the returned authority issued.
    pub(super) fn registry_with_account(&self, clients: bool) -> (Guard, Authority) {
        let authority = Authority::new(&self.place, "corp");
        let users = run(self.place.clean("htpasswd").arg("-Bbn").args(ACCOUNT));
        let users = self.place.write("users", users);
        let accounts = format!("auth: {{htpasswd: {{realm: corp, path: {users:?}}}}}");
        let clients = if clients {
            format!(", clientcas: [{:?}]", authority.pem)
        } else {
            String::new()
        };
        (
            self.registry_over_tls(&authority, &clients, &accounts),
            authority,
        )
    }
}
