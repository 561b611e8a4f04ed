//! The site file that `landfall init` writes.

/// Returns a site file with the common settings as comments. `registry` is the address of the
/// private registry, if known.
pub fn starter_site(registry: Option<&str>) -> String {
    let (mark, address) = match registry {
        Some(address) => ("", address),
        None => ("# ", "172.20.0.2:5000"),
    };
    format!(
        r#"# Written by `landfall init`: the private registry and how to reach it. Name it with --site, or LANDFALL_SITE.
# `landfall help site` explains every key; `landfall schema site` prints a JSON schema for editors.
# A site contains no secrets, only their sources.
apiVersion: landfall/v1
kind: Site

# The private registry: the default of --to. quay.io/team/app is pushed to ADDRESS/team/app, unless `paths` maps it.
{mark}registry:
{mark}  address: {address}
#   ca: certs/ca.crt                  # its certificate authority, PEM; or plainHTTP: true
#   credentials: {{usernameEnv: REG_USER, passwordEnv: REG_TOKEN}}   # else the auth files of docker and podman
#   paths:
#     k8s.gcr.io: kubernetes          # k8s.gcr.io/pause:3.1 -> ADDRESS/kubernetes/pause:3.1

# The file server, for the URLs of mirrored files: they become URL/<host>/<path>.
# files: http://172.20.0.2:8080

# The proxy of landfall's own traffic. It replaces that of the environment (HTTPS_PROXY, NO_PROXY).
# proxy:
#   https: http://proxy.example.com:3128
#   ca: certs/proxy-root.pem
#   noProxy: {{installation: [172.16.0.0/12, internal.example.com]}}

# Who may sign bundles: a file of OpenSSH allowed signers. Bundles of other signers are refused.
# signers: keys/allowed_signers

# The connected side: a pull-through cache that is used instead of a registry.
# upstreams:
#   quay.io: {{mirror: "https://cache.example.com/quay", maxConcurrent: 8}}
"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Site;
    use std::path::Path;

    #[test]
    fn the_site_is_valid_as_written_and_with_all_settings_uncommented() {
        let load = |text: &str| Site::parse(Path::new("site.yaml"), text).unwrap();
        assert!(load(&starter_site(None)).registry.is_none());
        assert_eq!(
            load(&starter_site(Some("h.test/p")))
                .registry
                .unwrap()
                .address,
            "h.test/p"
        );
        let text = starter_site(None);
        // comments that are sentences are not settings
        let lines = text.lines().filter(|line| !line.ends_with('.'));
        let all: String = lines
            .map(|line| line.strip_prefix("# ").unwrap_or(line).to_owned() + "\n")
            .collect();
        let site = load(&all);
        let registry = site.registry.unwrap();
        assert!(
            registry.address == "172.20.0.2:5000" && registry.credentials.is_some(),
            "{all}"
        );
        assert!(
            site.proxy.is_some() && site.signers.is_some() && site.upstreams.len() == 1,
            "{all}"
        );
    }
}
