//! Examples of each verb, for its help and its manual page.

use clap::Command;
use std::fmt::Write as _;

/// A command line, and its effect.
type Example = (&'static str, &'static str);

/// The examples of each verb. A line is at most 70 columns, so that a manual page can indent it.
const EXAMPLES: &[(&str, &[Example])] = &[
    (
        "init",
        &[
            ("landfall init", "Write manifest.yaml and site.yaml"),
            (
                "landfall init images.txt --to 172.20.0.2:5000",
                "Start from a list of images, for this registry",
            ),
            (
                "landfall init --from kubermatic -o kkp",
                "Start from a manifest that landfall ships",
            ),
        ],
    ),
    (
        "lock",
        &[
            ("landfall lock -f manifest.yaml", "Write landfall.lock"),
            (
                "landfall lock -f manifest.yaml --check",
                "Exit with 4 if a tag moved upstream",
            ),
        ],
    ),
    (
        "pull",
        &[
            ("landfall pull", "Download into the store"),
            (
                "landfall pull --bundle bundle.tar.zst",
                "Download straight into a bundle",
            ),
        ],
    ),
    (
        "pack",
        &[
            ("landfall pack -o bundle.tar.zst", "Pack one file"),
            (
                "landfall pack -o b.tar.zst --volume-size 4GiB --sign key",
                "Pack signed volumes",
            ),
            (
                "landfall pack -o delta.tar.zst --since old.tar.zst",
                "Pack only what the old bundle lacks",
            ),
        ],
    ),
    (
        "verify",
        &[
            ("landfall verify bundle.tar.zst", "Check every byte"),
            (
                "landfall verify bundle.tar.zst --allowed-signers signers",
                "Also check who signed it",
            ),
        ],
    ),
    (
        "push",
        &[
            (
                "landfall push bundle.tar.zst --to 172.20.0.2:5000",
                "Upload a bundle",
            ),
            (
                "landfall push bundle.tar.zst --site site.yaml --dry-run",
                "Show what would be uploaded",
            ),
        ],
    ),
    (
        "serve",
        &[
            (
                "landfall serve bundle.tar.zst --listen 0.0.0.0:5000",
                "Serve a bundle as a registry",
            ),
            (
                "landfall serve --writable data --htpasswd users",
                "Serve a registry that accepts pushes",
            ),
        ],
    ),
    (
        "rewrite",
        &[
            (
                "landfall rewrite deploy/ --to 172.20.0.2:5000 --diff",
                "Show the changes",
            ),
            (
                "landfall rewrite deploy/ --to 172.20.0.2:5000 --in-place",
                "Change the files",
            ),
        ],
    ),
    (
        "render",
        &[
            ("landfall render --list", "List the platforms"),
            (
                "landfall render containerd --site site.yaml -o node",
                "Write the configuration of containerd",
            ),
        ],
    ),
    (
        "discover",
        &[(
            "landfall discover deploy/ charts/ -o manifest.yaml",
            "Draft a manifest from manifests and charts",
        )],
    ),
    (
        "import",
        &[(
            "landfall import hauler hauler.yaml -o new",
            "Write new/manifest.yaml",
        )],
    ),
    (
        "update",
        &[
            (
                "landfall update -f manifest.yaml --check",
                "Exit with 4 if there are newer versions",
            ),
            (
                "landfall update -f manifest.yaml --only grafana",
                "Update one variable or image",
            ),
        ],
    ),
    (
        "refresh",
        &[(
            "landfall refresh -f manifest.yaml -o bundle.tar.zst",
            "Update, lock, pull and pack what is new",
        )],
    ),
    (
        "diff",
        &[
            (
                "landfall diff old.lock landfall.lock --output markdown",
                "Compare two locks, for a pull request",
            ),
            (
                "landfall diff old.tar.zst landfall.lock --patches",
                "Estimate the size of a bundle with patches",
            ),
        ],
    ),
    (
        "sign",
        &[(
            "landfall sign bundle.tar.zst --key ~/.ssh/id_ed25519",
            "Add a signature",
        )],
    ),
    ("ls", &[("landfall ls bundle.tar.zst", "List a bundle")]),
    (
        "report",
        &[
            (
                "landfall report bundle.tar.zst -o bundle.html",
                "Write an HTML page",
            ),
            (
                "landfall report bundle.tar.zst --log log.jsonl -o b.html",
                "Also show the history of the bundle",
            ),
        ],
    ),
    (
        "log",
        &[(
            "landfall log verify landfall.log.jsonl",
            "Find changed or removed records",
        )],
    ),
    (
        "sbom",
        &[(
            "landfall sbom bundle.tar.zst -o bundle.cdx.json",
            "Write a CycloneDX document",
        )],
    ),
    (
        "export",
        &[
            (
                "landfall export images bundle.tar.zst -o images.tar",
                "Write an archive for ctr, nerdctl, k3s and RKE2",
            ),
            (
                "landfall export files bundle.tar.zst -o www",
                "Write the files for a web server",
            ),
        ],
    ),
    (
        "mirror",
        &[(
            "landfall mirror -f manifest.yaml --to 172.20.0.2:5000",
            "Copy from upstream to a registry",
        )],
    ),
    (
        "status",
        &[(
            "landfall status landfall.lock --registry 172.20.0.2:5000",
            "Show what the registry lacks",
        )],
    ),
    (
        "publish",
        &[(
            "landfall publish landfall.lock --store s3://bucket/store",
            "Switch the servers of this store to the lock",
        )],
    ),
    (
        "gc",
        &[(
            "landfall gc --lock landfall.lock --dry-run",
            "Show what would be removed from the store",
        )],
    ),
    (
        "audit",
        &[(
            "landfall audit deploy/ --lock landfall.lock",
            "Exit with 4 if the lock lacks an image",
        )],
    ),
    (
        "egress",
        &[
            ("landfall egress", "List the hosts, for a ticket"),
            (
                "landfall egress --format cilium",
                "Write a policy that allows these hosts",
            ),
        ],
    ),
    (
        "doctor",
        &[
            ("landfall doctor --site site.yaml", "Check a site"),
            ("landfall doctor quay.io", "Check one host"),
            (
                "landfall doctor /etc/containerd/config.toml",
                "Check the configuration of a node",
            ),
            (
                "landfall doctor node --bundle release.tar.zst",
                "Check this machine as a node of Kubernetes",
            ),
        ],
    ),
    (
        "schema",
        &[("landfall schema site", "Print the schema of site.yaml")],
    ),
    (
        "help",
        &[("landfall help signing", "Show a page of the manual")],
    ),
    (
        "man",
        &[("landfall man export images", "Show a manual page")],
    ),
    (
        "completions",
        &[(
            "landfall completions bash > landfall.bash",
            "Write the completions of bash",
        )],
    ),
];

/// The examples of a verb.
pub(super) fn examples_of(verb: &str) -> &'static [Example] {
    EXAMPLES
        .iter()
        .find(|(name, _)| *name == verb)
        .map_or(&[], |(_, examples)| examples)
}

/// `command` with the examples of each verb at the end of its help.
pub(super) fn add_examples(command: Command) -> Command {
    command.mut_subcommands(|verb| {
        let mut text = "Examples:".to_owned();
        for (line, meaning) in examples_of(verb.get_name()) {
            let _ = write!(text, "\n  # {meaning}\n  {line}");
        }
        verb.after_help(text)
    })
}
