//! `nerdctl`: containerd's hosts.toml files where nerdctl reads them, and the account.

use super::containerd::{
    AUTH, FOLDER, PULL_SECRET, account_by_header, account_in_config, hosts, other_accounts,
    unreadable,
};
use crate::platform::{OutputForm, PlatformSetting, RenderPlatform, RenderRequest, RenderedConfig};
use crate::rendered_file::RenderedFile;
use landfall_model::{Consumer, Failure};

const MODE: PlatformSetting = PlatformSetting::new(
    "mode",
    "MODE",
    "Whether root runs nerdctl (rootful), or a user with a containerd of their own (rootless)",
)
.one_of(&["rootful", "rootless"]);

/// [`AUTH`] for a client that does not read accounts from containerd's configuration.
const ACCOUNT: PlatformSetting = PlatformSetting {
    help: "Where to write the account: in config.json (config), or in each hosts.toml as a header \
           (header). nerdctl 1.x does not use the account in config.json for mirrors",
    default: Some("config"),
    ..AUTH
};

/// The folder of the hosts.toml files of rootless nerdctl, in the home folder of the user.
const ROOTLESS_FOLDER: &str = ".config/containerd/certs.d";

pub(super) static PLATFORM: RenderPlatform = RenderPlatform {
    name: "nerdctl",
    about: "nerdctl: a hosts.toml for every upstream host, certificates and account",
    details: "Paths in the output folder are the paths on a machine, or with --set mode=rootless \
              the paths in the home folder of the user. Copy config.json to ~/.docker, or to the \
              folder in DOCKER_CONFIG.",
    settings: &[MODE, ACCOUNT],
    consumer: Some(Consumer::Containerd),
    writes: OutputForm::Files {
        not_into: Some("hosts.toml and config.json are not YAML; write them with -o DIR"),
    },
    ..RenderPlatform::new(render)
};

fn render(request: &RenderRequest<'_>) -> Result<RenderedConfig, Failure> {
    let registry = request.registry()?;
    let by_header = account_by_header(request);
    let is_rootless = request.settings.get(MODE.key) == Some("rootless");
    let folder = if is_rootless { ROOTLESS_FOLDER } else { FOLDER };
    let mut files = hosts(request, &registry, by_header, folder)?;
    if let Some(account) = account_in_config(request, &registry)? {
        let text = registry.auth_file(&account);
        files.push(RenderedFile::without_comments("config.json", text).secret(true));
    }
    let notes = other_accounts(request, &registry, by_header)?.into_iter();
    let mut notes: Vec<String> = notes.map(|note| note.replace(PULL_SECRET, "")).collect();
    notes.extend(unreadable(request, &registry)?);
    Ok(RenderedConfig::of_files(files, notes))
}
