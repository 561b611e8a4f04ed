//! Points profiles of KKP's operating-system-manager at the site. These profiles set up machines.

use super::machine_setup::MachineSetup;
use crate::kubernetes_objects::{OBJECT_NAME, is_object_name, map, metadata};
use crate::merge_into::merge_error;
use crate::node_registry;
use crate::platform::{InputFlag, PlatformInput};
use crate::platforms::yum::MachinePackages;
use crate::rendered_file::RenderedFile;
use crate::request::RenderRequest;
use crate::settings::PlatformSetting;
use crate::settings::wrong_value;
use landfall_model::document::{MergeRules, ObjectPosition, documents, merge};
use landfall_model::{Digest, Failure};
use landfall_rewrite::{
    ReferenceIndex, ReferenceMeaning, RewriteOptions, RewriteResult, TextSyntax, rewrite,
};
use serde_yaml::{Mapping, Value};
use std::collections::BTreeMap;
use std::path::Path;

/// The profiles of the user.
pub(super) const PROFILES: PlatformInput = PlatformInput {
    name: "osp",
    flag: InputFlag::Long,
    value_name: "FILE",
    help: "An OperatingSystemProfile of operating-system-manager, from which a custom profile for \
           this site is made (may be repeated)",
};

/// The hosts of the operating system's packages.
pub(super) const PACKAGES: PlatformSetting = PlatformSetting {
    key: "packages",
    value_name: "HOST,...",
    help: "Hosts of package sources that the site's file server mirrors, each at /<host>/<path>; \
           profiles install packages from there",
    default: None,
    choices: &[],
};

/// A profile that was pointed at the site.
pub(super) struct MachineProfile {
    pub(super) file: RenderedFile,
    /// The operating system by its name in datacenters.
    pub(super) system: String,
    /// The name of the object in the cluster.
    pub(super) name: String,
    pub(super) notes: Vec<String>,
}

/// Returns the profiles that the user named, pointed at the site. `authorities` are the
/// certificates for machines. Fails if a file cannot be read, is not a profile or cannot be edited,
/// or if two profiles have the same name.
pub(super) fn profiles(
    request: &RenderRequest<'_>,
    authorities: &str,
) -> Result<Vec<MachineProfile>, Failure> {
    let paths = request.paths(PROFILES.name);
    let renderer = ProfileRenderer::of(request, authorities)?;
    let mut profiles: Vec<MachineProfile> = Vec::new();
    for path in paths {
        let profile = renderer.profile(path, &node_registry::read_input(path)?)?;
        if profiles.iter().any(|other| other.name == profile.name) {
            let why = format!(
                "{}: another --osp also has the name {}",
                path.display(),
                profile.name
            );
            return Err(Failure::usage(why));
        }
        profiles.push(profile);
    }
    Ok(profiles)
}

/// The data from which all profiles are rendered.
struct ProfileRenderer<'r> {
    /// The locked references and the mirrored package hosts.
    index: ReferenceIndex,
    setup: MachineSetup<'r>,
    has_proxy: bool,
}

impl<'r> ProfileRenderer<'r> {
    fn of(
        request: &'r RenderRequest<'_>,
        authorities: &'r str,
    ) -> Result<ProfileRenderer<'r>, Failure> {
        let files = request.file_server();
        let packages = request
            .settings
            .get(PACKAGES.key)
            .map(|hosts| hosts.split(',').map(str::trim));
        let packages: Vec<&str> = packages.into_iter().flatten().collect();
        let wrong = |why: &str| wrong_value(PACKAGES.key, packages.join(","), why);
        // the hosts become patterns in a shell script of the machine
        if !packages.iter().all(is_host) {
            return Err(wrong(
                "it must be a list of hosts in lower case, without schemes and paths",
            ));
        }
        if !packages.is_empty() && files.is_none() {
            return Err(wrong(
                "the site has no file server: add `files: http://…` to it",
            ));
        }
        let mut index = ReferenceIndex::new(request.lock, request.mapping);
        if let Some(files) = files {
            index = index
                .with_files(files)
                .with_mirrored_hosts(packages.iter().map(|host| (*host).to_owned()));
        }
        let has_proxy = request.proxy()?.is_some();
        let locked = MachinePackages::of(request)?;
        Ok(ProfileRenderer {
            index,
            setup: MachineSetup {
                authorities,
                files,
                packages,
                locked,
            },
            has_proxy,
        })
    }

    /// Renders the profile `text` of the file at `path`.
    fn profile(&self, path: &Path, text: &str) -> Result<MachineProfile, Failure> {
        let merge_error = merge_error(path);
        let old = documents(text).map_err(merge_error)?;
        let old = match &old[..] {
            [one] if is_profile(one) => one,
            _ => {
                return Err(Failure::usage(format!(
                    "{} is not one OperatingSystemProfile; write each to a separate file",
                    path.display()
                )));
            }
        };
        let spec_text = |key: &str| old["spec"][key].as_str().unwrap_or_default().to_owned();
        let system = spec_text("osName");
        let base = old["metadata"]["name"].as_str().unwrap_or_default();
        let name = format!("{}-landfall", base.trim_end_matches("-landfall"));
        if !is_object_name(base) || !is_object_name(&name) {
            let why = format!(
                "{}: its metadata.name is not a valid name: {OBJECT_NAME}",
                path.display()
            );
            return Err(Failure::usage(why));
        }
        let mut notes = Vec::new();
        let RewriteResult { text, scan } = rewrite(
            text,
            TextSyntax::Document,
            &self.index,
            RewriteOptions::default(),
        );
        for one in &scan.found {
            if let ReferenceMeaning::Left { why } = &one.meaning {
                notes.push(format!(
                    "{}: {} is unchanged: {why}",
                    one.position_in(base),
                    one.written
                ));
            }
        }
        let sources = self.setup.locked_sources(&system, base, &mut notes);
        self.note_upstream_requests(&text, base, !sources.is_empty(), &mut notes);
        let files = self
            .setup
            .source_files(old, &system, base, sources, &mut notes);
        let added = |version: &str| {
            let mut spec = map([("version", version.into())]);
            if let (Value::Mapping(spec), false) = (&mut spec, files.is_empty()) {
                spec.insert(
                    "bootstrapConfig".into(),
                    map([("files", files.clone().into())]),
                );
            }
            let mut all = Mapping::new();
            all.insert("kind".into(), "CustomOperatingSystemProfile".into());
            all.insert("metadata".into(), metadata(&name, Some("kubermatic")));
            all.insert("spec".into(), spec);
            all
        };
        // `replace` loses no content of the user: the user's profile is only read
        let rules = MergeRules {
            replace: true,
            ..MergeRules::default()
        };
        // KKP accepts a changed profile only with another version, so the version depends on the
        // content. The digest is build metadata of the version, which follows a `+`.
        let version = spec_text("version");
        let content = merge(&text, ObjectPosition::default(), &added(&version), rules)
            .map_err(merge_error)?
            .text;
        let separator = if version.contains('+') { '.' } else { '+' };
        let digest = Digest::sha256(content.as_bytes());
        let version = format!("{version}{separator}landfall.{}", &digest.hex()[..12]);
        let text = merge(&text, ObjectPosition::default(), &added(&version), rules)
            .map_err(merge_error)?
            .text;
        let file = RenderedFile::new(format!("{name}.yaml"), text);
        Ok(MachineProfile {
            file,
            system,
            name,
            notes,
        })
    }

    /// Adds notes with line numbers of `text`: the hosts from which machines will still download,
    /// and the commands that install packages from upstream. Also adds a note if the site has a
    /// proxy that the profile does not use. `are_locked` says whether the machines of the profile
    /// install locked packages.
    fn note_upstream_requests(
        &self,
        text: &str,
        name: &str,
        are_locked: bool,
        notes: &mut Vec<String>,
    ) {
        let own = self
            .setup
            .files
            .and_then(|url| Some(host_at(url.split_once("://")?.1)));
        let mut hosts: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        let mut installs = Vec::new();
        for (at, line) in text.lines().enumerate() {
            // skips comments of YAML, shell and templates, and links to documentation in units
            let start = line.trim_start();
            if start.starts_with('#')
                || start.starts_with("{{- /*")
                || start.starts_with("Documentation=")
            {
                continue;
            }
            let number = || (at + 1).to_string();
            for (scheme, _) in line.match_indices("://") {
                let (before, after) = line.split_at(scheme);
                let is_web = before.ends_with("http") || before.ends_with("https");
                let host = is_web.then(|| host_at(&after["://".len()..]));
                let is_local = |host: &str| {
                    Some(host) == own || host.starts_with("127.") || host == "localhost"
                };
                // a variable, as in `https://$HOST/`, is not a name with a dot
                if let Some(host) = host.filter(|host| host.contains('.') && !is_local(host)) {
                    hosts.entry(host).or_default().push(number());
                }
            }
            if INSTALLERS.iter().any(|command| line.contains(command)) {
                installs.push(number());
            }
        }
        for (host, lines) in hosts {
            let help = match self.setup.files {
                Some(_) => format!(
                    "lock those files, or use --set packages={host} if the file server mirrors the \
                     host"
                ),
                None => "lock those files, and add a file server to the site (`files: http://…`)"
                    .to_owned(),
            };
            notes.push(format!(
                "{name} downloads from {host} ({}): {help}",
                at_lines(&lines)
            ));
        }
        if !installs.is_empty() && self.setup.packages.is_empty() && !are_locked {
            notes.push(format!(
                "{name} installs packages ({}) from the upstream sources of its system: lock them \
                 (`packages:`), or point the hosts of these sources at the file server with --set \
                 packages=HOST,...",
                at_lines(&installs)
            ));
        }
        if self.has_proxy && !text.contains(".HTTPProxy") {
            notes.push(format!(
                "{name} does not use the proxy ({{{{ .HTTPProxy }}}}), so its machines do not \
                 either"
            ));
        }
    }
}

fn is_host(host: &&str) -> bool {
    !host.is_empty()
        && host
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || ".-:".contains(c))
}

/// `line 3`, `lines 3, 4`.
fn at_lines(lines: &[String]) -> String {
    format!(
        "line{} {}",
        if lines.len() == 1 { "" } else { "s" },
        lines.join(", ")
    )
}

/// Returns the host at the start of `text`, without a port.
fn host_at(text: &str) -> &str {
    let end = text
        .find(|c: char| !(c.is_ascii_alphanumeric() || ".-".contains(c)))
        .unwrap_or(text.len());
    &text[..end]
}

/// The commands that install packages.
const INSTALLERS: [&str; 5] = [
    "apt-get install",
    "apt install",
    "yum install",
    "dnf install",
    "zypper install",
];

fn is_profile(document: &Value) -> bool {
    let kinds = ["OperatingSystemProfile", "CustomOperatingSystemProfile"];
    document["kind"]
        .as_str()
        .is_some_and(|kind| kinds.contains(&kind))
}

/// Returns the setting of a datacenter for `profiles`: the first profile of each operating system.
pub(super) fn default_profiles(profiles: &[MachineProfile], notes: &mut Vec<String>) -> Value {
    let mut defaults = Mapping::new();
    for MachineProfile { system, name, .. } in profiles {
        if defaults.contains_key(system.as_str()) {
            notes.push(format!(
                "a datacenter has only one default profile for {system}: to use {name}, set the \
                 annotation k8c.io/operating-system-profile to it in the MachineDeployments"
            ));
        } else {
            defaults.insert(system.as_str().into(), name.as_str().into());
        }
    }
    if defaults.is_empty() {
        Value::Null
    } else {
        map([("operatingSystemProfiles", Value::Mapping(defaults))])
    }
}
