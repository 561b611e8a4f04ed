//! What machines of a profile do before anything else: they trust the site's authorities, and take
//! packages from it.

use crate::certificates;
use crate::kubernetes_objects::map;
use crate::platforms::machine_packages::MachinePackages;
use crate::rendered_file::RenderedFile;
use landfall_item::LockedPackageSet;
use serde_yaml::Value;
use std::fmt::Write as _;

/// What machines are set up with.
pub(super) struct MachineSetup<'r> {
    /// The certificates that they need.
    pub(super) authorities: &'r str,
    /// The file server, without a slash at its end.
    pub(super) files: Option<&'r str>,
    /// Hosts whose packages it has.
    pub(super) packages: Vec<&'r str>,
    /// The packages of the lock.
    pub(super) locked: MachinePackages<'r>,
}

impl MachineSetup<'_> {
    /// The sources of the locked packages for machines of `system`; none where nothing is locked
    /// for such.
    pub(super) fn locked_sources(
        &self,
        system: &str,
        name: &str,
        notes: &mut Vec<String>,
    ) -> Vec<RenderedFile> {
        let fitting = |set: &LockedPackageSet| match system {
            "ubuntu" | "debian" => set.is_apt(),
            "rhel" | "rockylinux" | "centos" | "amzn2" => set.is_yum(),
            _ => false,
        };
        self.locked.files_of(name, fitting, notes)
    }

    /// The files that the profile gets: `sources` of packages, certificates, a script, and a
    /// drop-in that runs it before the first one of the profile's own.
    pub(super) fn files_of(
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
                "{name}: it is not known how {system} trusts an authority, so it does not get the site's"
            ));
        }
        let mirrored = self.mirrored_sources();
        if trust.is_none() && mirrored.is_empty() {
            return files;
        }
        let mut script =
            "#!/bin/sh\n# Makes this machine use the site, before anything else runs.\nset -eu\n"
                .to_owned();
        if let Some(trust) = trust {
            for (at, certificate) in certificates::split_certificates(self.authorities).enumerate()
            {
                let path = format!("{}/landfall-{}.{}", trust.folder, at + 1, trust.ending);
                files.push(file(&path, 644, &certificate));
            }
            let _ = writeln!(script, "{}", trust.command);
        }
        script.push_str(&mirrored);
        files.push(file(SCRIPT, 755, &script));
        let Some(unit) = first_unit(&profile["spec"]["bootstrapConfig"]) else {
            let why = "starts neither bootstrap.service nor setup.service first";
            notes.push(format!("{name} {why}: let its first script run {SCRIPT}"));
            return files;
        };
        let drop_in = format!("[Service]\nExecStartPre={SCRIPT}\n");
        files.push(file(
            &format!("/etc/systemd/system/{unit}.d/50-landfall.conf"),
            644,
            &drop_in,
        ));
        files
    }

    /// Commands that point the system's own sources of packages at the file server.
    fn mirrored_sources(&self) -> String {
        let Some(files) = self.files.filter(|_| !self.packages.is_empty()) else {
            return String::new();
        };
        let mut script = SOURCES.to_owned();
        for host in &self.packages {
            let pattern = host.replace('.', r"\.");
            let _ = writeln!(script, "point '{pattern}' '{files}/{host}/'");
        }
        script
    }
}

/// The script that runs first.
const SCRIPT: &str = "/opt/landfall/use-site.sh";

/// A function that gives `URL` to the sources whose host the pattern fits. A list of mirrors stands
/// in a file in place of a base URL, so that one is brought back.
const SOURCES: &str = r#"point() {
  for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources /etc/yum.repos.d/*.repo; do
    [ -f "$file" ] && grep -Eq "https?://([A-Za-z0-9-]+\.)*$1/" "$file" || continue
    case $file in
      *.repo) sed -i -E 's|^(mirrorlist\|metalink)=|#&|; s|^#[[:space:]]*baseurl=|baseurl=|' "$file" ;;
    esac
    sed -i -E "s#https?://([A-Za-z0-9-]+\.)*$1/#$2#g" "$file"
  done
}
"#;

/// Where an operating system looks for authorities of its owner, and what makes it trust them.
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

/// The unit that a phase of a profile starts.
fn first_unit(phase: &Value) -> Option<&'static str> {
    let each = |list: &str| phase[list].as_sequence().cloned().unwrap_or_default();
    let units = each("units")
        .into_iter()
        .filter_map(|unit| Some(unit["name"].as_str()?.to_owned()));
    let paths = each("files")
        .into_iter()
        .filter_map(|file| Some(file["path"].as_str()?.to_owned()));
    let names: Vec<String> = units.chain(paths).collect();
    let is_there = |unit: &&str| {
        names
            .iter()
            .any(|name| name.rsplit('/').next() == Some(unit))
    };
    ["bootstrap.service", "setup.service"]
        .into_iter()
        .find(is_there)
}

/// A file of a profile. Profiles have modes as decimal numbers that look like octal ones.
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
