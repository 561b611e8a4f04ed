//! The names of the cluster, and the repository of its images.

use crate::error::RenderError;
use crate::request::RenderRequest;
use crate::settings::PlatformSetting;
use landfall_model::ImageRef;

/// The upstream repository of TKG's images.
pub(super) const SOURCE: PlatformSetting = PlatformSetting {
    key: "source",
    value_name: "REPOSITORY",
    help: "The upstream repository of TKG's images",
    default: Some("projects.registry.vmware.com/tkg"),
    choices: &[],
};

/// The names of the cluster.
pub(super) struct ClusterNames<'n> {
    pub(super) cluster: &'n str,
    pub(super) namespace: &'n str,
}

/// The repository from which TKG pulls its images.
pub(super) struct TkgRepository {
    /// The repository without a scheme: `host[:port]/path`.
    pub(super) name: String,
    pub(super) skip_verify: bool,
    /// The certificates of its authority; empty if the site has none.
    pub(super) ca: String,
    pub(super) notes: Vec<String>,
}

impl TkgRepository {
    /// Returns the repository of the site.
    pub(super) fn of(request: &RenderRequest<'_>) -> Result<TkgRepository, RenderError> {
        let registry = request.registry()?;
        if registry.plain_http {
            let why = "TKG pulls images only over https; give the registry a certificate, and add \
                       registry.ca to the site";
            return Err(RenderError::Site(why.into()));
        }
        let source = request.settings.need(SOURCE.key)?;
        let pause: ImageRef =
            format!("{source}/pause")
                .parse()
                .map_err(|_| RenderError::Value {
                    key: SOURCE.key.into(),
                    value: source.into(),
                    why: "it must be a repository, such as projects.registry.vmware.com/tkg".into(),
                })?;
        // TKG appends `/pause` and other names to one repository, so the repository of `pause`
        // shows the prefix
        let destinations = request.mapping.destinations(&pause);
        let Some(destination) = destinations.first() else {
            return Err(RenderError::Site(format!(
                "{pause} has no destination; change registry.paths"
            )));
        };
        let name = format!("{}/{}", destination.registry, destination.repository);
        let name = name.strip_suffix("/pause").ok_or_else(|| {
            let why = format!(
                "TKG appends image names to one repository, and {name} does not end in /pause; \
                 change registry.paths"
            );
            RenderError::Site(why)
        })?;
        let mut notes = Vec::new();
        // without a lock, it is unknown which images the registry has
        let has_images = request.images().next().is_some();
        if has_images && !request.images().any(|image| image.name() == pause.name()) {
            notes.push(format!(
                "the lock has no {}, which every node pulls",
                pause.name()
            ));
        }
        if registry.has_account() || registry.has_accounts_of_paths() {
            notes.push(
                "TKG does not support an account for the registry: nodes pull without one".into(),
            );
        }
        let ca = registry.ca.clone().unwrap_or_default();
        if name.starts_with('[') && (registry.skip_verify || !ca.is_empty()) {
            let why = "containerd on TKG's machines does not start if the name of a table contains \
                       an IPv6 address, and the TLS settings of the registry need such a table; \
                       give the registry a name, and write the name as registry.address";
            return Err(RenderError::Site(why.into()));
        }
        Ok(TkgRepository {
            name: name.to_owned(),
            skip_verify: registry.skip_verify,
            ca,
            notes,
        })
    }

    /// Returns the host and port of the registry.
    pub(super) fn host(&self) -> &str {
        self.name.split('/').next().unwrap_or(&self.name)
    }

    /// Returns the TLS settings of containerd for the registry, in the form that TKG itself writes.
    pub(super) fn trust(&self) -> Option<String> {
        let host = self.host();
        let key = match (self.skip_verify, self.ca.is_empty()) {
            (true, _) => "insecure_skip_verify = true".to_owned(),
            (false, false) => format!("ca_file = \"{}\"", self.ca_path()),
            (false, true) => return None,
        };
        Some(format!(
            "[plugins.\"io.containerd.grpc.v1.cri\".registry.configs.\"{host}\".tls]\\n  {key}\\n"
        ))
    }

    /// Returns the path of the registry's certificate authority on machines.
    pub(super) fn ca_path(&self) -> String {
        format!("/etc/containerd/{}.crt", self.host())
    }
}
