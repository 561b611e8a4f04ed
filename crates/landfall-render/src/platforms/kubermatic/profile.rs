//! Points profiles of KKP's operating-system-manager at the site. These profiles set up machines.

use crate::kubernetes_objects::{OBJECT_NAME, is_object_name, metadata, some};
use crate::merge_into::merge_error;
use crate::node_registry;
use crate::platform::{InputFlag, PlatformInput, PlatformSetting, RenderRequest, wrong_value};
use crate::platforms::yum::MachinePackages;
use crate::rendered_file::RenderedFile;
use landfall_item::LockedPackageSet;
use landfall_model::document::{MergeRules, ObjectPosition, documents, merge};
use landfall_model::{Digest, Failure};
use landfall_rewrite::{
    ReferenceIndex, ReferenceMeaning, RewriteOptions, RewriteResult, TextSyntax, rewrite,
};
use serde_json::{Map, Value, json};
use serde_yaml::Mapping;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write as _;
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
pub(super) const PACKAGES: PlatformSetting = PlatformSetting::new(
    "packages",
    "HOST,...",
    "Hosts of package sources that the site's file server mirrors, each at /<host>/<path>; \
           profiles install packages from there",
);

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
    /// The certificate authorities in PEM form.
    authorities: &'r str,
    /// The URL of the file server, without a slash at the end.
    files: Option<&'r str>,
    /// The hosts whose packages the file server has.
    packages: Vec<&'r str>,
    /// The package sets of the lock, from which machines install.
    locked: MachinePackages<'r>,
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
            authorities,
            files,
            packages,
            locked,
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
            if let ReferenceMeaning::Left(why) = &one.meaning {
                notes.push(format!(
                    "{}: {} is unchanged: {why}",
                    one.position_in(base),
                    one.written
                ));
            }
        }
        let sources = self.locked_sources(&system, base, &mut notes);
        self.note_upstream_requests(&text, base, !sources.is_empty(), &mut notes);
        let files = self.source_files(old, &system, base, sources, &mut notes);
        let steps = (!files.is_empty()).then(|| json!({"files": files}));
        let added = |version: &str| -> Mapping {
            let object = some(json!({
                "kind": "CustomOperatingSystemProfile",
                "metadata": metadata(&name, Some("kubermatic")),
                "spec": {"version": version, "bootstrapConfig": steps},
            }));
            // every object of JSON is a mapping of YAML
            serde_json::from_value(object).unwrap_or_default()
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
            let help = match self.files {
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
        if !installs.is_empty() && self.packages.is_empty() && !are_locked {
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

fn is_profile(document: &serde_yaml::Value) -> bool {
    let kinds = ["OperatingSystemProfile", "CustomOperatingSystemProfile"];
    document["kind"]
        .as_str()
        .is_some_and(|kind| kinds.contains(&kind))
}

/// Returns the setting of a datacenter for `profiles`: the first profile of each operating system.
pub(super) fn default_profiles(profiles: &[MachineProfile], notes: &mut Vec<String>) -> Value {
    let mut defaults = Map::new();
    for MachineProfile { system, name, .. } in profiles {
        if defaults.contains_key(system.as_str()) {
            notes.push(format!(
                "a datacenter has only one default profile for {system}: to use {name}, set the \
                 annotation k8c.io/operating-system-profile to it in the MachineDeployments"
            ));
        } else {
            defaults.insert(system.clone(), json!(name));
        }
    }
    some(json!({"operatingSystemProfiles": some(defaults.into())}))
}

// The first steps of machines with a profile: they trust the site's certificate authorities, and
// install packages from its file server.

impl ProfileRenderer<'_> {
    /// Returns the files of the package sources for machines with the operating system `system`.
    /// Returns none unless exactly one package set fits this system and the site has a file server.
    fn locked_sources(
        &self,
        system: &str,
        name: &str,
        notes: &mut Vec<String>,
    ) -> Vec<RenderedFile> {
        let is_suitable = |set: &LockedPackageSet| match system {
            "ubuntu" | "debian" => set.is_apt(),
            "rhel" | "rockylinux" | "centos" | "amzn2" => set.is_yum(),
            _ => false,
        };
        self.locked.source_files(name, is_suitable, notes)
    }

    /// Returns the files for the profile: `sources` of packages, certificates, a script, and a
    /// drop-in that runs the script before the first unit of the profile.
    fn source_files(
        &self,
        profile: &serde_yaml::Value,
        system: &str,
        name: &str,
        sources: Vec<RenderedFile>,
        notes: &mut Vec<String>,
    ) -> Vec<Value> {
        let mut files: Vec<Value> = sources
            .iter()
            .map(|source| file(&format!("/{}", source.path), 644, &source.text))
            .collect();
        let trust = (!self.authorities.is_empty())
            .then(|| TrustStore::of(system))
            .flatten();
        if !self.authorities.is_empty() && trust.is_none() {
            notes.push(format!(
                "{name}: landfall does not know how {system} trusts a certificate authority, so \
                 its machines do not trust the site's"
            ));
        }
        let mirrored = self.mirrored_sources();
        if trust.is_none() && mirrored.is_empty() {
            return files;
        }
        let mut script =
            "#!/bin/sh\n# Configures this machine for the site. Runs before all other setup scripts.\nset -eu\n"
                .to_owned();
        if let Some(trust) = trust {
            for (at, certificate) in node_registry::split_certificates(self.authorities).enumerate()
            {
                let path = format!("{}/landfall-{}.{}", trust.folder, at + 1, trust.ending);
                files.push(file(&path, 644, &certificate));
            }
            let _ = writeln!(script, "{}", trust.command);
        }
        script.push_str(&mirrored);
        files.push(file(SCRIPT, 755, &script));
        let Some(unit) = first_unit(&profile["spec"]["bootstrapConfig"]) else {
            notes.push(format!(
                "{name} starts neither bootstrap.service nor setup.service first: let its first \
                 script run {SCRIPT}"
            ));
            return files;
        };
        // before the unit's own commands, which download files and install packages
        let drop_in = format!("[Service]\nExecStartPre={SCRIPT}\n");
        files.push(file(
            &format!("/etc/systemd/system/{unit}.d/50-landfall.conf"),
            644,
            &drop_in,
        ));
        files
    }

    /// Returns commands that point the package sources of the system at the file server.
    fn mirrored_sources(&self) -> String {
        let Some(files) = self.files.filter(|_| !self.packages.is_empty()) else {
            return String::new();
        };
        let mut script = SOURCES.to_owned();
        // subdomains precede their domain, which matches them too
        let mut hosts = self.packages.clone();
        hosts.sort_by_key(|host| Reverse(host.len()));
        for host in hosts {
            // in a regular expression, a dot would match any character
            let pattern = host.replace('.', r"\.");
            let _ = writeln!(script, "point '{pattern}' '{files}/{host}/'");
        }
        script
    }
}

/// The path of the script on a machine.
const SCRIPT: &str = "/opt/landfall/use-site.sh";

/// The shell function `point PATTERN URL`. In the package sources, it replaces the URLs of the
/// hosts that match the pattern. URLs of the file server stay, because the script runs at each
/// start and the file server may be in a mirrored domain. If a file has a list of mirrors instead
/// of a base URL, the function first activates the base URL again.
const SOURCES: &str = r#"point() {
  files=${2%/*/}/
  for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources /etc/yum.repos.d/*.repo; do
    [ -f "$file" ] && sed "s#$files##g" "$file" | grep -Eq "https?://([A-Za-z0-9-]+\.)*$1/" || continue
    case $file in
      *.repo) sed -i -E 's|^(mirrorlist\|metalink)=|#&|; s|^#[[:space:]]*baseurl=|baseurl=|' "$file" ;;
    esac
    sed -i -E "s#$files#\x01#g; s#https?://([A-Za-z0-9-]+\.)*$1/#$2#g; s#\x01#$files#g" "$file"
  done
}
"#;

/// How operating systems trust a certificate authority: the folder for its file, the ending of the
/// file name, and the command that makes programs trust it.
struct TrustStore {
    systems: &'static [&'static str],
    folder: &'static str,
    ending: &'static str,
    command: &'static str,
}

impl TrustStore {
    fn of(system: &str) -> Option<&'static TrustStore> {
        TRUST_STORES
            .iter()
            .find(|store| store.systems.contains(&system))
    }
}

const TRUST_STORES: [TrustStore; 4] = [
    TrustStore {
        systems: &["ubuntu", "debian"],
        folder: "/usr/local/share/ca-certificates",
        ending: "crt",
        command: "update-ca-certificates",
    },
    TrustStore {
        systems: &["rhel", "rockylinux", "centos", "amzn2"],
        folder: "/etc/pki/ca-trust/source/anchors",
        ending: "crt",
        command: "update-ca-trust",
    },
    TrustStore {
        systems: &["flatcar"],
        folder: "/etc/ssl/certs",
        ending: "pem",
        command: "update-ca-certificates",
    },
    TrustStore {
        systems: &["sles"],
        folder: "/etc/pki/trust/anchors",
        ending: "crt",
        command: "update-ca-certificates",
    },
];

/// Returns the unit with which a phase of a profile starts. Profiles list it as a unit or as a
/// file.
fn first_unit(phase: &serde_yaml::Value) -> Option<&'static str> {
    let each = |list: &str| phase[list].as_sequence().cloned().unwrap_or_default();
    let units = each("units")
        .into_iter()
        .filter_map(|unit| Some(unit["name"].as_str()?.to_owned()));
    let paths = each("files")
        .into_iter()
        .filter_map(|file| Some(file["path"].as_str()?.to_owned()));
    let names: Vec<String> = units.chain(paths).collect();
    ["bootstrap.service", "setup.service"]
        .into_iter()
        .find(|unit| {
            names
                .iter()
                .any(|name| name.rsplit('/').next() == Some(unit))
        })
}

/// Returns a file of a profile. Profiles write modes as decimal numbers that look like octal ones.
fn file(path: &str, mode: u32, text: &str) -> Value {
    json!({
        "path": path,
        "permissions": mode,
        "content": {"inline": {"encoding": "b64", "data": text}},
    })
}
