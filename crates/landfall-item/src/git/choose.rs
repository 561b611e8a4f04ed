//! Chooses the refs of a request from those that a repository has.

use super::locked::LockedGitRef;
use super::request::GitRequest;
use crate::resolver::ResolveError;
use landfall_git::{ObjectId, RemoteRef, is_ref_name};
use regex_lite::Regex;
use std::collections::BTreeMap;

/// The refs to lock.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ChosenRefs {
    /// The branch that a clone checks out.
    pub(super) head: Option<String>,
    /// The refs, sorted by name.
    pub(super) refs: Vec<LockedGitRef>,
}

/// Adds a ref. Fails if the name is already there with another id: the tag that landfall adds for a
/// commit may have the name of a tag of the repository, or of the tag for another commit.
fn add(
    chosen: &mut BTreeMap<String, ObjectId>,
    name: String,
    id: ObjectId,
) -> Result<(), ResolveError> {
    match chosen.insert(name.clone(), id) {
        Some(other) if other != id => {
            Err(format!("{name} would stand for both {other} and {id}").into())
        }
        _ => Ok(()),
    }
}

/// Chooses the refs of `request` from those that the repository has.
pub(super) fn choose_refs(
    request: &GitRequest,
    all: &[RemoteRef],
) -> Result<ChosenRefs, ResolveError> {
    let by_name: BTreeMap<&str, &RemoteRef> =
        all.iter().map(|one| (one.name.as_str(), one)).collect();
    let mut chosen: BTreeMap<String, ObjectId> = BTreeMap::new();
    for wanted in &request.wanted {
        if let Some(commit) = GitRequest::commit_in(wanted) {
            add(&mut chosen, GitRequest::commit_tag(commit), commit)?;
            continue;
        }
        if let Some(pattern) = GitRequest::pattern_in(wanted) {
            let pattern = Regex::new(pattern)
                .map_err(|_| ResolveError::from("the pattern of its tags is not valid"))?;
            let tags = by_name.values().filter(|one| {
                let tag = one.name.strip_prefix("refs/tags/");
                tag.is_some_and(|tag| pattern.is_match(tag))
            });
            let found: Vec<_> = tags.map(|one| (one.name.clone(), one.id)).collect();
            if found.is_empty() {
                return Err(format!("no tag of the repository matches {wanted}").into());
            }
            for (name, id) in found {
                // left out, it would be lost without notice
                if !is_ref_name(&name) {
                    let name = name.escape_debug();
                    let why =
                        format!("{wanted} matches the tag '{name}', whose name is not supported");
                    return Err(why.into());
                }
                add(&mut chosen, name, id)?;
            }
            continue;
        }
        let found = find(wanted, &by_name)?;
        add(&mut chosen, found.name.clone(), found.id)?;
    }
    let head = by_name
        .get("HEAD")
        .and_then(|head| head.target.clone())
        .filter(|target| chosen.contains_key(target))
        // without the default branch, a clone checks out the first of the chosen branches
        .or_else(|| {
            let mut branches = chosen.keys().filter(|name| name.starts_with("refs/heads/"));
            branches.next().cloned()
        });
    let refs = chosen
        .into_iter()
        .map(|(name, id)| LockedGitRef { name, id });
    Ok(ChosenRefs {
        head,
        refs: refs.collect(),
    })
}

/// The ref that `wanted` names.
fn find<'a>(
    wanted: &str,
    by_name: &BTreeMap<&str, &'a RemoteRef>,
) -> Result<&'a RemoteRef, ResolveError> {
    let gone = || ResolveError::gone().about(wanted);
    if wanted.starts_with("refs/") {
        return by_name.get(wanted).copied().ok_or_else(gone);
    }
    let [tag, branch] =
        ["tags", "heads"].map(|folder| by_name.get(&*format!("refs/{folder}/{wanted}")).copied());
    match (tag, branch) {
        (Some(_), Some(_)) => Err(format!(
            "{wanted} is a branch and a tag; write refs/heads/{wanted} or refs/tags/{wanted}"
        )
        .into()),
        (Some(one), None) | (None, Some(one)) => Ok(one),
        (None, None) => Err(gone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use landfall_git::ObjectId;
    use landfall_model::document::SourceLocation;

    fn choose(wanted: &[&str]) -> Result<ChosenRefs, ResolveError> {
        let all = [
            "HEAD",
            "refs/heads/both",
            "refs/heads/main",
            "refs/tags/both",
            "refs/tags/old\u{a0}1",
            "refs/tags/v1.0",
            "refs/tags/v2.0",
        ]
        .map(|name| RemoteRef {
            name: name.into(),
            id: ObjectId::ZERO,
            peeled: None,
            target: (name == "HEAD").then(|| "refs/heads/main".into()),
        });
        let request = GitRequest {
            name: "git+https://h/r".into(),
            url: "https://h/r".into(),
            wanted: wanted.iter().map(ToString::to_string).collect(),
            depth: None,
            submodules: false,
            lfs: false,
            lfs_server: None,
            named_by: None,
            level: 0,
            signers: Vec::new(),
            update: None,
            at: SourceLocation {
                file: "m.yaml".into(),
                line: 1,
                column: 1,
            },
        };
        choose_refs(&request, &all)
    }

    fn names(chosen: &ChosenRefs) -> Vec<&str> {
        chosen.refs.iter().map(|one| one.name.as_str()).collect()
    }

    #[test]
    fn short_names_patterns_and_full_names_choose_refs() {
        let chosen = choose(&["/^v/", "main"]).unwrap();
        assert_eq!(
            names(&chosen),
            ["refs/heads/main", "refs/tags/v1.0", "refs/tags/v2.0"]
        );
        assert_eq!(chosen.head.as_deref(), Some("refs/heads/main"));
        let chosen = choose(&["refs/heads/both"]).unwrap();
        assert_eq!(chosen.head.as_deref(), Some("refs/heads/both"));
        assert_eq!(choose(&["v1.0"]).unwrap().head, None);
        let commit = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391";
        let chosen = choose(&[commit]).unwrap();
        assert_eq!(names(&chosen), ["refs/tags/commit-e69de29bb2d1"]);
        assert_eq!(chosen.refs[0].id.to_string(), commit);
        // two commits with the same first 12 digits
        let other = format!("{}0", &commit[..39]);
        let error = choose(&[commit, &other]).unwrap_err().message;
        assert!(error.contains("would stand for both"), "{error}");
    }

    #[test]
    fn an_ambiguous_or_missing_ref_is_an_error() {
        assert!(
            choose(&["both"])
                .unwrap_err()
                .message
                .contains("refs/heads/both")
        );
        assert!(choose(&["v3"]).unwrap_err().is_gone);
        assert!(!choose(&["/^x/"]).unwrap_err().is_gone);
        let message = choose(&["/^old/"]).unwrap_err().message;
        assert!(message.contains("not supported"), "{message}");
    }
}
