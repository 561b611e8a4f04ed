//! `containerd`: a hosts.toml for every upstream host, configuration snippets, and the proxy.

use super::systemd::{DropInForm, FORM, drop_in, only_drop_ins};
use crate::node_registry::{HostMirror, NodeRegistry, and_more, host_mirrors};
use crate::platform::{
    BasicCredentials, OutputForm, PlatformSetting, RenderPlatform, RenderRequest, RenderedConfig,
    SITE_CLUSTER,
};
use crate::render::{SANDBOX, sandbox_image};
use crate::rendered_file::{RenderedFile, quoted_string};
use landfall_model::{Consumer, Destination, Failure, path_prefix, split_port};

/// Selects the file with the account of the registry.
pub(super) const AUTH: PlatformSetting = PlatformSetting::new(
    "auth",
    "PLACE",
    "Where to write the account: in each hosts.toml as a header (header), or in the \
           configuration (config). Registries with a token service require config",
)
.one_of(&["header", "config"]);

pub(super) static PLATFORM: RenderPlatform = RenderPlatform {
    name: "containerd",
    about: "containerd: a hosts.toml for every upstream host, the configuration of \
            containerd, its proxy",
    details: "Paths below etc/ are the paths on a node. Add config-1.x.toml or \
              config-2.x.toml, depending on the release of containerd, to \
              /etc/containerd/config.toml, and check the result with \
              `landfall doctor`.",
    settings: &[FORM, AUTH, SANDBOX, SITE_CLUSTER],
    consumer: Some(Consumer::Containerd),
    writes: OutputForm::Files {
        not_into: Some("hosts.toml and config.toml are not YAML; write them with -o DIR"),
    },
    has_proxy_part: true,
    ..RenderPlatform::new(render)
};

fn render(request: &RenderRequest<'_>) -> Result<RenderedConfig, Failure> {
    if request.target.is_none() {
        return only_drop_ins(&["containerd"], DropInForm::of(request), request);
    }
    let registry = request.registry()?;
    let mut notes = Vec::new();
    let by_header = account_by_header(request);
    let mut files = hosts(request, &registry, by_header, FOLDER)?;
    let sandbox = sandbox_image(request, &mut notes)?;
    for release in [ContainerdRelease::One, ContainerdRelease::Two] {
        files.push(config(
            release,
            FOLDER,
            sandbox.as_ref(),
            request,
            &registry,
        )?);
    }
    files.extend(drop_in("containerd", DropInForm::of(request), request)?);
    notes.extend(unreadable(request, &registry)?);
    notes.extend(other_accounts(request, &registry, by_header)?);
    Ok(RenderedConfig::of_files(files, notes))
}

/// Whether `--set auth` puts the account into each hosts.toml.
pub(super) fn account_by_header(request: &RenderRequest<'_>) -> bool {
    request.settings.get(AUTH.key) == Some("header")
}

/// Returns the account of the registry, unless it is in each hosts.toml.
pub(super) fn account_in_config(
    request: &RenderRequest<'_>,
    registry: &NodeRegistry<'_>,
) -> Result<Option<BasicCredentials>, Failure> {
    if account_by_header(request) {
        return Ok(None);
    }
    registry.own_account()
}

/// The folder of the hosts.toml files of all hosts on a node.
pub(super) const FOLDER: &str = "/etc/containerd/certs.d";

/// Returns the folder name of a host: `quay.io`, `172.20.0.2_5000_`. It is the first name that
/// containerd looks for.
fn folder(host: &str) -> String {
    match split_port(host) {
        (host, Some(port)) => format!("{host}_{port}_"),
        (host, None) => host.to_owned(),
    }
}

/// Returns the files of all hosts below `certs_d`, such as [`FOLDER`], and the certificates that
/// they refer to by relative paths.
pub(super) fn hosts(
    request: &RenderRequest<'_>,
    registry: &NodeRegistry<'_>,
    by_header: bool,
    certs_d: &str,
) -> Result<Vec<RenderedFile>, Failure> {
    let certs_d = certs_d.trim_start_matches('/');
    let mut files = Vec::new();
    for (host, mirrors) in host_mirrors(request)? {
        let file = hosts_toml(&host, &mirrors, request, registry, by_header)?;
        files.push(file.in_folder(certs_d));
    }
    let own = folder(&registry.target.registry);
    files.extend(registry.trust(&format!("{certs_d}/{own}")));
    Ok(files)
}

/// Returns the file of `host`. containerd tries the mirrors in the order of the file and `server`
/// last. If the host has no upstream that may be used, `server` is the last mirror again.
/// containerd 1.6 rejects a file without a table `host`; the table may be empty.
fn hosts_toml(
    host: &str,
    mirrors: &[HostMirror],
    request: &RenderRequest<'_>,
    registry: &NodeRegistry<'_>,
    by_header: bool,
) -> Result<RenderedFile, Failure> {
    let upstream = uses_upstream(host, request, registry).then(|| request.upstream_url(host));
    let mut root = String::new();
    let mut tables = String::new();
    let mut secret = false;
    if let Some(upstream) = &upstream {
        root = format!("server = {}\n", quoted_string(upstream));
    }
    for (at, mirror) in mirrors.iter().enumerate() {
        let url = quoted_string(&mirror_url(mirror, registry));
        let keys = keys(mirror, registry);
        let account = if by_header {
            registry.account(&mirror.repository)?
        } else {
            None
        };
        let header = account.as_ref().map(authorization);
        secret |= header.is_some();
        tables += &format!("\n[host.{url}]\n{keys}");
        tables.extend(
            header
                .iter()
                .map(|header| format!("\n[host.{url}.header]\n{header}")),
        );
        if upstream.is_none() && at + 1 == mirrors.len() {
            root = format!("server = {url}\n{keys}");
            root.extend(header.iter().map(|header| format!("\n[header]\n{header}")));
        }
    }
    // `server` alone has the same effect, so no table needs the address as its name
    if is_bracketed(registry) && upstream.is_none() && mirrors.len() == 1 {
        "\n[host]\n".clone_into(&mut tables);
    }
    let path = format!("{}/hosts.toml", folder(host));
    Ok(RenderedFile::new(path, root + &tables).secret(secret))
}

/// Whether nodes may pull images of `host` from its upstream.
fn uses_upstream(host: &str, request: &RenderRequest<'_>, registry: &NodeRegistry<'_>) -> bool {
    request.upstream_fallback() && host != registry.target.registry && host != "_default"
}

/// Whether the registry is an IPv6 address. containerd 1.x cannot read a file with `]` in the name
/// of a table: it logs a line, ignores the hosts.toml and uses upstream.
fn is_bracketed(registry: &NodeRegistry<'_>) -> bool {
    registry.target.registry.starts_with('[')
}

/// Returns a note about the hosts whose files containerd 1.x cannot read, because they need a table
/// named after an IPv6 mirror.
pub(super) fn unreadable(
    request: &RenderRequest<'_>,
    registry: &NodeRegistry<'_>,
) -> Result<Option<String>, Failure> {
    if !is_bracketed(registry) {
        return Ok(None);
    }
    let all = host_mirrors(request)?;
    let needs_table = |host: &str, mirrors: &[HostMirror]| {
        mirrors.len() > 1 || uses_upstream(host, request, registry)
    };
    let hosts: Vec<&str> = all
        .iter()
        .filter(|(host, mirrors)| needs_table(host, mirrors))
        .map(|(host, _)| &**host)
        .collect();
    if hosts.is_empty() {
        return Ok(None);
    }
    Ok(Some(format!(
        "containerd 1.x ignores the hosts.toml of {} and pulls from upstream, because the name of \
         a table contains an IPv6 address; containerd 2 can read the file; for 1.x, give {} a host \
         name and set registry.address to that name",
        hosts.join(", "),
        registry.target.registry
    )))
}

/// The end of a note of [`other_accounts`], which applies only where pods run.
pub(super) const PULL_SECRET: &str = ", or give the pods that use it an imagePullSecret";

/// Returns notes for images that need other credentials than containerd uses for them: containerd
/// has one account per mirror (in hosts.toml), or per registry (in its configuration).
pub(super) fn other_accounts(
    request: &RenderRequest<'_>,
    registry: &NodeRegistry<'_>,
    by_header: bool,
) -> Result<Vec<String>, Failure> {
    let mut notes = Vec::new();
    if !registry.has_accounts_of_paths() {
        return Ok(notes);
    }
    for (host, mirrors) in host_mirrors(request)? {
        for mirror in &mirrors {
            let account_path = if by_header {
                &mirror.repository
            } else {
                &registry.target.prefix
            };
            let account = registry.account(account_path)?;
            let images = request.images().filter(|image| image.registry == host);
            let repositories = images.flat_map(|image| {
                let is_here = |destination: &Destination| {
                    path_prefix(&destination.repository, &image.repository)
                        == Some(mirror.prefix.as_str())
                };
                let destinations = request
                    .mapping
                    .destinations(image)
                    .into_iter()
                    .filter(is_here);
                destinations
                    .map(|destination| destination.repository)
                    .collect::<Vec<_>>()
            });
            let mut others = Vec::new();
            for repository in repositories {
                if registry.account(&repository)? != account {
                    others.push(repository);
                }
            }
            if let Some(first) = others.first() {
                let more = and_more(others.len() - 1);
                let owner = match account_path.as_str() {
                    "" => "the registry",
                    path => path,
                };
                notes.push(format!(
                    "{host}: containerd has one account for this mirror, that of {owner}; \
                     {first}{more} needs another account; allow the account of {owner} to read it \
                     too{PULL_SECRET}"
                ));
            }
        }
    }
    Ok(notes)
}

/// Returns the URL of a mirror. containerd adds `/v2` to a URL without a path. For a mirror with a
/// prefix, `keys` sets `override_path`, so the URL has to contain `/v2`.
pub(super) fn mirror_url(mirror: &HostMirror, registry: &NodeRegistry<'_>) -> String {
    match mirror.prefix.as_str() {
        "" => registry.url(),
        prefix => format!("{}/v2/{prefix}", registry.url()),
    }
}

/// Returns the keys of a mirror. No other capability may be added: containerd ignores a file with
/// an unknown capability.
fn keys(mirror: &HostMirror, registry: &NodeRegistry<'_>) -> String {
    let mut text = "capabilities = [\"pull\", \"resolve\"]\n".to_owned();
    if !mirror.prefix.is_empty() {
        text += "override_path = true\n";
    }
    let own = folder(&registry.target.registry);
    // with any of these keys, containerd tries TLS first, even on a host with plain HTTP
    if !registry.plain_http {
        if registry.ca.is_some() {
            text += &format!("ca = \"../{own}/ca.crt\"\n");
        }
        if registry.client.is_some() {
            text += &format!("client = [[\"../{own}/client.cert\", \"../{own}/client.key\"]]\n");
        }
        if registry.skip_verify {
            text += "skip_verify = true\n";
        }
    }
    text
}

fn authorization(credentials: &BasicCredentials) -> String {
    format!("Authorization = [\"Basic {}\"]\n", credentials.encoded())
}

/// What the rest of a configuration must not have.
const CONFIG_COMMENT: &str = "\
# Each table may occur only once in config.toml. Remove registry.mirrors and
# registry.configs.*.tls: beside config_path, containerd does not load its CRI plugin.
# `landfall doctor FILE.toml` checks the result.
";

/// The releases of containerd whose configurations differ.
#[derive(Clone, Copy)]
pub(super) enum ContainerdRelease {
    One,
    Two,
}

/// Returns the configuration for one release: the folder of the hosts.toml files (`hosts_folder`),
/// the sandbox image, and the credentials unless they are in hosts.toml.
pub(super) fn config(
    release: ContainerdRelease,
    hosts_folder: &str,
    sandbox: Option<&String>,
    request: &RenderRequest<'_>,
    registry: &NodeRegistry<'_>,
) -> Result<RenderedFile, Failure> {
    let (name, version, plugin) = match release {
        ContainerdRelease::One => (
            "config-1.x.toml",
            2,
            "plugins.\"io.containerd.grpc.v1.cri\"",
        ),
        ContainerdRelease::Two => (
            "config-2.x.toml",
            3,
            "plugins.\"io.containerd.cri.v1.images\"",
        ),
    };
    let mut text = format!("{CONFIG_COMMENT}version = {version}\n");
    if let Some(sandbox) = sandbox.map(|image| quoted_string(image)) {
        text += &match release {
            ContainerdRelease::One => format!("\n[{plugin}]\nsandbox_image = {sandbox}\n"),
            ContainerdRelease::Two => format!("\n[{plugin}.pinned_images]\nsandbox = {sandbox}\n"),
        };
    }
    text += &format!("\n[{plugin}.registry]\nconfig_path = \"{hosts_folder}\"\n");
    let account = account_in_config(request, registry)?;
    if let Some(BasicCredentials { username, password }) = &account {
        let host = quoted_string(&registry.target.registry);
        let user = quoted_string(username);
        let password = quoted_string(password);
        // containerd 1.x does not start if the name of a table contains `]`; an inline table works
        text += &if is_bracketed(registry) {
            format!(
                "\n[{plugin}.registry.configs]\n{host} = {{auth = {{username = {user}, \
                 password = {password}}}}}\n"
            )
        } else {
            format!(
                "\n[{plugin}.registry.configs.{host}.auth]\nusername = {user}\n\
                 password = {password}\n"
            )
        };
    }
    Ok(RenderedFile::new(name, text).secret(account.is_some()))
}
