//! The entries of a drafted manifest, from the findings of an audit.

use landfall_item::manifest::{DraftEntry, DraftItem};
use landfall_model::report::one_line;
use landfall_model::{has_userinfo, redact_urls};
use landfall_rewrite::audit::{
    FileFinding, LockCoverage, MachineInstall, MachineInstalls, NamedRepository,
};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use url::Url;

/// The entries for the references that the lock lacks, and for the undecided references.
pub(crate) fn draft_entries<'p>(found: impl Iterator<Item = &'p FileFinding>) -> Vec<DraftEntry> {
    found.filter_map(draft_entry).collect()
}

fn draft_entry(file_finding: &FileFinding) -> Option<DraftEntry> {
    let finding = &file_finding.finding;
    let at = format!("{}:{}", file_finding.file, finding.line);
    let is_held = matches!(finding.coverage, LockCoverage::Held { .. });
    if let Some(repository) = finding.repository.as_ref().filter(|_| !is_held) {
        let what = git_item(repository);
        return Some(DraftEntry { what, at });
    }
    let what = match &finding.coverage {
        LockCoverage::Held { .. } | LockCoverage::Ambiguous { .. } => return None,
        LockCoverage::Missing {
            name: Some(name), ..
        } => DraftItem::Image(name.clone()),
        LockCoverage::Missing { url: Some(url), .. } => DraftItem::Url(url.clone()),
        LockCoverage::Missing { why, .. } | LockCoverage::Undecided { why }
            if finding.manager.is_some() =>
        {
            let help = "add it to `install` of an entry of `packages`: an install command names \
                no repository";
            DraftItem::Unclear {
                text: finding.reference.clone(),
                why: format!("{why}; {help}"),
            }
        }
        LockCoverage::Missing { why, .. } => DraftItem::Unclear {
            text: finding.reference.clone(),
            why: format!("{why}; write the upstream name"),
        },
        LockCoverage::Undecided { why } => DraftItem::Unclear {
            text: finding.reference.clone(),
            why: why.clone(),
        },
    };
    Some(DraftEntry { what, at })
}

/// The item for a git repository that the lock lacks or may lack.
fn git_item(repository: &NamedRepository) -> DraftItem {
    let NamedRepository { url, revision } = repository;
    let unclear = |why: &str| DraftItem::Unclear {
        text: format!("git+{url}"),
        why: format!("{why}: add the URL to `git` with the branch or tag"),
    };
    match revision.as_deref() {
        None | Some("HEAD") => unclear("a git repository without a version"),
        // a range, or a placeholder
        Some(revision) if revision.contains(|c: char| " *<>~^|{}$\"\\".contains(c)) => {
            unclear(&format!("a git repository with the versions {revision}"))
        }
        Some(revision) => DraftItem::Git {
            url: url.clone(),
            revision: revision.to_owned(),
        },
    }
}

/// The entries for files that machines download, as in cloud-init and Dockerfiles.
pub(crate) fn install_entries(installs: &MachineInstalls) -> Vec<DraftEntry> {
    installs
        .0
        .iter()
        .filter_map(|(install, at)| install_entry(install, at))
        .collect()
}

fn install_entry(install: &MachineInstall, at: &str) -> Option<DraftEntry> {
    let what = match install {
        // a manifest is not secret, so it must not contain credentials
        MachineInstall::File(url) if Url::parse(url).is_ok_and(|url| has_userinfo(&url)) => {
            DraftItem::Unclear {
                text: redact_urls(url),
                why: "it has a user name or password: write the URL without them under `files:`, \
                      and configure credentials in the site file (`upstreams`)"
                    .into(),
            }
        }
        MachineInstall::File(url) => DraftItem::Url(url.clone()),
        MachineInstall::Unclear(url) => DraftItem::Unclear {
            text: redact_urls(url),
            why: format!(
                "{}: write the whole URL under `files:`",
                MachineInstall::why_unclear(url)
            ),
        },
        MachineInstall::Package(..) | MachineInstall::OpenPackage(..) => return None,
    };
    Some(DraftEntry {
        what,
        at: at.to_owned(),
    })
}

/// The comment that lists the packages that machines install. They are not entries, because their
/// repositories are unknown.
pub(crate) fn packages_comment(installs: &MachineInstalls) -> String {
    let mut found: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for (install, at) in &installs.0 {
        if let MachineInstall::Package(by, name) | MachineInstall::OpenPackage(by, name) = install {
            found.entry((by, name)).or_default().push(at);
        }
    }
    if found.is_empty() {
        return String::new();
    }
    let mut text =
        "\n# Packages that are installed from repositories and are not mirrored:\n".to_owned();
    for ((by, name), places) in found {
        let more = if places.len() > 1 {
            format!(" and {} more", places.len() - 1)
        } else {
            String::new()
        };
        let pin = if name.contains(['$', '`', '{']) {
            "; its name is composed elsewhere"
        } else if MachineInstall::has_version(by, name) {
            ""
        } else {
            "; no version"
        };
        let place = one_line(places.first().unwrap_or(&""));
        let name = redact_urls(name);
        let _ = writeln!(text, "#   {by}: {name}  # {place}{more}{pin}");
    }
    text
}
