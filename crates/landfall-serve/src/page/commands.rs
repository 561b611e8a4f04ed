//! The commands that fetch an item, ready to be pasted into a shell.

use crate::catalog::ItemListing;
use landfall_model::local_path;
use landfall_model::report::{EntryKind, shell_word};

/// The address at which the reader of the page reaches this server.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReaderAddress<'a> {
    /// The host with its port, as in `host:5000`.
    pub(super) host: &'a str,
    pub(super) is_tls: bool,
}

impl ReaderAddress<'_> {
    pub(super) fn url(self, path: &str) -> String {
        let scheme = if self.is_tls { "https" } else { "http" };
        format!("{scheme}://{}{path}", self.host)
    }
}

/// A command, and the tool or purpose that the page names.
pub(super) struct FetchCommand {
    pub(super) tool: &'static str,
    pub(super) line: String,
}

impl FetchCommand {
    fn new(tool: &'static str, line: String) -> FetchCommand {
        FetchCommand { tool, line }
    }
}

/// The commands for `item`, the most common tool first.
pub(super) fn fetch_commands(item: &ItemListing, address: ReaderAddress<'_>) -> Vec<FetchCommand> {
    match item.kind {
        EntryKind::Image => image_commands(item, address),
        EntryKind::Chart => vec![chart_command(item, address)],
        _ => file_commands(item, address),
    }
}

/// Whether the command needs an option for plain http. If the item is in another registry, the
/// scheme is in the clients' own configuration.
fn needs_plain_http(item: &ItemListing, address: ReaderAddress<'_>) -> bool {
    item.registry.is_none() && !address.is_tls
}

fn registry_host<'a>(item: &'a ItemListing, address: ReaderAddress<'a>) -> &'a str {
    item.registry.as_deref().unwrap_or(address.host)
}

fn image_commands(item: &ItemListing, address: ReaderAddress<'_>) -> Vec<FetchCommand> {
    let host = registry_host(item, address);
    let name = shell_word(&format!("{host}/{}", item.repository_tag));
    let (podman_flag, ctr_flag) = if needs_plain_http(item, address) {
        ("--tls-verify=false ", "--plain-http ")
    } else {
        ("", "")
    };
    vec![
        // docker and crictl have no flag for plain http
        FetchCommand::new("docker", format!("docker pull {name}")),
        FetchCommand::new("podman", format!("podman pull {podman_flag}{name}")),
        FetchCommand::new(
            "ctr",
            format!("ctr --namespace k8s.io images pull {ctr_flag}{name}"),
        ),
        FetchCommand::new("crictl", format!("crictl pull {name}")),
    ]
}

fn chart_command(item: &ItemListing, address: ReaderAddress<'_>) -> FetchCommand {
    let host = registry_host(item, address);
    let (chart, tag) = item
        .repository_tag
        .rsplit_once(':')
        .unwrap_or((&item.repository_tag, ""));
    // no tag can contain the plus sign of a version, so Helm writes it as an underscore
    let version = shell_word(&tag.replace('_', "+"));
    let chart = shell_word(&format!("oci://{host}/{chart}"));
    let flag = if needs_plain_http(item, address) {
        " --plain-http"
    } else {
        ""
    };
    FetchCommand::new(
        "helm",
        format!("helm pull {chart} --version {version}{flag}"),
    )
}

fn file_commands(item: &ItemListing, address: ReaderAddress<'_>) -> Vec<FetchCommand> {
    let Some(link) = &item.link else {
        return Vec::new();
    };
    let file_name = file_name(&item.name);
    let output = shell_word(file_name);
    let url = shell_word(&address.url(link));
    // a system tool, so that the check does not require landfall
    let checksum_tool = match item.digest.algorithm().as_str() {
        "sha512" => "sha512sum",
        _ => "sha256sum",
    };
    let checksum = shell_word(&format!("{}  {file_name}", item.digest.hex()));
    let mut commands = vec![
        FetchCommand::new(
            "curl",
            format!("curl --fail --location --output {output} {url}"),
        ),
        FetchCommand::new(
            "verify",
            format!("echo {checksum} | {checksum_tool} --check"),
        ),
    ];
    // a file next to the manifest has no URL of its own
    if local_path(&item.name).is_none() {
        let connect_to = shell_word(&format!("::{}", address.host));
        let original_url = shell_word(&item.name);
        commands.push(FetchCommand::new(
            "original URL",
            format!("curl --fail --output {output} --connect-to {connect_to} {original_url}"),
        ));
    }
    commands
}

/// The last component of the path of a URL or of a file next to the manifest.
fn file_name(name: &str) -> &str {
    let path = match local_path(name) {
        Some(path) => path,
        None => name.split(['?', '#']).next().unwrap_or(name),
    };
    match path.rsplit('/').next() {
        Some(name) if !name.is_empty() => name,
        _ => "file",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use landfall_model::Digest;

    fn item(kind: EntryKind, name: &str, repository_tag: &str) -> ItemListing {
        let item = ItemListing::new(
            kind,
            name.into(),
            repository_tag.into(),
            Digest::sha256(b"x"),
        );
        ItemListing {
            link: crate::catalog::file_link(name),
            ..item
        }
    }

    fn of(item: &ItemListing, is_tls: bool) -> Vec<String> {
        fetch_commands(
            item,
            ReaderAddress {
                host: "m:5000",
                is_tls,
            },
        )
        .into_iter()
        .map(|command| command.line)
        .collect()
    }

    #[test]
    fn plain_http_is_selected_for_this_server_and_not_for_another_registry() {
        let image = item(EntryKind::Image, "quay.io/a/b:v1", "a/b:v1");
        assert_eq!(
            of(&image, false)[1],
            "podman pull --tls-verify=false m:5000/a/b:v1"
        );
        assert_eq!(of(&image, true)[1], "podman pull m:5000/a/b:v1");
        let elsewhere = ItemListing {
            registry: Some("far:443".into()),
            ..image
        };
        assert_eq!(
            of(&elsewhere, false)[2],
            "ctr --namespace k8s.io images pull far:443/a/b:v1"
        );
        let chart = item(EntryKind::Chart, "x", "charts/app:1.2.3_b1");
        assert_eq!(
            of(&chart, false),
            ["helm pull oci://m:5000/charts/app --version 1.2.3+b1 --plain-http"]
        );
    }

    #[test]
    fn a_file_next_to_the_manifest_has_no_original_url() {
        for (name, output) in [("local:setup.sh", "setup.sh"), ("local:a/b#1", "b#1")] {
            let local = item(EntryKind::File, name, "f:1");
            let commands = of(&local, true);
            assert_eq!(commands.len(), 2, "{commands:?}");
            let begin = format!("curl --fail --location --output {} ", shell_word(output));
            assert!(commands[0].starts_with(&begin), "{commands:?}");
        }
    }

    #[test]
    fn a_hostile_name_is_quoted_as_one_shell_word() {
        let hostile = item(EntryKind::File, "https://h/$(reboot)';x?y=1", "f:1");
        for command in of(&hostile, false) {
            // `'\''` ends the quoted part, adds a literal quote and begins a quoted part again
            let bare: String = command
                .replace(r"'\''", "")
                .split('\'')
                .step_by(2)
                .collect();
            assert!(!bare.contains('$') && !bare.contains(";x"), "{command}");
        }
    }
}
