//! Finds settings with which containerd ignores hosts.toml files, or does not load its CRI plugin.
//!
//! The rules are those of containerd 1.6 to 2.4: `internal/cri/config/config.go`,
//! `internal/cri/server/images/image_pull.go` and `cmd/containerd/server/config/config.go`.

use super::CheckStatus::{No, Note};
use super::steps::DiagnosisSteps;
use serde_json::Value;

/// A configuration file of containerd.
pub(super) struct ContainerdFile {
    pub(super) name: String,
    pub(super) root: Value,
}

/// The plugins that have a table `registry`, by the version of the file. Version 4, which
/// containerd 2.3 and newer read, has that of version 3.
const VERSION_1: &str = "cri";
const VERSION_2: &str = "io.containerd.grpc.v1.cri";
const VERSION_3: &str = "io.containerd.cri.v1.images";
/// The other plugin that CRI consists of in containerd 2.
const RUNTIME: &str = "io.containerd.cri.v1.runtime";
/// The plugin that pulls for CRI since 2.1.
const TRANSFER: &str = "io.containerd.transfer.v1.local";
/// The folder that `landfall render containerd` writes.
const FOLDER: &str = "/etc/containerd/certs.d";

impl ContainerdFile {
    /// The version of the format. containerd reads a file without a version as version 1.
    fn version(&self) -> i64 {
        self.root
            .get("version")
            .and_then(Value::as_i64)
            .unwrap_or(1)
    }

    fn plugin(&self, name: &str) -> Option<&Value> {
        self.root.get("plugins")?.get(name)
    }

    fn has_registry(&self, plugin: &str) -> bool {
        is_set(self.plugin(plugin).and_then(|one| one.get("registry")))
    }

    /// The plugin whose `registry` containerd reads from this file. containerd 2 also reads that of
    /// version 3 from a file of version 2, unless the plugin of version 2 has one (`migrateConfig`
    /// in `plugins/cri/images/plugin.go`).
    fn plugin_name(&self) -> &'static str {
        match self.version() {
            ..=1 => VERSION_1,
            2 if !self.has_registry(VERSION_2) && self.has_registry(VERSION_3) => VERSION_3,
            2 => VERSION_2,
            _ => VERSION_3,
        }
    }

    /// Whether only containerd 2 reads `registry` of this file.
    fn is_for_second(&self) -> bool {
        self.plugin_name() == VERSION_3
    }

    /// A key of the table `registry` that containerd reads.
    fn registry(&self, key: &str) -> Option<&Value> {
        self.plugin(self.plugin_name())?.get("registry")?.get(key)
    }
}

/// Whether a table or text is there and not empty.
fn is_set(value: Option<&Value>) -> bool {
    match value {
        Some(Value::Object(members)) => !members.is_empty(),
        Some(Value::String(text)) => !text.is_empty(),
        _ => false,
    }
}

/// The folder of the hosts.toml files: the last `config_path`, or its first folder.
pub(super) fn hosts_folder(files: &[ContainerdFile]) -> Option<&str> {
    let mut paths = files.iter().rev().filter_map(|file| {
        let path = file.registry("config_path")?.as_str()?;
        path.split(':').find(|folder| !folder.is_empty())
    });
    paths.next()
}

/// Whether runc puts containers into units of systemd.
pub(super) fn has_systemd_cgroup(files: &[ContainerdFile]) -> bool {
    let set = |file: &ContainerdFile| {
        [VERSION_1, VERSION_2, RUNTIME].iter().find_map(|plugin| {
            let containerd = file.plugin(plugin)?.get("containerd")?;
            let options = containerd.get("runtimes")?.get("runc")?.get("options")?;
            options.get("SystemdCgroup")?.as_bool()
        })
    };
    files.iter().rev().find_map(set).unwrap_or(false)
}

/// Checks a configuration and the files that it imports, of which later ones win. `absent` are the
/// imported files that could not be read.
pub(super) fn lint_containerd(files: &[ContainerdFile], absent: &[String]) -> DiagnosisSteps {
    let mut steps = DiagnosisSteps::default();
    for file in files {
        report_ignored(file, &mut steps);
    }
    report_imports(files, absent, &mut steps);
    // the last file that sets a key wins
    let last = |key: &str| {
        let mut files = files.iter().rev();
        files.find_map(|file| file.registry(key).filter(|value| is_set(Some(value))))
    };
    let path = last("config_path").and_then(Value::as_str);
    if last("mirrors").is_some() {
        let is_second = files.iter().any(ContainerdFile::is_for_second);
        report_mirrors(path, is_second, &mut steps);
    } else {
        report_path(files, path, &mut steps);
    }
    let configs = last("configs").and_then(Value::as_object);
    let has_tls = configs
        .into_iter()
        .flat_map(|all| all.values())
        .any(|host| is_set(host.get("tls")));
    if has_tls && path.is_some() {
        let says = "registry.configs has `tls` beside config_path: containerd 1.x does not load \
                    its CRI plugin, and containerd 2 ignores `tls`";
        steps.no("tls", says);
        steps.fix(
            "remove `tls`; write `ca`, `client` or `skip_verify` to the hosts.toml of the host",
        );
    }
    report_transfer(files, &mut steps);
    steps
}

/// Reports what containerd ignores in a file: plugins that are disabled, and tables of another
/// version of the format.
fn report_ignored(file: &ContainerdFile, steps: &mut DiagnosisSteps) {
    let name = &file.name;
    let disabled = file.root.get("disabled_plugins").and_then(Value::as_array);
    let mut disabled = disabled.into_iter().flatten().filter_map(Value::as_str);
    let of_cri = [VERSION_1, VERSION_2, VERSION_3, RUNTIME];
    if let Some(plugin) = disabled.find(|one| of_cri.contains(one)) {
        let says = format!("{name} disables the plugin '{plugin}', so the kubelet has no runtime");
        steps.no("plugin", says);
        steps.fix("remove it from disabled_plugins");
    }
    let read = file.plugin_name();
    for plugin in of_cri {
        if plugin == read || !file.has_registry(plugin) {
            continue;
        }
        let (says, fix) = match (file.version(), plugin) {
            (..=1, _) => (
                format!(
                    "{name} has no `version` or version 1, so containerd up to 2.2 ignores \
                     plugins.'{plugin}'"
                ),
                "write `version = 2` for containerd 1.x, or `version = 3` for containerd 2, as the \
                 first line"
                    .to_owned(),
            ),
            // 2.3 and newer migrate this plugin from every version below 4
            (3, VERSION_2) => (
                format!(
                    "{name} has version 3: containerd 2.0 to 2.2 ignores `registry` of \
                     plugins.'{plugin}', and newer ones prefer it"
                ),
                format!("move `registry` to plugins.'{read}'"),
            ),
            (version, _) => (
                format!("{name} has version {version}: containerd ignores `registry` of plugins.'{plugin}'"),
                format!("move `registry` to plugins.'{read}'"),
            ),
        };
        steps.no("plugin", says);
        steps.fix(fix);
    }
    if file.version() == 2 && file.is_for_second() {
        let says = format!("{name} has version 2: containerd 1.x ignores plugins.'{read}'");
        steps.note("plugin", says);
        steps.fix(format!(
            "for containerd 1.x, move `registry` to plugins.'{VERSION_2}'; for containerd 2, write \
             `version = 3`"
        ));
    }
    if read == VERSION_1 && file.has_registry(VERSION_1) {
        let says = format!(
            "{name} has no `version` or version 1: containerd 2.0 to 2.2 ignores plugins.cri"
        );
        steps.no("plugin", says);
        steps.fix(format!(
            "write `version = 2` as the first line, and rename the plugin to '{VERSION_2}'"
        ));
    }
}

fn report_imports(files: &[ContainerdFile], absent: &[String], steps: &mut DiagnosisSteps) {
    for pattern in absent {
        let says = format!("imports {pattern}, of which this machine has no file");
        steps.note("imports", says);
        steps.fix("run doctor on the node, or copy the imported files too");
    }
    let with_table = files
        .iter()
        .filter(|file| file.version() == 2 && is_set(file.plugin(VERSION_2)));
    let names: Vec<&str> = with_table.map(|file| file.name.as_str()).collect();
    if let [_, .., last] = names[..] {
        let says = format!(
            "{} have a table plugins.'{VERSION_2}': containerd 1.x uses only that of {last}",
            names.join(" and ")
        );
        steps.note("imports", says);
        steps.fix("for containerd 1.x, keep the whole table in one file");
    }
}

/// Reports `registry.mirrors`, with which no hosts.toml is read. Kubespray, KubeOne and others
/// write it for containerd 1.x, which uses these mirrors; `is_second` is whether the file is for
/// containerd 2.
fn report_mirrors(path: Option<&str>, is_second: bool, steps: &mut DiagnosisSteps) {
    let (verdict, says) = match path {
        Some(_) => (
            No,
            "registry.mirrors beside config_path: containerd does not load its CRI plugin, \
                    so the kubelet has no runtime",
        ),
        None => (
            if is_second { No } else { Note },
            "registry.mirrors without config_path: containerd uses these mirrors and reads no \
                 hosts.toml; 2.2.0 and 2.2.1 do not load their CRI plugin, because their default \
                 config_path is set",
        ),
    };
    steps.say("mirrors", verdict, says);
    steps.fix(format!(
        "remove registry.mirrors, set config_path = \"{FOLDER}\", and write hosts.toml files \
         (landfall render containerd)"
    ));
}

/// Reports the folder of the hosts.toml files.
fn report_path(files: &[ContainerdFile], path: Option<&str>, steps: &mut DiagnosisSteps) {
    let version = files.iter().map(ContainerdFile::version).max();
    let read = match version {
        Some(..=1) | None => "io.containerd.grpc.v1.cri",
        Some(2) => VERSION_2,
        Some(_) => VERSION_3,
    };
    let fix = format!("[plugins.'{read}'.registry] config_path = \"{FOLDER}\"");
    match path {
        None => {
            let says = "config_path is not set: containerd 1.x to 2.1 reads no hosts.toml, and \
                        the default of 2.2 and newer, two folders with a colon between them, is \
                        ignored by their transfer service";
            steps.no("config_path", says);
            steps.fix(fix);
        }
        Some(path) if path.contains(':') => {
            let pulls_locally = pulls_locally(files);
            let is_second = files.iter().any(ContainerdFile::is_for_second);
            let verdict = if is_second && !pulls_locally {
                No
            } else {
                Note
            };
            let says = format!(
                "config_path is '{path}': since 2.1, containerd pulls by its transfer service, \
                 which takes the text as one folder and reads no hosts.toml{}",
                if pulls_locally {
                    "; this configuration makes it pull locally, which splits the text"
                } else {
                    ""
                }
            );
            steps.say("config_path", verdict, says);
            let first = path.split(':').find(|path| !path.is_empty());
            steps.fix(format!(
                "name one folder: config_path = \"{}\"",
                first.unwrap_or(FOLDER)
            ));
        }
        Some(path) if !path.starts_with('/') => {
            let says = format!("config_path is '{path}', which is not an absolute path");
            steps.no("config_path", says);
            steps.fix(fix);
        }
        Some(path) => {
            let other = if path.trim_end_matches('/') == FOLDER {
                String::new()
            } else {
                format!("; `landfall render containerd` writes {FOLDER}")
            };
            let says = format!("hosts.toml files are read from {path}{other}");
            steps.ok("config_path", says);
        }
    }
}

/// Whether containerd 2.1 and newer pull without the transfer service: by its setting, or because
/// of settings that the transfer service does not support.
fn pulls_locally(files: &[ContainerdFile]) -> bool {
    files.iter().any(|file| {
        let plugin = file.plugin(file.plugin_name());
        // version 2 has some of the settings in a table below
        let below = plugin.and_then(|plugin| plugin.get("containerd"));
        let tables = [plugin, below];
        let key = |key: &str| {
            tables
                .into_iter()
                .flatten()
                .find_map(|table| table.get(key))
        };
        let is_true = |name: &str| key(name).and_then(Value::as_bool) == Some(true);
        is_true("use_local_image_pull")
            || is_true("discard_unpacked_layers")
            || is_true("image_pull_with_sync_fs")
            || key("disable_snapshot_annotations").and_then(Value::as_bool) == Some(false)
            || key("max_concurrent_downloads")
                .and_then(Value::as_i64)
                .is_some_and(|n| n != 3)
            || is_set(file.registry("configs"))
            || is_set(file.registry("auths"))
    })
}

/// Reports the folder of the transfer service, which clients other than the kubelet use.
fn report_transfer(files: &[ContainerdFile], steps: &mut DiagnosisSteps) {
    let path = files.iter().rev().find_map(|file| {
        let path = file.plugin(TRANSFER)?.get("config_path")?.as_str()?;
        (!path.is_empty()).then_some(path)
    });
    if let Some(path) = path.filter(|path| path.contains(':')) {
        let says = format!("config_path of '{TRANSFER}' is '{path}', which it takes as one folder");
        steps.no("transfer", says);
        steps.fix(format!("name one folder: config_path = \"{FOLDER}\""));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The checks of files with these texts, as `verdict check`.
    fn checks(texts: &[&str]) -> Vec<String> {
        let files: Vec<ContainerdFile> = texts
            .iter()
            .enumerate()
            .map(|(at, text)| ContainerdFile {
                name: format!("{at}.toml"),
                root: basic_toml::from_str(text).unwrap(),
            })
            .collect();
        let steps = lint_containerd(&files, &[]);
        let steps = steps.0.iter();
        steps
            .map(|step| format!("{} {}", step.verdict, step.check))
            .collect()
    }

    fn registry(version: i64, plugin: &str, text: &str) -> String {
        format!("version = {version}\n[plugins.\"{plugin}\".registry]\n{text}\n")
    }

    const ONE: &str = "config_path = \"/etc/containerd/certs.d\"";
    const PAIR: &str = "config_path = '/etc/containerd/certs.d:/etc/docker/certs.d'";
    const MIRRORS: &str = "mirrors = {\"docker.io\" = {endpoint = [\"http://m:5000\"]}}";
    const TLS: &str = "configs = {\"m:5000\" = {tls = {insecure_skip_verify = true}}}";

    #[test]
    fn one_folder_in_the_right_table_is_good() {
        for (version, plugin) in [(2, VERSION_2), (3, VERSION_3), (4, VERSION_3)] {
            assert_eq!(
                checks(&[&registry(version, plugin, ONE)]),
                ["ok config_path"]
            );
            let other = registry(version, plugin, "config_path = \"/x\"\nmirrors = {}");
            assert_eq!(checks(&[&other]), ["ok config_path"]);
        }
    }

    #[test]
    fn settings_with_which_no_hosts_toml_is_read_are_reported() {
        let lines = |version: i64, plugin: &str, text: &[&str]| {
            checks(&[&registry(version, plugin, &text.join("\n"))])
        };
        assert_eq!(checks(&["version = 3"]), ["NO config_path"]);
        assert_eq!(
            lines(3, VERSION_3, &["config_path = \"\""]),
            ["NO config_path"]
        );
        // containerd 2.3 and newer write version 4
        for version in [3, 4] {
            assert_eq!(lines(version, VERSION_3, &[PAIR]), ["NO config_path"]);
        }
        assert_eq!(lines(2, VERSION_2, &[PAIR]), ["note config_path"]);
        assert_eq!(lines(3, VERSION_3, &[MIRRORS]), ["NO mirrors"]);
        assert_eq!(lines(3, VERSION_3, &[MIRRORS, ONE]), ["NO mirrors"]);
        assert_eq!(lines(2, VERSION_2, &[MIRRORS, PAIR]), ["NO mirrors"]);
        // as Kubespray writes it by default
        assert_eq!(lines(2, VERSION_2, &[MIRRORS]), ["note mirrors"]);
        assert_eq!(lines(2, VERSION_2, &[MIRRORS, TLS]), ["note mirrors"]);
        assert_eq!(
            lines(2, VERSION_2, &[ONE, TLS]),
            ["ok config_path", "NO tls"]
        );
        assert_eq!(
            lines(3, VERSION_3, &["config_path = \"certs.d\""]),
            ["NO config_path"]
        );
    }

    #[test]
    fn a_pair_is_split_if_images_are_pulled_without_the_transfer_service() {
        let plugin = format!("version = 3\n[plugins.\"{VERSION_3}\"]\n");
        for text in [
            "use_local_image_pull = true",
            "max_concurrent_downloads = 10",
        ] {
            let text = format!("{plugin}{text}\nregistry = {{{PAIR}}}\n");
            assert_eq!(checks(&[&text]), ["note config_path"], "{text}");
        }
        let auth = "configs = {\"m:5000\" = {auth = {username = \"u\", password = \"p\"}}}";
        let text = registry(3, VERSION_3, &format!("{PAIR}\n{auth}"));
        assert_eq!(checks(&[&text]), ["note config_path"]);
    }

    #[test]
    fn tables_of_another_version_are_ignored() {
        for (version, plugin) in [
            (3, VERSION_2),
            (2, VERSION_1),
            (3, VERSION_1),
            (3, RUNTIME),
            (4, VERSION_2),
        ] {
            let found = checks(&[&registry(version, plugin, ONE)]);
            assert_eq!(found, ["NO plugin", "NO config_path"], "{version} {plugin}");
        }
        // containerd 2 reads the plugin of version 3 from version 2 too, if there is no other table
        let newer = registry(2, VERSION_3, ONE);
        assert_eq!(checks(&[&newer]), ["note plugin", "ok config_path"]);
        let newer = registry(2, VERSION_3, PAIR);
        assert_eq!(checks(&[&newer]), ["note plugin", "NO config_path"]);
        let both = newer + &format!("[plugins.\"{VERSION_2}\".registry]\n{ONE}\n");
        assert_eq!(checks(&[&both]), ["NO plugin", "ok config_path"]);
        // without a version
        let text = format!("[plugins.\"{VERSION_2}\".registry]\n{ONE}\n");
        assert_eq!(checks(&[&text]), ["NO plugin", "NO config_path"]);
        let text = format!("[plugins.cri.registry]\n{ONE}\n");
        assert_eq!(checks(&[&text]), ["NO plugin", "ok config_path"]);
        for (version, plugin) in [(2, VERSION_1), (3, RUNTIME)] {
            let text = format!("version = {version}\ndisabled_plugins = [\"{plugin}\"]");
            assert_eq!(checks(&[&text]), ["NO plugin", "NO config_path"]);
        }
    }

    #[test]
    fn imported_files_win_and_replace_tables_in_containerd_1() {
        let pair = registry(3, VERSION_3, PAIR);
        assert_eq!(
            checks(&[&pair, &registry(3, VERSION_3, ONE)]),
            ["ok config_path"]
        );
        let beside = checks(&[&pair, &registry(3, VERSION_3, MIRRORS)]);
        assert_eq!(beside, ["NO mirrors"]);
        let old = registry(2, VERSION_2, ONE);
        assert_eq!(checks(&[&old, &old]), ["note imports", "ok config_path"]);
    }

    #[test]
    fn the_transfer_service_takes_one_folder() {
        let text = registry(3, VERSION_3, ONE) + &format!("[plugins.\"{TRANSFER}\"]\n{PAIR}\n");
        assert_eq!(checks(&[&text]), ["ok config_path", "NO transfer"]);
    }
}
