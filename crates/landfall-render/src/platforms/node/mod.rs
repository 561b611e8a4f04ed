//! `node`: a script that turns a machine into a node for kubeadm, and the same as data for
//! cloud-init and Ignition.

mod node_files;

use self::node_files::{NodeFiles, chosen_files};
use super::containerd::{
    AUTH, ContainerdRelease, FOLDER, account_by_header, config, hosts, other_accounts, unreadable,
};
use super::systemd::{DropInForm, drop_in};
use super::yum::{MachinePackages, PACKAGE_SET};
use crate::kubernetes_objects::document;
use crate::node_registry::{read_input, split_certificates};
use crate::platform::{
    InputFlag, OutputForm, PlatformInput, PlatformSetting, RenderPlatform, RenderRequest,
    RenderedConfig, SITE_CLUSTER, wrong_value,
};
use crate::proxy::no_proxy_failure;
use crate::render::{SANDBOX, locked_sandbox_image, sandbox_image};
use crate::rendered_file::RenderedFile;
use crate::signature_policy::PACKAGES_KEY;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use landfall_item::LockedPackageSet;
use landfall_model::report::shell_word;
use landfall_model::{AddressRange, Consumer, DEFAULT_SERVICES, Failure, extend_distinct};
use serde_json::json;
use std::fmt::Write as _;
use std::net::IpAddr;

const KUBERNETES: PlatformSetting = PlatformSetting::new(
    "kubernetes",
    "VERSION",
    "The version of kubelet, kubeadm and kubectl, if the lock has several",
);

const INTERFACE: PlatformSetting = PlatformSetting::new(
    "interface",
    "NAME",
    "The interface over which the service network gets a route, for a node without a \
           default route",
);

const SERVICE_CIDR: PlatformSetting = PlatformSetting::new(
    "service-cidr",
    "CIDR[,CIDR]",
    "The service network, or one of IPv4 and one of IPv6 [default: serviceCIDR of the site's \
           cluster, else 10.96.0.0/12]",
);

const NAMESERVER: PlatformSetting = PlatformSetting::new(
    "nameserver",
    "ADDRESS",
    "The name server for /etc/resolv.conf if that file has none; without one, CoreDNS does \
           not start",
);

const BRIDGE: PlatformSetting = PlatformSetting::new(
    "bridge",
    "CIDR",
    "The range of this node's pods, for a network by the CNI plugin bridge: it needs no image \
           and no default route",
);

const POD_ROUTES: PlatformSetting = PlatformSetting::new(
    "pod-routes",
    "CIDR@ADDRESS,...",
    "With `bridge`, for each other node the range of its pods and its address",
);

const PROXY: PlatformSetting =
    PlatformSetting::new("proxy", "WORD", "Whether containerd uses the site's proxy")
        .one_of(&["off", "on"]);

const CONTAINERD_CONFIG: PlatformInput = PlatformInput {
    name: "containerd-config",
    flag: InputFlag::Long,
    value_name: "FILE",
    help: "Tables to add to the config.toml of containerd",
};

/// The part of the script that is the same for every site.
const STEPS: &str = include_str!("install.sh");

pub(super) static PLATFORM: RenderPlatform = RenderPlatform {
    name: "node",
    about: "A node for kubeadm: an install script with everything from packages to \
            containerd's configuration, and the same for cloud-init and Ignition",
    details: "Run install.sh as root on the machine; `sh install.sh --help` lists its \
              options. It installs the files of the lock by their checksums from the \
              site's file server, or from a folder of `landfall export files`. A second \
              run does only what is missing.",
    inputs: &[CONTAINERD_CONFIG, PACKAGES_KEY],
    settings: &[
        KUBERNETES,
        INTERFACE,
        SERVICE_CIDR,
        NAMESERVER,
        BRIDGE,
        POD_ROUTES,
        PROXY,
        AUTH,
        SANDBOX,
        PACKAGE_SET,
        SITE_CLUSTER,
    ],
    consumer: Some(Consumer::Containerd),
    writes: OutputForm::Files {
        not_into: Some("a script is a separate file; write it with -o DIR"),
    },
    needs_registry: false,
    ..RenderPlatform::new(render)
};

fn render(request: &RenderRequest<'_>) -> Result<RenderedConfig, Failure> {
    let mut notes = Vec::new();
    let script = install_script(request, &mut notes)?;
    Ok(RenderedConfig::of_files(
        vec![
            cloud_init(&script, request),
            ignition(&script, request),
            script,
        ],
        notes,
    ))
}

/// Returns the script.
fn install_script(
    request: &RenderRequest<'_>,
    notes: &mut Vec<String>,
) -> Result<RenderedFile, Failure> {
    let NodeFiles {
        items,
        architectures,
        containerd,
        missing,
    } = chosen_files(request, KUBERNETES.key)?;
    let network = Network::of(request)?;
    let packages = MachinePackages::of(request)?;
    let apt = PackageInstall::of(&packages, "apt", LockedPackageSet::is_apt, notes);
    let yum = PackageInstall::of(&packages, "yum", LockedPackageSet::is_yum, notes);
    if !missing.is_empty() {
        notes.push(format!(
            "the lock has no files for {}: the machine needs them from its packages",
            missing.join(", ")
        ));
    }
    if request.file_server().is_none() {
        notes.push(
            "the site has no `files`: run install.sh with --from and a URL or a folder of \
             `landfall export files`"
                .into(),
        );
    }
    let [one, two] = containerd_configs(request, notes)?;
    let files = configuration(request, &network, notes)?;
    let certificates = site_certificates(request)?;
    let secret = one.secret || files.iter().any(|file| file.secret);

    let mut text = "#!/bin/sh\n# Sets up this machine as a node for kubeadm; --help explains it.\n\
                    set -eu\n\n"
        .to_owned();
    for (name, value) in [
        ("FILES", request.file_server().unwrap_or_default()),
        ("ARCHITECTURES", &*architectures.join(" ")),
        ("CONTAINERD", containerd.as_deref().unwrap_or_default()),
        ("CONFIG_MODE", &*format!("{:04o}", one.mode)),
        ("APT_PACKAGES", &*apt.requested),
        ("YUM_PACKAGES", &*yum.requested),
        ("YUM_MODULES", &*yum.modules),
        ("INTERFACE", network.interface.unwrap_or_default()),
        ("SERVICE_CIDRS", &*network.service_cidrs.join(" ")),
        ("NAMESERVER", network.nameserver.unwrap_or_default()),
        ("POD_ROUTES", &*network.pod_routes.join(" ")),
    ] {
        let _ = writeln!(text, "{name}={}", shell_word(value));
    }
    text += "\n# name, kind, target, architecture, SHA-256, path at the file server\n";
    text += &function("items", [print_text(&items)]);
    text += &function("sysctls", [print_text(&network.sysctls())]);
    text += &function(
        "site_certificates",
        certificates.iter().map(|pem| print_text(pem)),
    );
    let trust = certificates.iter().enumerate().map(|(at, pem)| {
        let command = format!("file \"$1/landfall-site-{}.$2\" 0644", at + 1);
        here_document(&command, pem)
    });
    text += &function("site_trust", trust);
    let sources = |files: &[RenderedFile]| {
        let each = files
            .iter()
            .map(|file| written(file, "source_file", request));
        each.collect::<Vec<_>>()
    };
    text += &function("apt_sources", sources(&apt.files));
    text += &function("yum_sources", sources(&yum.files));
    text += &function("containerd_1", [print_text(&headed(one, request).text)]);
    text += &function("containerd_2", [print_text(&headed(two, request).text)]);
    let files = files.iter().map(|file| written(file, "file", request));
    text += &function("configuration", files);
    text += STEPS;
    Ok(RenderedFile::new("install.sh", text)
        .mode(0o755)
        .secret(secret))
}

/// The path of the script on a new machine.
const SCRIPT: &str = "/var/lib/landfall/install.sh";

/// Returns the user data that writes the script to a new machine and runs it.
fn cloud_init(script: &RenderedFile, request: &RenderRequest<'_>) -> RenderedFile {
    let data = json!({
        "write_files": [{
            "path": SCRIPT,
            "permissions": "0700",
            "content": headed(script.clone(), request).text,
        }],
        // the image of the machine may have files that the script has to replace
        "runcmd": [["sh", SCRIPT, "--replace"]],
    });
    RenderedFile::new(
        "cloud-init.yaml",
        format!("#cloud-config\n{}", document(&data)),
    )
    .secret(script.secret)
}

/// Returns the same for Ignition, which Flatcar and Fedora `CoreOS` have in place of cloud-init. If
/// the script fails, it runs again at the next start.
fn ignition(script: &RenderedFile, request: &RenderRequest<'_>) -> RenderedFile {
    let text = STANDARD.encode(headed(script.clone(), request).text);
    let done = "/var/lib/landfall/installed";
    let unit = format!(
        "[Unit]\nDescription=Sets up this machine as a node for kubeadm\n\
         Wants=network-online.target\nAfter=network-online.target\n\
         ConditionPathExists=!{done}\n\n\
         [Service]\nType=oneshot\nRemainAfterExit=yes\n\
         ExecStart=/bin/sh {SCRIPT} --replace\nExecStartPost=/bin/touch {done}\n\n\
         [Install]\nWantedBy=multi-user.target\n"
    );
    let file = json!({
        "path": SCRIPT,
        "mode": 0o700,
        "overwrite": true,
        "contents": {"source": format!("data:;base64,{text}")},
    });
    let unit = json!({"name": "landfall-install.service", "enabled": true, "contents": unit});
    let config = json!({
        "ignition": {"version": "3.3.0"},
        "storage": {"files": [file]},
        "systemd": {"units": [unit]},
    });
    RenderedFile::without_comments("ignition.json", format!("{config:#}\n")).secret(script.secret)
}

/// The packages that the script installs with apt or dnf, and the files of their sources.
#[derive(Default)]
struct PackageInstall {
    /// The names, separated by blanks.
    requested: String,
    /// The module streams that are enabled before, separated by blanks.
    modules: String,
    files: Vec<RenderedFile>,
}

impl PackageInstall {
    fn of(
        packages: &MachinePackages<'_>,
        system: &str,
        suitable: fn(&LockedPackageSet) -> bool,
        notes: &mut Vec<String>,
    ) -> PackageInstall {
        let machines = format!("machines with {system}");
        let mut files = packages.source_files(&machines, suitable, notes);
        if files.is_empty() {
            return PackageInstall::default();
        }
        // dnf.conf belongs to the distribution; the script names the folder of the sources to dnf
        files.retain(|file| file.path != "etc/dnf/dnf.conf");
        PackageInstall {
            requested: packages.words(suitable, |set| &set.install),
            modules: packages.words(suitable, |set| &set.modules),
            files,
        }
    }
}

/// The settings for machines without a default route or a name server.
struct Network<'r> {
    interface: Option<&'r str>,
    /// The ranges of services: one, or one of each family.
    service_cidrs: Vec<&'r str>,
    nameserver: Option<&'r str>,
    /// The range of the node's pods, if a bridge is their network.
    pods: Option<&'r str>,
    /// `CIDR@ADDRESS`: the ranges of other nodes' pods, and the addresses of these nodes.
    pod_routes: Vec<&'r str>,
}

impl<'r> Network<'r> {
    fn of(request: &'r RenderRequest<'_>) -> Result<Network<'r>, Failure> {
        let services = request
            .settings
            .get(SERVICE_CIDR.key)
            .or_else(|| {
                request
                    .site?
                    .service_cidr(request.settings.get(SITE_CLUSTER.key))
            })
            .unwrap_or(DEFAULT_SERVICES);
        let service_cidrs: Vec<&str> = services.split(',').map(str::trim).collect();
        let are_v6: Result<Vec<bool>, String> = service_cidrs
            .iter()
            .map(|range| range.parse::<AddressRange>().map(AddressRange::is_v6))
            .collect();
        if !matches!(are_v6.as_deref(), Ok([_] | [true, false] | [false, true])) {
            let why = "it must be a range of addresses, such as 10.96.0.0/12, or one of IPv4 and \
                       one of IPv6, separated by a comma";
            return Err(wrong_value(SERVICE_CIDR.key, services, why));
        }
        let pods = request.settings.get(BRIDGE.key);
        if let Some(range) = pods.filter(|range| range.parse::<AddressRange>().is_err()) {
            let why = "it must be a range of addresses, such as 10.244.1.0/24";
            return Err(wrong_value(BRIDGE.key, range, why));
        }
        let interface = request.settings.get(INTERFACE.key);
        let is_name = |name: &str| {
            name.len() < 16
                && name
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
        };
        if let Some(name) = interface.filter(|name| !is_name(name)) {
            let why = "it must be the name of an interface, such as eth0";
            return Err(wrong_value(INTERFACE.key, name, why));
        }
        let nameserver = request.settings.get(NAMESERVER.key);
        if let Some(address) = nameserver.filter(|address| address.parse::<IpAddr>().is_err()) {
            return Err(wrong_value(
                NAMESERVER.key,
                address,
                "it must be an IP address",
            ));
        }
        Ok(Network {
            interface,
            service_cidrs,
            nameserver,
            pods,
            pod_routes: pod_routes(request, pods)?,
        })
    }

    /// Returns the settings of the kernel as lines of a file of sysctl.
    fn sysctls(&self) -> String {
        let mut ranges = self.service_cidrs.iter().copied().chain(self.pods);
        let of_v6 = ranges
            .any(|range| range.contains(':'))
            .then_some(FORWARD_V6);
        let keys = SYSCTLS.into_iter().chain(of_v6);
        keys.map(|key| format!("{key} = 1\n")).collect()
    }

    /// Returns the configuration of the plugins bridge and portmap.
    fn bridge(&self) -> Option<RenderedFile> {
        let pods = self.pods?;
        let everything = if pods.contains(':') {
            "::/0"
        } else {
            "0.0.0.0/0"
        };
        let ipam = json!({
            "type": "host-local",
            "ranges": [[{"subnet": pods}]],
            "routes": [{"dst": everything}],
        });
        let list = json!({
            "cniVersion": "1.0.0",
            "name": "landfall-bridge",
            "plugins": [
                {
                    "type": "bridge",
                    "bridge": "cni0",
                    "isGateway": true,
                    "ipMasq": true,
                    "hairpinMode": true,
                    "ipam": ipam,
                },
                {"type": "portmap", "capabilities": {"portMappings": true}},
            ],
        });
        let path = "etc/cni/net.d/10-landfall.conflist";
        Some(RenderedFile::without_comments(path, format!("{list:#}\n")))
    }

    /// Returns the unit that adds the routes at every start.
    fn route_unit(&self) -> Option<RenderedFile> {
        let services = self.interface.into_iter().flat_map(|interface| {
            let routes = self.service_cidrs.iter();
            routes.map(move |range| format!("{range} dev {interface}"))
        });
        let others = self.pod_routes.iter().filter_map(|route| {
            let (pods, node) = route.split_once('@')?;
            Some(format!("{pods} via {node}"))
        });
        let routes: String = services
            .chain(others)
            .map(|route| format!("ExecStart=/bin/sh -c 'exec ip route replace {route}'\n"))
            .collect();
        if routes.is_empty() {
            return None;
        }
        let text = format!(
            "[Unit]\nDescription=Routes to the services and pods of the cluster\n\
             Wants=network-online.target\nAfter=network-online.target\nBefore=kubelet.service\n\n\
             [Service]\nType=oneshot\nRemainAfterExit=yes\n{routes}\n\
             [Install]\nWantedBy=multi-user.target\n"
        );
        let path = "etc/systemd/system/landfall-route.service";
        Some(RenderedFile::new(path, text))
    }
}

/// Returns the checked routes of the setting `pod-routes`.
fn pod_routes<'r>(
    request: &'r RenderRequest<'_>,
    pods: Option<&str>,
) -> Result<Vec<&'r str>, Failure> {
    let Some(value) = request.settings.get(POD_ROUTES.key) else {
        return Ok(Vec::new());
    };
    let wrong = |why| Err(wrong_value(POD_ROUTES.key, value, why));
    if pods.is_none() {
        return wrong("it needs --set bridge=CIDR, the range of this node's own pods");
    }
    let routes: Vec<&str> = value.split(',').collect();
    for route in &routes {
        let parts = route.split_once('@').and_then(|(range, node)| {
            let range = range.contains('/').then(|| range.parse().ok())??;
            Some::<(AddressRange, IpAddr)>((range, node.parse().ok()?))
        });
        let Some((range, _)) = parts else {
            return wrong(
                "it must be the range of a node's pods and the node's address, such as \
                 10.244.1.0/24@172.20.0.4",
            );
        };
        let own = pods.and_then(|own| own.parse::<AddressRange>().ok());
        if own.is_some_and(|own| own.contains(range) || range.contains(own)) {
            return wrong("the range overlaps that of this node's own pods (bridge)");
        }
    }
    Ok(routes)
}

/// The kernel settings that kubeadm checks and networks need.
const SYSCTLS: [&str; 3] = [
    "net.bridge.bridge-nf-call-iptables",
    "net.bridge.bridge-nf-call-ip6tables",
    "net.ipv4.ip_forward",
];

/// The kernel setting for a cluster with addresses of IPv6. It also sets that of new interfaces
/// (`default`), which kubeadm checks.
const FORWARD_V6: &str = "net.ipv6.conf.all.forwarding";

/// Makes runc put the containers into units of systemd, which is the init of the node and the
/// default of kubeadm's kubelet.
fn cgroup_tables(release: ContainerdRelease) -> String {
    let plugin = match release {
        ContainerdRelease::One => "io.containerd.grpc.v1.cri",
        ContainerdRelease::Two => "io.containerd.cri.v1.runtime",
    };
    let runc = format!("plugins.\"{plugin}\".containerd.runtimes.runc");
    format!(
        "\n[{runc}]\nruntime_type = \"io.containerd.runc.v2\"\n\n[{runc}.options]\n\
         SystemdCgroup = true\n"
    )
}

/// Returns the configurations for containerd 1.x and 2.x.
fn containerd_configs(
    request: &RenderRequest<'_>,
    notes: &mut Vec<String>,
) -> Result<[RenderedFile; 2], Failure> {
    let sandbox = match request.target {
        Some(_) => sandbox_image(request, notes)?,
        // images of `landfall export images` keep their names
        None => locked_sandbox_image(request, "containerd", notes)?.map(ToString::to_string),
    };
    let mut own = String::new();
    for path in request.paths(CONTAINERD_CONFIG.name) {
        own += &format!("\n{}", read_input(path)?);
    }
    let registry = request.registry()?;
    let one = |release| -> Result<RenderedFile, Failure> {
        let file = config(release, FOLDER, sandbox.as_ref(), request, &registry)?;
        let text = file.text.clone() + &cgroup_tables(release) + &own;
        Ok(RenderedFile { text, ..file })
    };
    Ok([one(ContainerdRelease::One)?, one(ContainerdRelease::Two)?])
}

/// Returns the other files of the node: mirrors, trust, account, proxy, modules, route.
fn configuration(
    request: &RenderRequest<'_>,
    network: &Network<'_>,
    notes: &mut Vec<String>,
) -> Result<Vec<RenderedFile>, Failure> {
    let mut files = Vec::new();
    if request.target.is_some() {
        let registry = request.registry()?;
        let by_header = account_by_header(request);
        files.extend(hosts(request, &registry, by_header, FOLDER)?);
        notes.extend(unreadable(request, &registry)?);
        notes.extend(other_accounts(request, &registry, by_header)?);
    }
    if request.settings.get(PROXY.key) == Some("on") {
        let proxy = drop_in("containerd", DropInForm::SixVariables, request)?;
        files.push(proxy.ok_or_else(no_proxy_failure)?);
    }
    let socket = "unix:///run/containerd/containerd.sock";
    files.push(RenderedFile::new(
        "etc/crictl.yaml",
        format!("runtime-endpoint: {socket}\nimage-endpoint: {socket}\n"),
    ));
    let modules = "overlay\nbr_netfilter\n";
    files.push(RenderedFile::new(
        "etc/modules-load.d/landfall.conf",
        modules,
    ));
    files.push(RenderedFile::new(
        "etc/sysctl.d/99-landfall.conf",
        network.sysctls(),
    ));
    files.extend(network.route_unit());
    files.extend(network.bridge());
    Ok(files)
}

/// Returns the certificate authorities of the registry and, if it is used, of the proxy, each
/// certificate once.
fn site_certificates(request: &RenderRequest<'_>) -> Result<Vec<String>, Failure> {
    let mut all = Vec::new();
    let registry = request.registry()?.ca;
    let proxy = if request.settings.get(PROXY.key) == Some("on") {
        request.proxy()?.and_then(|proxy| proxy.ca)
    } else {
        None
    };
    let texts = registry.iter().chain(&proxy);
    extend_distinct(&mut all, texts.flat_map(|text| split_certificates(text)));
    Ok(all)
}

// Text of a shell script.

/// Returns a function with these commands.
fn function(name: &str, commands: impl IntoIterator<Item = String>) -> String {
    let body: String = commands.into_iter().collect();
    let body = if body.is_empty() { "  :\n" } else { &body };
    format!("{name}() {{\n{body}}}\n")
}

/// Returns a command that prints `text`.
fn print_text(text: &str) -> String {
    here_document("cat", text)
}

/// Returns the command that writes `file` to its path on the node.
fn written(file: &RenderedFile, command: &str, request: &RenderRequest<'_>) -> String {
    let file = headed(file.clone(), request);
    let path = shell_word(&format!("/{}", file.path));
    here_document(&format!("{command} {path} {:04o}", file.mode), &file.text)
}

/// Adds the header by which the script recognizes its own files.
fn headed(file: RenderedFile, request: &RenderRequest<'_>) -> RenderedFile {
    file.with_header(&format!(
        "landfall render node{}",
        request.settings.written()
    ))
}

/// Returns `command` with `text` as its input. Parts of the text may come from a lock, which is
/// untrusted, so the end mark is none of its lines.
fn here_document(command: &str, text: &str) -> String {
    let mut end = "LANDFALL".to_owned();
    while text.lines().any(|line| line == end) {
        end.push('_');
    }
    let line_feed = if text.is_empty() || text.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    format!("{command} <<'{end}'\n{text}{line_feed}{end}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_of_a_text_ends_a_here_document() {
        assert_eq!(here_document("cat", "a"), "cat <<'LANDFALL'\na\nLANDFALL\n");
        assert_eq!(
            here_document("cat", "LANDFALL\nrm\n"),
            "cat <<'LANDFALL_'\nLANDFALL\nrm\nLANDFALL_\n"
        );
    }
}
