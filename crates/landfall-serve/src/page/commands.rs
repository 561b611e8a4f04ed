//! The commands that get an item, each as somebody would type it.

use crate::bundles::ItemListing;
use landfall_model::report::{EntryKind, shell_word};

/// How the reader reaches what is served.
#[derive(Debug, Clone, Copy)]
pub(super) struct Here<'a> {
    /// `host[:port]`.
    pub(super) host: &'a str,
    /// Whether https is spoken there.
    pub(super) is_tls: bool,
}

impl Here<'_> {
    pub(super) fn url(self, path: &str) -> String {
        format!(
            "{}://{}{path}",
            if self.is_tls { "https" } else { "http" },
            self.host
        )
    }
}

/// Tool and command, the usual one first.
pub(super) fn commands(item: &ItemListing, here: Here<'_>) -> Vec<(&'static str, String)> {
    // what another registry holds is asked for there, in the scheme that its clients know
    let plain = |flag| {
        if item.registry.is_none() && !here.is_tls {
            flag
        } else {
            ""
        }
    };
    let host = item.registry.as_deref().unwrap_or(here.host);
    let name = shell_word(&format!("{host}/{}", item.repository_tag));
    match item.kind {
        EntryKind::Image => vec![
            ("docker", format!("docker pull {name}")),
            (
                "podman",
                format!("podman pull {}{name}", plain("--tls-verify=false ")),
            ),
            (
                "ctr",
                format!(
                    "ctr --namespace k8s.io images pull {}{name}",
                    plain("--plain-http ")
                ),
            ),
            ("crictl", format!("crictl pull {name}")),
        ],
        EntryKind::Chart => {
            let (chart, tag) = item
                .repository_tag
                .rsplit_once(':')
                .unwrap_or((&item.repository_tag, ""));
            // a tag cannot hold the plus sign of a version
            let version = shell_word(&tag.replace('_', "+"));
            let chart = shell_word(&format!("oci://{host}/{chart}"));
            let flag = plain(" --plain-http");
            vec![(
                "helm",
                format!("helm pull {chart} --version {version}{flag}"),
            )]
        }
        _ => file(item, here),
    }
}

fn file(item: &ItemListing, here: Here<'_>) -> Vec<(&'static str, String)> {
    let Some(link) = &item.link else {
        return Vec::new();
    };
    let title = item
        .name
        .split(['?', '#'])
        .next()
        .and_then(|path| path.rsplit('/').next());
    let title = title.filter(|title| !title.is_empty()).unwrap_or("file");
    let (to, url) = (shell_word(title), shell_word(&here.url(link)));
    let sum = match item.digest.algorithm().as_str() {
        "sha512" => "sha512sum",
        _ => "sha256sum",
    };
    let check = shell_word(&format!("{}  {title}", item.digest.hex()));
    let pinned = shell_word(&format!("::{}", here.host));
    vec![
        (
            "curl",
            format!("curl --fail --location --output {to} {url}"),
        ),
        ("check", format!("echo {check} | {sum} --check")),
        (
            "its own URL",
            format!(
                "curl --fail --output {to} --connect-to {pinned} {}",
                shell_word(&item.name)
            ),
        ),
    ]
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
            link: crate::file_table::link(name),
            ..item
        }
    }

    fn of(item: &ItemListing, is_tls: bool) -> Vec<String> {
        commands(
            item,
            Here {
                host: "m:5000",
                is_tls,
            },
        )
        .into_iter()
        .map(|(_, command)| command)
        .collect()
    }

    #[test]
    fn each_tool_is_told_whether_to_speak_plain_http() {
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
    fn a_hostile_name_is_one_word_of_the_shell() {
        let hostile = item(EntryKind::File, "https://h/$(reboot)';x?y=1", "f:1");
        for command in of(&hostile, false) {
            // a quote within quotes ends them, and begins them again
            let bare: String = command
                .replace(r"'\''", "")
                .split('\'')
                .step_by(2)
                .collect();
            assert!(!bare.contains('$') && !bare.contains(";x"), "{command}");
        }
    }
}
