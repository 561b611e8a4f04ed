//! What stands beside a bundle for those who receive it: a README with the commands for this
//! bundle, and the manual pages.

use crate::cli::shared::bundle_report::MOST_MISSING;
use crate::cli::shared::failed_items::shortened;
use crate::cli::shared::listing::count;
use crate::cli::shared::{CliError, Exit};
use clap::Command;
use landfall_bundle::tar_header::{END, encode, padding};
use landfall_bundle::{PackPlan, Packaging};
use landfall_model::document::read_input;
use landfall_model::report::shell_word;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// The documents beside the bundle `out`, with what their names add to its own. `command` is that
/// of landfall.
pub(crate) fn documents(
    plan: &PackPlan,
    out: &Path,
    packaging: &Packaging,
    command: Command,
) -> Result<Vec<(String, Vec<u8>)>, CliError> {
    let cannot = |error: std::io::Error| {
        CliError::new(
            Exit::Failed,
            format!(
                "cannot make the manual pages beside {}: {error}",
                out.display()
            ),
        )
    };
    let pages = manual_pages(command).map_err(cannot)?;
    let readme = readme(plan, out, packaging).into_bytes();
    Ok(vec![
        (".README.txt".into(), readme),
        (".man.tar".into(), pages),
    ])
}

/// The commands for this bundle, in the order in which they are needed.
fn readme(plan: &PackPlan, out: &Path, packaging: &Packaging) -> String {
    let name = |path: &Path| {
        path.file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned()
    };
    let bundle = shell_word(&name(out));
    let program = packaging
        .tools
        .first()
        .map_or_else(|| "landfall".to_owned(), |tool| name(tool));
    let run = format!("./{}", shell_word(&program));
    let partial = if plan.missing.is_empty() {
        ""
    } else {
        " --allow-partial"
    };
    let bases = if plan.bases.is_empty() { "" } else { " BASE" };
    let mut text = format!(
        "{} - a bundle of landfall\n\nIt carries {}. Lock fingerprint: {}\n\
         Put your registry in place of REGISTRY, as in 172.20.0.2:5000 or registry.example.com/mirror.\n",
        name(out),
        count(&plan.items),
        plan.fingerprint,
    );
    if packaging.tools.len() > 1 {
        let programs: Vec<String> = packaging.tools.iter().map(|tool| name(tool)).collect();
        let _ = writeln!(
            text,
            "Programs for other machines are here too: {}.",
            programs.join(", ")
        );
    }
    if packaging.volume_size.is_some() {
        let _ = writeln!(
            text,
            "The bundle is split into volumes {bundle}.0001, {bundle}.0002, … All of them are needed."
        );
    }
    if !plan.bases.is_empty() {
        text += "It leaves out what an earlier bundle has. Name that bundle in place of BASE; a registry that took it needs no BASE.\n";
    }
    if !plan.missing.is_empty() {
        text += "It lacks:\n";
        shortened(plan.missing.iter().map(ToString::to_string), MOST_MISSING)
            .for_each(|line| text += &format!("  {line}\n"));
    }
    let _ = write!(
        text,
        "\n0. Check what was carried, without landfall:\n\n    sha256sum -c {bundle}.sha256sums\n\n\
         1. Verify that it is the bundle that was approved:\n\n    {run} verify {bundle} --expect {}{partial}\n",
        plan.fingerprint
    );
    if let Some(signer) = &packaging.signer {
        let _ = write!(
            text,
            "\n   It is signed by {}. To check who signed it, with the file of signers that you have from them:\n\n    \
             {run} verify {bundle} --allowed-signers FILE{partial}\n",
            signer.key()
        );
    }
    let _ = write!(
        text,
        "\n2. Push it into a registry:\n\n    {run} push {bundle}{bases} --to REGISTRY{partial}\n\n\
         3. Or serve it as a registry itself, which needs no other program:\n\n    \
         {run} serve {bundle}{bases} --listen 0.0.0.0:5000{partial}\n\n\
         4. Or export images for nodes that load a file (ctr, nerdctl, k3s, RKE2; docker and podman: add --format docker \
         --platform linux/amd64):\n\n    {run} export images {bundle} -o images.tar{partial}\n\n\
         5. Point manifests at the registry:\n\n    {run} rewrite FILE-OR-FOLDER --bundle {bundle} --to REGISTRY --diff{partial}\n\n\
         More: {run} ls {bundle} lists what is inside, {run} help lists the commands and the pages of the manual, which the \
         program carries.\nManual pages: tar xf {bundle}.man.tar && man -M man landfall-push\n"
    );
    text
}

/// A tar of the manual pages, below `man/man1`.
fn manual_pages(command: Command) -> std::io::Result<Vec<u8>> {
    let folder = tempfile::tempdir()?;
    let mut command = command;
    command.build();
    clap_mangen::generate_to(command, folder.path())?;
    let mut files: Vec<PathBuf> = fs::read_dir(folder.path())?
        .map(|file| Ok(file?.path()))
        .collect::<std::io::Result<_>>()?;
    files.sort();
    let mut tar = Vec::new();
    for file in files {
        let (page, name) = (
            read_input(&file)?,
            file.file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
        );
        tar.extend(encode(&format!("man/man1/{name}"), page.len() as u64));
        tar.extend(&page);
        tar.resize(tar.len() + padding(page.len() as u64), 0);
    }
    tar.extend(END);
    Ok(tar)
}
