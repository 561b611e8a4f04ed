//! `k0s`: containerd's hosts.toml files and configuration where k0s reads them, and the proxy.

use super::containerd::{
    AUTH, ContainerdRelease, account_by_header, config, hosts, other_accounts, unreadable,
};
use super::systemd::{DropInForm, drop_in, only_drop_ins};
use crate::platform::{
    OutputForm, PlatformSetting, RenderPlatform, RenderRequest, RenderedConfig, SITE_CLUSTER,
};
use crate::rendered_file::RenderedFile;
use landfall_model::{Consumer, Failure};

const VERSION: PlatformSetting = PlatformSetting {
    key: "version",
    value_name: "VERSION",
    help: "The release of k0s: 1.36 and newer have containerd 2, up to 1.35 they have containerd 1",
    default: Some("1.36"),
    choices: &["1.35", "1.36"],
};

/// The folder from which k0s adds files to the configuration of its containerd.
const DROP_INS: &str = "/etc/k0s/containerd.d";

pub(super) static PLATFORM: RenderPlatform = RenderPlatform {
    name: "k0s",
    about: "k0s: a hosts.toml for every upstream host, its containerd configuration, its \
            proxy",
    details: "Paths in the output folder are the paths on a node. Archives of `landfall \
              export images` in /var/lib/k0s/images are loaded before any image is pulled.",
    settings: &[VERSION, AUTH, SITE_CLUSTER],
    consumer: Some(Consumer::K0s),
    writes: OutputForm::Files {
        not_into: Some("hosts.toml and landfall.toml are not YAML; write them with -o DIR"),
    },
    has_proxy_part: true,
    ..RenderPlatform::new(render)
};

fn render(request: &RenderRequest<'_>) -> Result<RenderedConfig, Failure> {
    if request.target.is_none() {
        return only_drop_ins(
            &["k0scontroller", "k0sworker"],
            DropInForm::SixVariables,
            request,
        );
    }
    let registry = request.registry()?;
    let by_header = account_by_header(request);
    let hosts_folder = format!("{DROP_INS}/certs.d");
    let mut files = hosts(request, &registry, by_header, &hosts_folder)?;
    let has_containerd_2 = request.settings.get(VERSION.key) == Some("1.36");
    let release = if has_containerd_2 {
        ContainerdRelease::Two
    } else {
        ContainerdRelease::One
    };
    files.push(RenderedFile {
        path: format!("{}/landfall.toml", &DROP_INS[1..]),
        ..config(release, &hosts_folder, None, request, &registry)?
    });
    for service in ["k0scontroller", "k0sworker"] {
        files.extend(drop_in(service, DropInForm::SixVariables, request)?);
    }
    let mut notes = other_accounts(request, &registry, by_header)?;
    if !has_containerd_2 {
        notes.extend(unreadable(request, &registry)?);
    }
    Ok(RenderedConfig::of_files(files, notes))
}
