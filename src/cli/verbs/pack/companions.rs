//! The files next to a bundle for its receiver: a README with the commands for this bundle, and the
//! manual pages.

use crate::cli::help::man::all_pages;
use crate::cli::shared::bundle_report::MAX_MISSING;
use crate::cli::shared::failed_items::shortened;
use crate::cli::shared::listing::count;
use crate::cli::shared::{CliError, Exit};
use clap::Command;
use landfall_bundle::tar_header::{END, encode, padding};
use landfall_bundle::{PackPlan, Packaging};
use landfall_model::report::shell_word;
use std::fmt::Write as _;
use std::path::Path;

/// The files next to the bundle `out`: for each, the suffix that is added to the name of the
/// bundle, and the content.
pub(crate) fn documents(
    plan: &PackPlan,
    out: &Path,
    packaging: &Packaging,
    command: Command,
) -> Result<Vec<(String, Vec<u8>)>, CliError> {
    let pages = manual_pages(command).map_err(|error| {
        CliError::new(
            Exit::Failed,
            format!(
                "cannot write the manual pages next to {}: {error}",
                out.display()
            ),
        )
    })?;
    let readme = readme(plan, out, packaging).into_bytes();
    Ok(vec![
        (".README.txt".into(), readme),
        (".man.tar".into(), pages),
    ])
}

fn file_name(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// The README: the commands for this bundle, in the order in which they are needed.
fn readme(plan: &PackPlan, out: &Path, packaging: &Packaging) -> String {
    let bundle = shell_word(&file_name(out));
    let program = packaging
        .tools
        .first()
        .map_or_else(|| "landfall".to_owned(), |tool| file_name(tool));
    // The program is next to the bundle, and probably not in PATH.
    let run = format!("./{}", shell_word(&program));
    let partial = if plan.missing.is_empty() {
        ""
    } else {
        " --allow-partial"
    };
    let (bases, base_flag) = if plan.bases.is_empty() {
        ("", "")
    } else {
        (" BASE", " --base BASE")
    };
    let mut text = format!(
        "{} - a bundle of landfall\n\nIt contains {}. Lock fingerprint: {}\n\
         Replace REGISTRY with your registry, such as 172.20.0.2:5000 or \
         registry.example.com/mirror.\n",
        file_name(out),
        count(&plan.items),
        plan.fingerprint,
    );
    if packaging.tools.len() > 1 {
        let programs: Vec<String> = packaging.tools.iter().map(|tool| file_name(tool)).collect();
        let _ = writeln!(
            text,
            "There are also programs for other machines: {}.",
            programs.join(", ")
        );
    }
    if packaging.volume_size.is_some() {
        let _ = writeln!(
            text,
            "The bundle is split into volumes {bundle}.0001, {bundle}.0002, … All of them are \
             needed."
        );
    }
    if !plan.bases.is_empty() {
        text += "It omits what an earlier bundle contains. Replace BASE with that bundle; a \
                 registry with its content needs no BASE.\n";
    }
    if !plan.missing.is_empty() {
        text += "It lacks:\n";
        shortened(plan.missing.iter().map(ToString::to_string), MAX_MISSING)
            .for_each(|line| text += &format!("  {line}\n"));
    }
    let _ = write!(
        text,
        "\n0. Check the files, without landfall:\n\n    sha256sum -c {bundle}.sha256sums\n\n\
         1. Verify that it is the approved bundle:\n\n    \
         {run} verify {bundle} --expect {}{partial}\n",
        plan.fingerprint
    );
    if let Some(signer) = &packaging.signer {
        let _ = write!(
            text,
            "\n   It is signed by {}. To check the signature, with the file of allowed signers \
             that you received:\n\n    {run} verify {bundle} --allowed-signers FILE{partial}\n",
            signer.key()
        );
    }
    let _ = write!(
        text,
        "\n2. Push it into a registry:\n\n    {run} push {bundle}{bases} --to REGISTRY{partial}\n\n\
         3. Or serve it as a registry, without any other program:\n\n    \
         {run} serve {bundle}{bases} --listen 0.0.0.0:5000{partial}\n\n\
         4. Or export images for nodes that load a file (ctr, nerdctl, k3s, RKE2; docker and \
         podman: add --format docker --platform linux/amd64):\n\n    \
         {run} export images {bundle}{base_flag} -o images.tar{partial}\n\n\
         5. Point manifests at the registry:\n\n    \
         {run} rewrite FILE-OR-FOLDER --bundle {bundle} --to REGISTRY --diff{partial}\n\n\
         More: {run} ls {bundle} lists its content, {run} help lists the commands and the pages of \
         the manual.\nManual pages: tar xf {bundle}.man.tar && man -M man landfall-push\n"
    );
    text
}

/// A tar archive of the manual pages in `man/man1`.
fn manual_pages(mut command: Command) -> std::io::Result<Vec<u8>> {
    command.build();
    let mut pages = all_pages(&command)?;
    // Sorted, so that the same release writes the same bytes.
    pages.sort();
    let mut tar = Vec::new();
    for (name, page) in pages {
        tar.extend(encode(&format!("man/man1/{name}"), page.len() as u64));
        tar.extend(&page);
        tar.resize(tar.len() + padding(page.len() as u64), 0);
    }
    tar.extend(END);
    Ok(tar)
}
