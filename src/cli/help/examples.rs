//! Examples of each verb, for its help and its manual page.

use clap::Command;
use std::fmt::Write as _;

/// The examples: for each, its effect, and the command line, which has the verb as its second word.
/// A line is at most 70 columns, so that a manual page can indent it.
const EXAMPLES: &str = "\
# Write manifest.yaml and site.yaml
landfall init
# Start from a list of images, for this registry
landfall init images.txt --to 172.20.0.2:5000
# Start from a manifest that landfall ships
landfall init --from kubermatic -o kkp

# Write landfall.lock
landfall lock -f manifest.yaml
# Exit with 4 if a tag moved upstream
landfall lock -f manifest.yaml --check

# Download into the store
landfall pull
# Download straight into a bundle
landfall pull --bundle bundle.tar.zst

# Pack one file
landfall pack -o bundle.tar.zst
# Pack signed volumes
landfall pack -o b.tar.zst --volume-size 4GiB --sign key
# Pack only what the old bundle lacks
landfall pack -o delta.tar.zst --since old.tar.zst

# Check every byte
landfall verify bundle.tar.zst
# Also check who signed it
landfall verify bundle.tar.zst --allowed-signers signers

# Upload a bundle
landfall push bundle.tar.zst --to 172.20.0.2:5000
# Show what would be uploaded
landfall push bundle.tar.zst --site site.yaml --dry-run

# Serve a bundle as a registry
landfall serve bundle.tar.zst --listen 0.0.0.0:5000
# Serve a registry that accepts pushes
landfall serve --writable data --htpasswd users

# Show the changes
landfall rewrite deploy/ --to 172.20.0.2:5000 --diff
# Change the files
landfall rewrite deploy/ --to 172.20.0.2:5000 --in-place

# List the platforms
landfall render --list
# Write the configuration of containerd
landfall render containerd --site site.yaml -o node

# Draft a manifest from manifests and charts
landfall discover deploy/ charts/ -o manifest.yaml

# Write new/manifest.yaml
landfall import hauler hauler.yaml -o new

# Exit with 4 if there are newer versions
landfall update -f manifest.yaml --check
# Update one variable or image
landfall update -f manifest.yaml --only grafana

# Update, lock, pull and pack what is new
landfall refresh -f manifest.yaml -o bundle.tar.zst

# Compare two locks, for a pull request
landfall diff old.lock landfall.lock --output markdown
# Estimate the size of a bundle with patches
landfall diff old.tar.zst landfall.lock --patches

# Add a signature
landfall sign bundle.tar.zst --key ~/.ssh/id_ed25519

# List a bundle
landfall ls bundle.tar.zst

# Write an HTML page
landfall report bundle.tar.zst -o bundle.html
# Also show the history of the bundle
landfall report bundle.tar.zst --log log.jsonl -o b.html

# Find changed or removed records
landfall log verify landfall.log.jsonl

# Write a CycloneDX document
landfall sbom bundle.tar.zst -o bundle.cdx.json

# Write an archive for ctr, nerdctl, k3s and RKE2
landfall export images bundle.tar.zst -o images.tar
# Write the files for a web server
landfall export files bundle.tar.zst -o www

# Copy from upstream to a registry
landfall mirror -f manifest.yaml --to 172.20.0.2:5000

# Show what the registry lacks
landfall status landfall.lock --registry 172.20.0.2:5000

# Switch the servers of this store to the lock
landfall publish landfall.lock --store s3://bucket/store

# Show what would be removed from the store
landfall gc --lock landfall.lock --dry-run

# Exit with 4 if the lock lacks an image
landfall audit deploy/ --lock landfall.lock

# List the hosts, for a ticket
landfall egress
# Write a policy that allows these hosts
landfall egress --format cilium

# Check a site
landfall doctor --site site.yaml
# Check one host
landfall doctor quay.io
# Check the configuration of a node
landfall doctor /etc/containerd/config.toml
# Check this machine as a node of Kubernetes
landfall doctor node --bundle release.tar.zst

# Print the schema of site.yaml
landfall schema site

# Show a page of the manual
landfall help signing

# Show a manual page
landfall man export images

# Write the completions of bash
landfall completions bash > landfall.bash
";

/// The examples of a verb: for each, its effect and the command line.
pub(super) fn examples_of(verb: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    EXAMPLES
        .split("# ")
        .filter_map(|example| example.trim_end().split_once('\n'))
        .filter(move |(_, line)| line.split(' ').nth(1) == Some(verb))
}

/// `command` with the examples of each verb at the end of its help.
pub(super) fn add_examples(command: Command) -> Command {
    command.mut_subcommands(|verb| {
        let mut text = "Examples:".to_owned();
        for (meaning, line) in examples_of(verb.get_name()) {
            let _ = write!(text, "\n  # {meaning}\n  {line}");
        }
        verb.after_help(text)
    })
}
