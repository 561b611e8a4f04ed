//! `crio` and `podman`: a registries.conf that maps every upstream host to the registry, with
//! certificates, credentials, and the signatures that images need; for CRI-O also the sandbox image
//! and the proxy.

use super::systemd::{DropInForm, drop_in, only_drop_ins};
use crate::node_registry::{NodeRegistry, auth_file_of_repositories, registry_locations};
use crate::platform::{
    OutputForm, PlatformSetting, RenderPlatform, RenderRequest, RenderedConfig, SITE_CLUSTER,
};
use crate::render::{SANDBOX, locked_sandbox_image};
use crate::rendered_file::{RenderedFile, quoted_string};
use crate::signature_policy::{IMAGE_KEY, POLICY, signature_policy};
use landfall_model::{Consumer, Failure, ImageRef};

const NOT_INTO: Option<&str> = Some(
    "registries.conf is not YAML; its folder can have several files, so write this one with -o DIR",
);

pub(super) static CRIO: RenderPlatform = RenderPlatform {
    name: "crio",
    about: "CRI-O: registries.conf, certificates, account, sandbox image and proxy",
    details: "Paths in the output folder are the paths on a node.",
    settings: &[SEARCH, POLICY, IMAGE_KEY, SANDBOX, SITE_CLUSTER],
    consumer: Some(Consumer::Crio),
    writes: OutputForm::Files { not_into: NOT_INTO },
    has_proxy_part: true,
    ..RenderPlatform::new(|request| render(true, request))
};

pub(super) static PODMAN: RenderPlatform = RenderPlatform {
    name: "podman",
    about: "podman, skopeo and buildah: registries.conf, certificates and account",
    details: "Paths in the output folder are the paths on a machine; copy auth.json to \
              ~/.config/containers or to the path in REGISTRY_AUTH_FILE.",
    settings: &[SEARCH, POLICY, IMAGE_KEY],
    consumer: Some(Consumer::Podman),
    writes: OutputForm::Files { not_into: NOT_INTO },
    ..RenderPlatform::new(|request| render(false, request))
};

const SEARCH: PlatformSetting = PlatformSetting::new(
    "search",
    "HOST,...",
    "The hosts to search if the name of an image has no host",
)
.with_default("docker.io");

fn render(is_crio: bool, request: &RenderRequest<'_>) -> Result<RenderedConfig, Failure> {
    if request.target.is_none() {
        return only_drop_ins(&["crio"], DropInForm::SixVariables, request);
    }
    let registry = request.registry()?;
    registry.refuse_ipv6(if is_crio {
        "CRI-O"
    } else {
        "podman, skopeo and buildah"
    })?;
    let mut files = vec![RenderedFile::new(
        "etc/containers/registries.conf.d/50-landfall.conf",
        registries_conf(request, &registry),
    )];
    files.extend(registry.trust(&format!(
        "etc/containers/certs.d/{}",
        registry.target.registry
    )));
    let auth_file = auth_file_of_repositories(request, &registry)?;
    let has_auth_file = auth_file.is_some();
    if let Some(text) = auth_file {
        let path = if is_crio {
            "etc/crio/landfall-auth.json"
        } else {
            "auth.json"
        };
        files.push(RenderedFile::without_comments(path, text).secret(true));
    }
    if let Some((policy, attachments)) = signature_policy(request)? {
        let path = "etc/containers/policy.json";
        files.push(RenderedFile::without_comments(path, policy));
        files.push(RenderedFile::new(
            "etc/containers/registries.d/50-landfall.yaml",
            attachments,
        ));
    }
    let mut notes = Vec::new();
    if is_crio {
        let pause = locked_sandbox_image(request, "CRI-O", &mut notes)?;
        files.push(RenderedFile::new(
            "etc/crio/crio.conf.d/50-landfall.conf",
            crio_conf(pause, has_auth_file),
        ));
        files.extend(drop_in("crio", DropInForm::SixVariables, request)?);
    }
    Ok(RenderedConfig::of_files(files, notes))
}

/// Returns the file with each host and its path at the registry. The longest prefix wins, so single
/// repositories can have another path.
fn registries_conf(request: &RenderRequest<'_>, registry: &NodeRegistry<'_>) -> String {
    let hosts = request
        .settings
        .get(SEARCH.key)
        .unwrap_or_default()
        .split(',')
        .map(str::trim)
        .filter(|host| !host.is_empty())
        .map(quoted_string);
    let mut text = format!(
        "unqualified-search-registries = [{}]\n",
        hosts.collect::<Vec<_>>().join(", ")
    );
    let own = &registry.target.registry;
    let insecure = registry.is_insecure();
    if insecure {
        text += &format!(
            "\n[[registry]]\nlocation = {}\ninsecure = true\n",
            quoted_string(own)
        );
    }
    for (prefix, location) in registry_locations(request) {
        let is_plain = request.is_plain_upstream(prefix.split('/').next().unwrap_or_default());
        let [prefix, location] = [prefix, location].map(|text| quoted_string(&text));
        text += &format!("\n[[registry]]\nprefix = {prefix}\n");
        // Clients try `location` after all mirrors, so it is upstream only if that is allowed.
        // `blocked` would not help: it forbids the pull itself.
        if request.upstream_fallback() {
            text += &format!("location = {prefix}\n");
            if is_plain {
                text += "insecure = true\n";
            }
            text += "\n[[registry.mirror]]\n";
        }
        text += &format!("location = {location}\n");
        if insecure {
            text += "insecure = true\n";
        }
    }
    text
}

/// Returns the configuration of CRI-O. CRI-O pulls the sandbox image like any other image, through
/// registries.conf.
fn crio_conf(pause: Option<&ImageRef>, has_auth_file: bool) -> String {
    let mut text = "[crio.image]\n".to_owned();
    if has_auth_file {
        text += "global_auth_file = \"/etc/crio/landfall-auth.json\"\n";
    }
    if let Some(pause) = pause {
        text += &format!("pause_image = {}\n", quoted_string(&pause.to_string()));
    }
    text
}
