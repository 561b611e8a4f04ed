//! Looks up in the lock the git repositories that documents use, with their branches, tags and
//! commits.

use super::{AuditFinding, NamedRepository};
use crate::git_source::{GitSource, GitSourceForm, GitUse};
use crate::inventory::{Inventory, LockCoverage};
use crate::text::{ShellVariables, git_clones, lines_at};
use landfall_item::LockedGitRepository;
use landfall_model::document::LineIndex;
use landfall_model::{ChartVersion, ChartVersionRange, redact_reference, without_scheme};
use std::path::Path;

/// How many refs a message names.
const MAX_NAMED: usize = 5;

impl GitUse {
    /// Looks the repository up in the lock.
    pub(super) fn decide(self, inventory: &Inventory<'_>, lines: &LineIndex<'_>) -> AuditFinding {
        let coverage = inventory.decide_git(&self);
        let (line, column) = lines.line_column(self.at);
        let upstream = inventory.file_at_site(&self.url);
        AuditFinding {
            path: self.path,
            repository: Some(NamedRepository {
                url: upstream.unwrap_or(self.url),
                revision: self.revision,
                is_range: self.is_range,
            }),
            ..AuditFinding::new((line, column), redact_reference(&self.written), coverage)
        }
    }
}

impl Inventory<'_> {
    /// Whether the lock contains a repository, and the version of it that a document uses.
    fn decide_git(&self, used: &GitUse) -> LockCoverage {
        if self.repositories.is_empty() {
            return LockCoverage::Undecided {
                why: "the lock has no git repositories, so it may be mirrored in another way"
                    .into(),
            };
        }
        let upstream = self.file_at_site(&used.url);
        let url = without_scheme(upstream.as_deref().unwrap_or(&used.url));
        let Some(repository) = repository_at(self.repositories, url) else {
            return LockCoverage::missing("the lock does not have this git repository".into());
        };
        let name = &repository.name;
        if used.form == GitSourceForm::Ssh {
            let why = format!(
                "the lock has {name}, but SSH does not reach a mirror: write its http or https URL"
            );
            return LockCoverage::Undecided { why };
        }
        let urls = repository.urls();
        let has_url = urls.iter().any(|one| without_scheme(one) == url);
        if !has_url && !used.is_source && upstream.is_none() {
            return LockCoverage::missing(format!(
                "the lock has {name}; write its URL here, or add this URL to the manifest"
            ));
        }
        let revision = used.revision.as_deref();
        match revision.filter(|_| used.is_range) {
            Some(range) => range_coverage(repository, range),
            None => revision_coverage(repository, revision),
        }
    }
}

/// The repository that a mirror has at `url`, a host and path: the one with this URL or, if there
/// is none, one whose URL differs only in `.git`.
fn repository_at<'r>(
    repositories: &'r [LockedGitRepository],
    url: &str,
) -> Option<&'r LockedGitRepository> {
    let plain = url.trim_end_matches(".git");
    let exact = repositories
        .iter()
        .find(|one| without_scheme(one.url()) == url);
    exact.or_else(|| {
        repositories
            .iter()
            .find(|one| without_scheme(one.url()).trim_end_matches(".git") == plain)
    })
}

/// Whether the lock contains a tag of a locked repository in `range`. Flux takes the highest one
/// that the mirror has.
fn range_coverage(repository: &LockedGitRepository, range: &str) -> LockCoverage {
    let Ok(versions) = range.parse::<ChartVersionRange>() else {
        return not_one_version(repository, range);
    };
    // Flux skips tags with fewer than three numbers
    let is_whole = |tag: &str| {
        let numbers = tag.split(['-', '+']).next();
        numbers.is_some_and(|numbers| numbers.matches('.').count() == 2)
    };
    let names = repository.refs.iter().map(|one| &*one.name);
    let mut tags = names.filter_map(|name| name.strip_prefix("refs/tags/"));
    let is_locked = tags.any(|tag| {
        let version = tag.parse::<ChartVersion>();
        is_whole(tag) && version.is_ok_and(|version| versions.has(&version))
    });
    if is_locked {
        let item = repository.name.clone();
        return LockCoverage::Held { item };
    }
    let locked = locked_refs(repository);
    LockCoverage::missing(format!("{locked}, and no version in '{range}'"))
}

/// The coverage of a revision that may be any of several.
fn not_one_version(repository: &LockedGitRepository, revision: &str) -> LockCoverage {
    let locked = locked_refs(repository);
    let why = format!("{locked}; '{revision}' is not one version");
    LockCoverage::Undecided { why }
}

/// The repository and some of its refs, for messages.
fn locked_refs(repository: &LockedGitRepository) -> String {
    let names: Vec<&str> = repository
        .refs
        .iter()
        .take(MAX_NAMED)
        .map(|one| one.name.trim_start_matches("refs/"))
        .collect();
    let more = match repository.refs.len().saturating_sub(MAX_NAMED) {
        0 => String::new(),
        count => format!(" and {count} more"),
    };
    format!(
        "the lock has {} with {}{more}",
        repository.name,
        names.join(", ")
    )
}

/// Whether the lock contains the version `revision` of a locked repository.
fn revision_coverage(repository: &LockedGitRepository, revision: Option<&str>) -> LockCoverage {
    let name = &repository.name;
    let held = || LockCoverage::Held { item: name.clone() };
    let Some(revision) = revision.filter(|text| *text != "HEAD") else {
        if repository.head.is_some() || repository.refs.len() == 1 {
            return held();
        }
        let why = format!("it names no version, and the lock has no default branch of {name}");
        return LockCoverage::missing(why);
    };
    let is_named = |ref_name: &str| {
        ref_name == revision
            || ["refs/heads/", "refs/tags/"]
                .iter()
                .any(|folder| ref_name.strip_prefix(folder) == Some(revision))
    };
    let is_id = revision.len() >= 7 && revision.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_locked = repository
        .refs
        .iter()
        .any(|one| is_named(&one.name) || is_id && one.id.to_string().starts_with(revision));
    if is_locked {
        return held();
    }
    let locked = locked_refs(repository);
    if is_id {
        let why = format!("{locked}; the commit {revision} may be in their history");
        return LockCoverage::Undecided { why };
    }
    if revision.contains(['*', '<', '>', '~', '^', '|', ' ', '{', '$']) {
        return not_one_version(repository, revision);
    }
    LockCoverage::missing(format!("{locked}, not {revision}"))
}

// Finds the git repositories that configurations of Terraform and OpenTofu use.

/// Whether the file is a configuration of Terraform or OpenTofu.
pub(super) fn is_terraform(name: &Path) -> bool {
    name.extension()
        .is_some_and(|ending| ending == "tf" || ending == "tofu")
}

/// The sources of modules in a configuration of Terraform.
pub(super) fn in_terraform(text: &str) -> Vec<GitUse> {
    let mut uses = Vec::new();
    for (start, line) in lines_at(text) {
        if let Some(value) = quoted_source(line)
            && let Some(source) = GitSource::parse(value)
        {
            let at = start + (value.as_ptr() as usize - line.as_ptr() as usize);
            uses.push(GitUse::of_source(at, Vec::new(), value, &source));
        }
    }
    uses
}

/// The repositories that the commands of `text` clone. Variables are filled in if their values are
/// known.
pub(super) fn in_commands(text: &str) -> Vec<GitUse> {
    let variables = ShellVariables::of(text);
    let filled = |word: &str| variables.filled_or_written(word);
    let uses = git_clones(text)
        .into_iter()
        .filter_map(|(written, revision)| {
            let url = filled(written);
            let source = GitSource::of_repository(&url)?;
            Some(GitUse {
                at: written.as_ptr() as usize - text.as_ptr() as usize,
                path: Vec::new(),
                written: written.to_owned(),
                revision: revision.map(filled),
                is_range: false,
                form: source.form,
                is_source: false,
                url: source.url,
            })
        });
    uses.collect()
}

/// The value of a line `source = "…"` or `module "…" { source = "…" }`.
fn quoted_source(line: &str) -> Option<&str> {
    let mut argument = line.trim_start();
    if argument.starts_with("module") {
        argument = argument.split_once('{')?.1.trim_start();
    }
    let value = argument.strip_prefix("source")?.trim_start();
    let value = value.strip_prefix('=')?.trim_start().strip_prefix('"')?;
    Some(value.split_once('"')?.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use landfall_item::LockedGitRef;

    #[test]
    fn a_range_of_versions_is_held_if_a_tag_is_in_it() {
        let mut repository = LockedGitRepository::without_refs("https://h/a");
        let names = [
            "heads/2.0.0",
            "tags/v1.4.0",
            "tags/v3.0",
            "tags/v1.5.0-rc.1",
        ];
        let refs = names.map(|name| LockedGitRef {
            name: format!("refs/{name}"),
            id: "1".repeat(40).parse().unwrap(),
        });
        repository.refs = refs.into();
        for range in ["1.x", "1.4.0", ">=1 <2"] {
            let coverage = range_coverage(&repository, range);
            let is_held = matches!(coverage, LockCoverage::Held { .. });
            assert!(is_held, "{range}: {coverage:?}");
        }
        for range in ["2", ">=2.0.0", "~1.5"] {
            let coverage = range_coverage(&repository, range);
            assert!(coverage.is_missing(), "{range}: {coverage:?}");
        }
        let coverage = range_coverage(&repository, "${RANGE}");
        assert!(matches!(coverage, LockCoverage::Undecided { .. }));
    }

    #[test]
    fn a_repository_with_the_same_url_takes_precedence() {
        let repositories = ["https://h/a", "https://h/a.git", "https://h/b.git"]
            .map(LockedGitRepository::without_refs);
        for (url, found) in [
            ("h/a", Some("https://h/a")),
            ("h/a.git", Some("https://h/a.git")),
            ("h/b", Some("https://h/b.git")),
            ("h/c", None),
        ] {
            let repository = repository_at(&repositories, url);
            assert_eq!(repository.map(LockedGitRepository::url), found, "{url}");
        }
    }

    #[test]
    fn clones_are_found_with_their_variables() {
        let text =
            "HOST=https://h.example V=v1\ngit clone -b $V $HOST/a.git\ngit clone $UNKNOWN/b\n";
        let [found] = &in_commands(text)[..] else {
            panic!("not one repository");
        };
        assert_eq!(
            (&*found.url, found.revision.as_deref(), &*found.written),
            ("https://h.example/a.git", Some("v1"), "$HOST/a.git")
        );
        assert!(text[found.at..].starts_with("$HOST/a.git\n"));
    }

    #[test]
    fn sources_of_modules_are_found_in_terraform_and_opentofu() {
        let text = "module \"a\" {\n  source = \"git::https://h.example/a?ref=v1\"\n}\n\
                module \"b\" { source = \"git::https://h.example/b?ref=v2\" }\n\
                # source = \"git::https://h.example/c\"\nmodule \"d\" {}\n";
        let found = in_terraform(text);
        let urls: Vec<&str> = found.iter().map(|one| one.url.as_str()).collect();
        assert_eq!(urls, ["https://h.example/a", "https://h.example/b"]);
        assert!(found.iter().all(|one| text[one.at..].starts_with("git::")));
        for (name, is_read) in [("main.tf", true), ("main.tofu", true), ("main.hcl", false)] {
            assert_eq!(is_terraform(Path::new(name)), is_read, "{name}");
        }
    }
}
