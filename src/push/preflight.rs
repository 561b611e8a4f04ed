//! Before the first byte of a push, looks for everything that would make it fail, and reports all
//! problems as one list. Otherwise each run would end at the next problem, possibly after hours of
//! uploads.

use super::plan;
use super::plan::{Delivery, TagState, ecr_command, is_docker_hub, is_ecr, project};
use super::state::PushOptions;
use super::uploader::Uploader;
use landfall_content::registry::RegistrySession;
use landfall_content::{EntryPart, LockEntry, run_concurrently};
use landfall_http::{ErrorKind, HttpError, OnceMap};
use landfall_item::lockfile::Lock;
use landfall_model::config::IndexPolicy;
use landfall_model::{Digest, human_size, sum_sizes};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The input of the preflight checks.
pub(super) struct Preflight<'a> {
    pub(super) uploader: &'a Uploader,
    pub(super) lock: &'a Lock,
    pub(super) deliveries: &'a [Delivery],
    pub(super) tag_states: &'a [Result<TagState, HttpError>],
    /// The deliveries that would be made, including those whose look-up was denied.
    pub(super) todo: &'a [usize],
    /// The problem of blobs that the source omits and the registry lacks.
    pub(super) omitted: Option<Problem>,
    pub(super) options: &'a PushOptions,
}

impl Preflight<'_> {
    /// Runs all checks and returns the problems, sorted. With `create_projects`, missing Harbor
    /// projects are created unless another problem stops the push or this is a dry run.
    pub(super) async fn problems(&self) -> Vec<Problem> {
        let session = &self.uploader.session;
        let is_known = is_ecr(session.host()) || is_docker_hub(session.host());
        let is_harbor = !is_known && session.is_harbor().await;
        let mut problems = self.tag_problems();
        problems.extend(self.omitted.clone());
        problems.extend(self.name_problems(is_harbor));
        let mut missing = Vec::new();
        if is_harbor {
            missing = self.missing_projects().await;
            problems.extend(self.quota_problems(&missing).await);
        }
        problems.extend(self.permission_problems(&missing).await);
        if !self.options.create_projects {
            problems.extend(missing.iter().map(|project| self.missing_project(project)));
        }
        // The last two steps leave content at the registry, so they run only if the push would
        // start.
        let stops_all = |problem: &Problem| problem.stops_all(self.options.all_or_nothing);
        if !problems.iter().any(stops_all)
            && self.options.index == IndexPolicy::Exact
            && !self.options.dry_run
        {
            problems.extend(self.sparse_index_problems().await);
        }
        if !problems.iter().any(stops_all) && self.options.create_projects && !self.options.dry_run
        {
            problems.extend(self.create(&missing).await);
        }
        problems.sort_by(|a, b| (a.kind, &a.at).cmp(&(b.kind, &b.at)));
        problems
    }

    fn repository(&self, at: usize) -> &str {
        &self.deliveries[at].destination.repository
    }

    fn entry(&self, at: usize) -> LockEntry {
        self.lock.entry(self.deliveries[at].entry)
    }

    /// Groups the deliveries of `todo` by the result of `key` for their repositories.
    fn group_by<'k>(&'k self, key: impl Fn(&'k str) -> &'k str) -> BTreeMap<&'k str, Vec<usize>> {
        let mut groups: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for &at in self.todo {
            groups.entry(key(self.repository(at))).or_default().push(at);
        }
        groups
    }

    /// Tags that point to another digest and may not be moved.
    fn tag_problems(&self) -> Vec<Problem> {
        if self.options.move_tags {
            return Vec::new();
        }
        let problems = self.todo.iter().filter_map(|&at| {
            let Ok(TagState::Other(digest)) = &self.tag_states[at] else {
                return None;
            };
            let delivery = &self.deliveries[at];
            let wanted = self.entry(at).top.digest;
            let target = format!("{}:{}", delivery.destination, delivery.tag);
            let message = format!(
                "{target} already points to {digest}, not to {wanted}; --move-tags replaces it"
            );
            let problem = Problem::new(ProblemKind::Tag, target, message, vec![at]);
            Some(Problem {
                stands: Some(digest.clone()),
                wanted: Some(wanted),
                ..problem
            })
        });
        problems.collect()
    }

    /// Repositories whose names the registry cannot have.
    fn name_problems(&self, is_harbor: bool) -> Vec<Problem> {
        let problems = self
            .group_by(|repository| repository)
            .into_values()
            .filter_map(|stops| {
                let target = &self.deliveries[*stops.first()?].destination;
                let fault = plan::fault(target)
                    .or_else(|| plan::harbor_fault(target).filter(|_| is_harbor))?;
                Some(Problem::new(
                    ProblemKind::Name,
                    target.to_string(),
                    fault,
                    stops,
                ))
            });
        problems.collect()
    }

    async fn missing_projects(&self) -> Vec<String> {
        let projects: BTreeSet<&str> = self
            .todo
            .iter()
            .map(|&at| self.repository(at))
            // `harbor_fault` reports a name without a project
            .filter(|name| name.contains('/'))
            .map(project)
            .collect();
        let mut missing = Vec::new();
        for project in projects {
            // If this account may not look up the project, `permission_problems` finds out whether
            // it may push there.
            if let Ok(Some(false)) = self.uploader.session.has_project(project).await {
                missing.push(project.to_owned());
            }
        }
        missing
    }

    fn missing_project(&self, missing: &str) -> Problem {
        let stops = self.group_by(project).remove(missing).unwrap_or_default();
        let message = format!(
            "Harbor has no project '{missing}'; create it there, or let --create-projects create \
             it (private)"
        );
        Problem::new(ProblemKind::Project, missing, message, stops)
    }

    /// Creates the missing projects. Returns a problem for each that cannot be created.
    async fn create(&self, missing: &[String]) -> Vec<Problem> {
        let mut problems = Vec::new();
        for name in missing {
            match self.uploader.session.create_project(name).await {
                Ok(()) => self
                    .uploader
                    .progress
                    .note(&format!("created the Harbor project '{name}'")),
                Err(error) => {
                    let message = format!("the project '{name}' cannot be created: {error}");
                    problems.push(Problem {
                        message,
                        ..self.missing_project(name)
                    });
                }
            }
        }
        problems
    }

    /// Projects whose quota has no room for the deliveries. Blobs are looked up one by one only if
    /// the quota would be too small for all of them.
    async fn quota_problems(&self, missing: &[String]) -> Vec<Problem> {
        let mut problems = Vec::new();
        for (name, stops) in self.group_by(project) {
            // a missing project has no quota yet
            if missing.iter().any(|missing| missing == name) {
                continue;
            }
            let session = &self.uploader.session;
            let Some(free) = session.free_quota(name).await else {
                continue;
            };
            let blobs = self.new_blobs(name, &stops);
            let mut needed = sum_sizes(blobs.values().map(|(size, _)| *size));
            if needed > free {
                let blobs: Vec<_> = blobs.into_iter().collect();
                let present_bytes =
                    run_concurrently(blobs.len(), self.uploader.limits.jobs, async |at: usize| {
                        let (digest, (size, repository)) = &blobs[at];
                        let is_present =
                            session.has_blob(repository, digest).await.unwrap_or(false);
                        if is_present { *size } else { 0 }
                    });
                needed -= sum_sizes(present_bytes.await);
            }
            let amounts = format!(
                "needs {}, and has {} left",
                human_size(needed),
                human_size(free)
            );
            if needed > free {
                let message = format!(
                    "the project '{name}' {amounts} of its quota; raise it, or deliver less there"
                );
                problems.push(Problem::new(ProblemKind::Quota, name, message, stops));
            } else {
                self.uploader
                    .progress
                    .note(&format!("the project '{name}' {amounts} of its quota"));
            }
        }
        problems
    }

    /// The blobs that the deliveries `stops` would add to the project `name`, each with its size
    /// and one of its repositories. Blobs of images that are complete in the project are left out.
    fn new_blobs(&self, name: &str, stops: &[usize]) -> BTreeMap<Digest, (u64, &str)> {
        let present: BTreeSet<Digest> = (0..self.deliveries.len())
            .filter(|&at| {
                matches!(self.tag_states[at], Ok(TagState::Whole))
                    && project(self.repository(at)) == name
            })
            .flat_map(|at| self.entry(at).parts)
            .map(|part| part.descriptor.digest)
            .collect();
        let delivered = stops.iter().flat_map(|&at| {
            self.entry(at)
                .parts
                .into_iter()
                .filter(|part| !part.is_manifest())
                .map(move |part| {
                    (
                        part.descriptor.digest,
                        (part.descriptor.size, self.repository(at)),
                    )
                })
        });
        delivered
            .filter(|(digest, _)| !present.contains(digest))
            .collect()
    }

    /// Repositories to which this account may not push. To find out, an upload is started and
    /// cancelled: once for each repository at ECR (where each repository must be created first),
    /// once in total at a registry without authentication, and once for each project at other
    /// registries. If that is refused, each other repository of the group is tried, since the
    /// refusal of one proves nothing about others. A dry run starts no upload, and reports only
    /// look-ups that were denied.
    async fn permission_problems(&self, missing: &[String]) -> Vec<Problem> {
        let session = &self.uploader.session;
        let groups = if self.options.dry_run {
            BTreeMap::new()
        } else if is_ecr(session.host()) {
            self.group_by(|repository| repository)
        } else if session.is_anonymous() {
            self.group_by(|_| "")
        } else {
            self.group_by(project)
        };
        // a push to a project that does not exist is refused, but the missing project is the reason
        let groups: Vec<Vec<usize>> = groups
            .into_iter()
            .filter(|(name, _)| !missing.iter().any(|missing| missing == name))
            .map(|(_, stops)| stops)
            .collect();
        let refusals = run_concurrently(
            groups.len(),
            self.uploader.limits.jobs,
            async |at: usize| {
                let repository = self.repository(groups[at][0]);
                match session.check_push(repository).await {
                    Ok(()) => Vec::new(),
                    Err(error) => self.refusals(&groups[at], error).await,
                }
            },
        );
        let mut problems: Vec<Problem> = refusals.await.into_iter().flatten().collect();
        let stopped: BTreeSet<usize> = problems
            .iter()
            .flat_map(|problem| problem.stops.clone())
            .collect();
        // The remaining problems are look-ups that were denied in repositories where no upload was
        // refused, or where a dry run did not try one.
        for &at in self.todo.iter().filter(|at| !stopped.contains(at)) {
            if let Err(error) = &self.tag_states[at]
                && !missing
                    .iter()
                    .any(|missing| missing == project(self.repository(at)))
            {
                let repository = self.repository(at);
                problems.push(push_refusal(session.host(), repository, error, vec![at]));
            }
        }
        problems
    }

    /// The problems of a group of deliveries. The registry refused an upload to the repository of
    /// the first one with the error `first`. One problem if it refuses all repositories alike.
    async fn refusals(&self, group: &[usize], first: HttpError) -> Vec<Problem> {
        let mut repositories: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for &at in group {
            repositories
                .entry(self.repository(at))
                .or_default()
                .push(at);
        }
        let count = repositories.len();
        let tried = self.repository(group[0]);
        let mut refused = vec![(tried, repositories.remove(tried).unwrap_or_default(), first)];
        for (repository, stops) in repositories {
            if let Err(error) = self.uploader.session.check_push(repository).await {
                refused.push((repository, stops, error));
            }
        }
        let host = self.uploader.session.host();
        let kind = refused[0].2.kind;
        if refused.len() == count && refused.iter().all(|(_, _, error)| error.kind == kind) {
            return vec![push_refusal(host, tried, &refused[0].2, group.to_vec())];
        }
        let problem = |(repository, stops, error): (&str, Vec<usize>, HttpError)| {
            push_refusal(host, repository, &error, stops)
        };
        refused.into_iter().map(problem).collect()
    }

    /// Repositories that refuse an index with missing children. To find out, one index of each
    /// repository and media type is pushed without a tag, so that nothing points to it. A refusal
    /// with another cause is no problem of the push: it fails its own delivery.
    async fn sparse_index_problems(&self) -> Vec<Problem> {
        let mut groups: BTreeMap<(&str, String), Vec<usize>> = BTreeMap::new();
        for &at in self.todo {
            let entry = self.entry(at);
            if entry.trimmed().is_some() {
                let key = (self.repository(at), entry.top.media_type.to_string());
                groups.entry(key).or_default().push(at);
            }
        }
        let groups: Vec<Vec<usize>> = groups.into_values().collect();
        let problems = run_concurrently(groups.len(), self.uploader.limits.jobs, async |group| {
            let stops: &Vec<usize> = &groups[group];
            let at = stops[0];
            let entry = self.entry(at);
            let error = self
                .uploader
                .sparse_index_refusal(&entry, self.repository(at))
                .await?;
            let message = format!(
                "the registry refuses an index with missing children, and the site says `index: \
                 exact`: {}: {}; lock all its platforms, or allow the trimmed index",
                entry.name, error.why
            );
            let to = self.deliveries[at].destination.to_string();
            Some(Problem::new(ProblemKind::Index, to, message, stops.clone()))
        });
        problems.await.into_iter().flatten().collect()
    }
}

/// Whether a registry says, in its words for this refusal, that the repository is read-only.
fn names_read_only(refusal: &str) -> bool {
    let refusal = refusal.to_ascii_lowercase();
    let words = [
        // Harbor: "The system is in read only mode. Any modification is prohibited."
        // https://github.com/goharbor/harbor/blob/main/src/server/middleware/readonly/readonly.go
        "read only",
        "read-only",
        "readonly",
        // Harbor: "can not push artifact to a proxy project"
        // https://github.com/goharbor/harbor/blob/main/src/server/middleware/repoproxy/proxy.go
        "proxy project",
        // Nexus: "Deploying to groups is a PRO-licensed feature"
        // https://github.com/sigstore/cosign/issues/2189
        "deploying to groups",
        // Quay: "Pushes to the registry are currently disabled"
        // https://github.com/quay/quay/pull/2746
        "are currently disabled",
        // ACR, for a repository that is locked: "The operation is disallowed on this registry"
        // https://github.com/Azure/acr-cli/issues/70
        "registry_disallowed_operation",
        // Artifactory, for a virtual repository; without a public source of the exact words
        "default deployment",
        // Pulp, if another repository has the path: create_dr in
        // pulp_container/app/registry_api.py of pulp_container 2.30
        "not available for push",
        // other names of such repositories; without a public source of the exact words
        "proxy repositor",
        "proxy cache",
        "pull-through",
        "pull through",
        "remote repositor",
        "group repositor",
    ];
    words.iter().any(|word| refusal.contains(word))
}

/// The problem of a repository for which the registry refused an upload or a look-up.
fn push_refusal(host: &str, repository: &str, error: &HttpError, stops: Vec<usize>) -> Problem {
    let (kind, message) = match error.kind {
        ErrorKind::NotFound if is_ecr(host) => (
            ProblemKind::Repository,
            format!(
                "{host} has no repository {repository}: {}",
                ecr_command(host, repository)
            ),
        ),
        // https://github.com/aws/containers-roadmap/issues/1970
        ErrorKind::Network | ErrorKind::GivenUp if is_ecr(host) => (
            ProblemKind::Repository,
            format!(
                "cannot upload to {repository}: {error}; {host} also closes the connection if it \
                 has no such repository: {}",
                ecr_command(host, repository)
            ),
        ),
        ErrorKind::NotFound => (
            ProblemKind::Repository,
            format!(
                "{host} has no repository {repository}, and does not create one by itself: \
                 {error}"
            ),
        ),
        _ if error.status == Some(405)
            || error.has_code("UNSUPPORTED")
            || names_read_only(&error.to_string()) =>
        {
            (
                ProblemKind::Rights,
                format!(
                    "{host} accepts no uploads to {repository}, which is read-only, as a cache, a \
                     proxy, a group of repositories, a locked repository or a registry in \
                     maintenance: push to a repository that it hosts itself, or make it writable: \
                     {error}"
                ),
            )
        }
        _ => (
            ProblemKind::Rights,
            format!("this account cannot push to {repository}: {error}"),
        ),
    };
    Problem::new(kind, format!("{host}/{repository}"), message, stops)
}

// Problems that the preflight of a push finds.

/// A problem that stops deliveries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Problem {
    /// The subject of the problem.
    pub kind: ProblemKind,
    /// The tag, repository or project at the registry, or the registry itself.
    pub at: String,
    /// The message, with the fix.
    pub message: String,
    /// The digest that a tag points to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stands: Option<Digest>,
    /// The digest in the lock, to which the tag should point.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wanted: Option<Digest>,
    /// The deliveries that the problem stops.
    #[serde(skip)]
    pub(super) stops: Vec<usize>,
}

/// The subject of a [`Problem`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ProblemKind {
    /// The registry cannot hold a repository of this name.
    Name,
    /// A Harbor project is missing.
    Project,
    /// A repository is missing at a registry that creates none by itself.
    Repository,
    /// The account may not push to a repository.
    Rights,
    /// The quota of a project is too small for the deliveries.
    Quota,
    /// A tag points to another digest.
    Tag,
    /// An index with missing children is refused, and the site says `index: exact`.
    Index,
    /// The registry lacks blobs that a delta omits.
    Content,
}

impl Problem {
    /// Whether the whole push is aborted: the site refuses other indexes (`index: exact`), or the
    /// bundle lacks blobs. Other problems stop only the deliveries that they affect, unless
    /// `all_or_nothing` is set.
    pub fn stops_all(&self, all_or_nothing: bool) -> bool {
        all_or_nothing || matches!(self.kind, ProblemKind::Index | ProblemKind::Content)
    }

    /// The number of deliveries that the problem stops.
    pub fn stopped(&self) -> usize {
        self.stops.len()
    }

    pub(super) fn new(
        kind: ProblemKind,
        at: impl Into<String>,
        message: String,
        stops: Vec<usize>,
    ) -> Problem {
        Problem {
            kind,
            at: at.into(),
            message,
            stands: None,
            wanted: None,
            stops,
        }
    }
}

/// Looks up manifests and blobs at a registry.
pub(super) struct Presence<'a> {
    session: &'a RegistrySession,
    /// Whether blobs are looked up too. Registries accept a manifest only with its blobs, but may
    /// lose the blobs later.
    blobs: bool,
    /// Whether a repository has a digest. Parts that several images share are looked up once.
    answers: OnceMap<(String, Digest), bool>,
}

impl<'a> Presence<'a> {
    pub(super) fn new(session: &'a RegistrySession, blobs: bool) -> Presence<'a> {
        Presence {
            session,
            blobs,
            answers: OnceMap::default(),
        }
    }

    /// The parts of `entry` that `repository` lacks. If `repository` has the trimmed index, the
    /// full index does not count as missing.
    pub(super) async fn missing<'e>(
        &self,
        entry: &'e LockEntry,
        repository: &str,
    ) -> Result<Vec<&'e Digest>, HttpError> {
        let trimmed = entry.trimmed();
        let is_trimmed = |part: &&EntryPart| trimmed.is_some_and(|trimmed| trimmed == *part);
        let mut missing = Vec::new();
        for part in entry
            .parts
            .iter()
            .filter(|part| !is_trimmed(part) && (self.blobs || part.is_manifest()))
        {
            let digest = &part.descriptor.digest;
            if self.has(repository, part).await? {
                continue;
            }
            let is_replaced = match trimmed {
                Some(trimmed) if *digest == entry.top.digest => {
                    self.has(repository, trimmed).await?
                }
                _ => false,
            };
            if !is_replaced {
                missing.push(digest);
            }
        }
        Ok(missing)
    }

    /// Whether `repository` lacks one of the manifests in `digests`, which are parts of `entry`. A
    /// look-up that the registry refuses counts as no.
    pub(super) async fn lacks_any(
        &self,
        entry: &LockEntry,
        repository: &str,
        digests: &[&Digest],
    ) -> Result<bool, HttpError> {
        let is_looked_up = |part: &&EntryPart| digests.contains(&&part.descriptor.digest);
        for part in entry.parts.iter().filter(is_looked_up) {
            match self.has(repository, part).await {
                Ok(true)
                | Err(HttpError {
                    kind: ErrorKind::Status(400..500),
                    ..
                }) => {}
                Ok(false) => return Ok(true),
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }

    async fn has(&self, repository: &str, part: &EntryPart) -> Result<bool, HttpError> {
        let key = (repository.to_owned(), part.descriptor.digest.clone());
        self.answers
            .get_or_try_init(key, async || {
                if !part.is_manifest() {
                    return self
                        .session
                        .has_blob_of_size(repository, &part.descriptor)
                        .await;
                }
                let digest = part.descriptor.digest.to_string();
                let found = self
                    .session
                    .head_manifest(repository, &digest, false)
                    .await?;
                Ok(found.is_some())
            })
            .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_that_ecr_closes_may_mean_that_the_repository_is_absent() {
        let closed = HttpError::new(ErrorKind::Network, "the connection was closed");
        let problem = |host: &str| push_refusal(host, "team/app", &closed, Vec::new()).message;
        let message = problem("1.dkr.ecr.eu-central-1.amazonaws.com");
        assert!(
            message.contains("the connection was closed")
                && message.ends_with(&ecr_command("1.dkr.ecr.eu-central-1.x", "team/app")),
            "{message}"
        );
        assert!(!problem("reg.test").contains("aws ecr"));
    }
}
