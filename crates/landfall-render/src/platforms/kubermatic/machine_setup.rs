//! The first steps of machines with a profile: they trust the site's certificate authorities, and
//! install packages from its file server.

use crate::kubernetes_objects::map;
use crate::node_registry;
use crate::platforms::yum::MachinePackages;
use crate::rendered_file::RenderedFile;
use landfall_item::LockedPackageSet;
use serde_yaml::Value;
use std::cmp::Reverse;
use std::fmt::Write as _;

/// The certificates and package sources for machines.
pub(super) struct MachineSetup<'r> {
    /// The certificate authorities in PEM form.
    pub(super) authorities: &'r str,
    /// The URL of the file server, without a slash at the end.
    pub(super) files: Option<&'r str>,
    /// The hosts whose packages the file server has.
    pub(super) packages: Vec<&'r str>,
    /// The package sets of the lock, from which machines install.
    pub(super) locked: MachinePackages<'r>,
}

impl MachineSetup<'_> {
    /// Returns the files of the package sources for machines with the operating system `system`.
    /// Returns none unless exactly one package set fits this system and the site has a file server.
    pub(super) fn locked_sources(
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
    pub(super) fn source_files(
        &self,
        profile: &Value,
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
fn first_unit(phase: &Value) -> Option<&'static str> {
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
    map([
        ("path", path.into()),
        ("permissions", mode.into()),
        (
            "content",
            map([(
                "inline",
                map([("encoding", "b64".into()), ("data", text.into())]),
            )]),
        ),
    ])
}
