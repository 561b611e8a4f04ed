//! Resolves a repository: finds the commits of its refs, fetches the new ones, and writes the pack.

use super::kind;
use super::large_files::find_large_files;
use super::locked::{LockedGitRef, LockedGitRepository, LockedLargeFile};
use super::pack_writing::{GitFault, PackWriting, WrittenPacks};
use super::request::GitRequest;
use crate::resolver::{ResolveError, Resolver};
use landfall_content::GitPacks;
use landfall_content::store::DiskStore;
use landfall_content::upstream::{fetch_pack, git_error, list_refs};
use landfall_git::{GitError, LocalRepository, ObjectId, OfferedRef, PackBytes, is_ref_name};
use landfall_http::{ErrorKind, HttpError};
use landfall_model::Digest;
use regex_lite::Regex;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The reason why a repository cannot be resolved.
pub(super) struct GitResolveError {
    pub(super) cause: ResolveError,
    /// Whether the old pin must not be kept, because it has the same refs and their signatures are
    /// not valid.
    pub(super) refutes_old: bool,
}

impl From<ResolveError> for GitResolveError {
    fn from(cause: ResolveError) -> GitResolveError {
        GitResolveError {
            cause,
            refutes_old: false,
        }
    }
}

impl From<HttpError> for GitResolveError {
    fn from(error: HttpError) -> GitResolveError {
        ResolveError::from(error).into()
    }
}

impl From<GitError> for GitResolveError {
    fn from(error: GitError) -> GitResolveError {
        object_error(error).into()
    }
}

impl From<GitFault> for GitResolveError {
    fn from(fault: GitFault) -> GitResolveError {
        match fault {
            GitFault::Object(error) => error.into(),
            GitFault::Failed(failure) => ResolveError::from(failure.to_string()).into(),
        }
    }
}

/// Resolves `request`. The packs of `old` are kept unless the refs no longer need all their commits
/// (the history was rewritten, or a ref was removed), the depth changed, a history with a depth has
/// other tips, or there are already `MAX_PACKS` packs.
pub(super) async fn resolve(
    resolver: &Resolver,
    request: &GitRequest,
    old: Option<&LockedGitRepository>,
) -> Result<LockedGitRepository, GitResolveError> {
    let source = GitSource::open(resolver, request).await?;
    let chosen = choose_refs(request, &source.refs).map_err(|error| source.about(error))?;
    let path = request.place.as_ref().map(|place| {
        let path = place.path_in_lock(&resolver.lock_folder);
        path.unwrap_or_default()
    });
    let moved = old.map(|old| moved_tags(&old.refs, &chosen.refs));
    let old = old.filter(|old| old.depth == request.depth);
    let has_old_refs = old.is_some_and(|old| old.refs == chosen.refs);
    // signatures, submodules and pointers to large files are in objects
    let needs_objects = |old: &LockedGitRepository| {
        !request.signers.is_empty()
            || request.submodules && old.submodules.is_none()
            || request.lfs && (old.large_files.is_none() || old.lfs_server != request.lfs_server)
    };
    // another machine need not be able to read it
    let is_stored = match old.filter(|_| path.is_some()) {
        Some(old) => are_stored(resolver.disk.clone(), old.git_packs()).await,
        None => true,
    };
    if let Some(old) = old.filter(|old| has_old_refs && is_stored && !needs_objects(old)) {
        return Ok(locked(
            request,
            path,
            chosen,
            WrittenPacks {
                packs: old.packs.clone(),
                shallow: old.shallow.clone(),
                submodules: old.submodules.clone().filter(|_| request.submodules),
                ..WrittenPacks::default()
            },
            old.large_files.clone().filter(|_| request.lfs),
        ));
    }
    let mut wants: Vec<ObjectId> = chosen.refs.iter().map(|one| one.id).collect();
    wants.sort();
    wants.dedup();
    let old_packs = old.map(LockedGitRepository::git_packs);
    let stored = match &old_packs {
        Some(packs)
            if (request.depth.is_none() || has_old_refs)
                && are_stored(resolver.disk.clone(), packs.clone()).await =>
        {
            packs.clone()
        }
        _ => GitPacks {
            url: request.url.clone(),
            path: path.clone(),
            packs: Vec::new(),
            depth: request.depth,
            shallow: Vec::new(),
        },
    };
    let haves = stored.tips_before(stored.packs.len());
    let new: Vec<ObjectId> = wants
        .iter()
        .filter(|id| haves.binary_search(id).is_err())
        .copied()
        .collect();
    let fetched = if new.is_empty() {
        Vec::new()
    } else {
        source.packs(resolver, request, &new, &haves).await?
    };
    let writing = PackWriting {
        disk: resolver.disk.clone(),
        limits: *resolver.limits(),
        stored,
        old: old.map(|old| old.packs.clone()).unwrap_or_default(),
        fetched,
        wants,
        request: request.clone(),
        refs: chosen.refs.clone(),
        head: chosen.head.clone(),
    };
    let busy = resolver.sessions.transport().activity().busy();
    let written = tokio::task::spawn_blocking(move || writing.run()).await;
    drop(busy);
    let written = written.map_err(ResolveError::from)?;
    let mut written = written.map_err(|error| GitResolveError {
        refutes_old: error.refutes_old && has_old_refs,
        cause: source.about(error.cause),
    })?;
    let large_files = match written.large_files.take() {
        Some(wanted) => Some(find_large_files(&resolver.sessions, wanted).await?),
        None => None,
    };
    let rewritten = written.is_rewritten.then(|| {
        "the history was rewritten or a ref was removed, so all commits are packed again".to_owned()
    });
    for change in moved.into_iter().flatten().chain(rewritten) {
        let line = format!("{}: {change}", request.name);
        resolver.progress.note(&line);
    }
    Ok(locked(request, path, chosen, written, large_files))
}

/// The repository of a request: its refs, and where its objects are.
struct GitSource {
    refs: Vec<OfferedRef>,
    /// The repository on this machine and its path; `None` if a git server has it.
    local: Option<(Arc<LocalRepository>, String)>,
}

impl GitSource {
    /// Lists the refs.
    async fn open(resolver: &Resolver, request: &GitRequest) -> Result<GitSource, ResolveError> {
        let Some(place) = &request.place else {
            return Ok(GitSource {
                refs: list_refs(&resolver.sessions, &request.url).await?,
                local: None,
            });
        };
        let path = place.path.clone();
        let limits = *resolver.limits();
        let opening = tokio::task::spawn_blocking(move || LocalRepository::open(&path, &limits));
        let shown = place.to_string();
        // the message names a path of this machine
        let fault = |why: &str| ResolveError::local(format!("{shown}: {why}"));
        let opened = opening.await?.map_err(|error| fault(&error.to_string()))?;
        if !opened.shallow.is_empty() && request.depth.is_none() {
            return Err(fault(
                "it is a shallow clone, which lacks a part of the history; run `git fetch \
                 --unshallow` there, or set `depth`",
            ));
        }
        Ok(GitSource {
            refs: opened.refs.clone(),
            local: Some((Arc::new(opened), shown)),
        })
    }

    /// Returns packs with the objects that `new` needs and `haves` do not.
    async fn packs(
        &self,
        resolver: &Resolver,
        request: &GitRequest,
        new: &[ObjectId],
        haves: &[ObjectId],
    ) -> Result<Vec<Arc<dyn PackBytes>>, ResolveError> {
        let Some((repository, _)) = &self.local else {
            let sessions = &resolver.sessions;
            let pack = fetch_pack(sessions, &request.url, new, haves, request.depth).await?;
            return Ok(vec![Arc::new(pack)]);
        };
        let repository = repository.clone();
        let limits = *resolver.limits();
        let reading = tokio::task::spawn_blocking(move || repository.packs(&limits));
        reading
            .await?
            .map_err(|error| self.about(object_error(error)))
    }

    /// The error for the repository, which names its path if it is on this machine.
    fn about(&self, error: ResolveError) -> ResolveError {
        match &self.local {
            Some((_, path)) => ResolveError::local(format!("{path}: {error}")),
            None => error,
        }
    }
}

/// Describes each tag that names another object than in the old lock. Both lists are sorted by
/// name.
fn moved_tags(old: &[LockedGitRef], new: &[LockedGitRef]) -> Vec<String> {
    let mut moved = Vec::new();
    for LockedGitRef { name, id } in new {
        if name.starts_with("refs/tags/")
            && let Ok(at) = old.binary_search_by(|before| before.name.cmp(name))
            && old[at].id != *id
        {
            moved.push(format!("{name} moved from {} to {id}", old[at].id));
        }
    }
    moved
}

fn object_error(error: GitError) -> ResolveError {
    match error {
        GitError::WritePack(_) | GitError::ReadPack(_) | GitError::LocalRepository(_) => {
            ResolveError::local(error.to_string())
        }
        error @ GitError::MissingObject { .. } => {
            let hint = "upstream did not send it; if upstream is a shallow clone, set `depth`";
            HttpError::new(ErrorKind::Invalid, format!("{error}: {hint}")).into()
        }
        error => git_error(error).into(),
    }
}

fn locked(
    request: &GitRequest,
    path: Option<String>,
    chosen: ChosenRefs,
    written: WrittenPacks,
    large_files: Option<Vec<LockedLargeFile>>,
) -> LockedGitRepository {
    let mut repository = LockedGitRepository {
        name: request.name.clone(),
        digest: Digest::sha256(b""),
        path,
        wanted: request.wanted.clone(),
        head: chosen.head,
        refs: chosen.refs,
        verified: written.verified,
        depth: request.depth,
        shallow: written.shallow,
        submodules: written.submodules,
        lfs_server: request.lfs_server.clone(),
        large_files,
        packs: written.packs,
    };
    repository.digest = kind::digest(&repository);
    repository
}

/// Whether the store has all these packs.
async fn are_stored(disk: DiskStore, packs: GitPacks) -> bool {
    let looking = tokio::task::spawn_blocking(move || {
        let mut packs = packs.packs.iter();
        packs.all(|pack| disk.has(&pack.digest, pack.size).unwrap_or(false))
    });
    looking.await.unwrap_or(false)
}

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
    all: &[OfferedRef],
) -> Result<ChosenRefs, ResolveError> {
    let by_name: BTreeMap<&str, &OfferedRef> =
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
        let found = find(wanted, request, &by_name)?;
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
    request: &GitRequest,
    by_name: &BTreeMap<&str, &'a OfferedRef>,
) -> Result<&'a OfferedRef, ResolveError> {
    let gone = || match request.place {
        Some(_) => format!("it has no branch or tag {wanted}").into(),
        None => ResolveError::gone().about(wanted),
    };
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
    use landfall_model::document::SourceLocation;

    #[test]
    fn moved_tags_are_described() {
        let one = |name: &str, digit: &str| LockedGitRef {
            name: name.into(),
            id: digit.repeat(40).parse().unwrap(),
        };
        let old = [
            one("refs/heads/main", "1"),
            one("refs/tags/v1", "1"),
            one("refs/tags/v2", "1"),
        ];
        let new = [
            one("refs/heads/main", "2"),
            one("refs/tags/v1", "2"),
            one("refs/tags/v2", "1"),
            one("refs/tags/v3", "2"),
        ];
        let expected = format!("refs/tags/v1 moved from {} to {}", old[1].id, new[1].id);
        assert_eq!(moved_tags(&old, &new), [expected]);
        assert!(moved_tags(&new, &new).is_empty());
    }

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
        .map(|name| OfferedRef {
            name: name.into(),
            id: ObjectId::ZERO,
            peeled: None,
            target: (name == "HEAD").then(|| "refs/heads/main".into()),
        });
        let request = GitRequest {
            name: "git+https://h/r".into(),
            url: "https://h/r".into(),
            place: None,
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
