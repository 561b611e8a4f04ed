//! What would stop a push half-way, found before its first byte, and reported as one list.

use super::names::{self, ecr_command, is_docker_hub, is_ecr, project};
use super::options::PushOptions;
use super::plan::{Delivery, TagState};
use super::problem::{Problem, ProblemKind};
use super::uploader::Uploader;
use landfall_content::{LockEntry, run_concurrently};
use landfall_http::{ErrorKind, HttpError};
use landfall_item::lockfile::Lock;
use landfall_model::config::IndexPolicy;
use landfall_model::{Digest, human_size};
use std::collections::{BTreeMap, BTreeSet};

/// What there is to look at.
pub(super) struct Preflight<'a> {
    pub(super) uploader: &'a Uploader,
    pub(super) lock: &'a Lock,
    pub(super) deliveries: &'a [Delivery],
    pub(super) standings: &'a [Result<TagState, HttpError>],
    /// The deliveries that would be made, those of refused questions included.
    pub(super) todo: &'a [usize],
    /// What the source omits and the registry lacks.
    pub(super) omitted: Option<Problem>,
    pub(super) options: PushOptions,
}

impl Preflight<'_> {
    /// Everything that is in the way. Missing projects are made where that is asked for and nothing
    /// else is in the way.
    pub(super) async fn problems(&self) -> Vec<Problem> {
        let session = &self.uploader.session;
        let known = is_ecr(session.host()) || is_docker_hub(session.host());
        let harbor = !known && session.is_harbor().await;
        let mut problems = self.tags();
        problems.extend(self.omitted.clone());
        problems.extend(self.names(harbor));
        let mut missing = Vec::new();
        if harbor {
            missing = self.missing_projects().await;
            problems.extend(self.quotas(&missing).await);
        }
        problems.extend(self.rights(&missing).await);
        if !self.options.create_projects {
            problems.extend(missing.iter().map(|project| self.missing_project(project)));
        }
        let stops_all = |problem: &Problem| problem.stops_all(self.options.all_or_nothing);
        if !problems.iter().any(stops_all)
            && self.options.index == IndexPolicy::Exact
            && !self.options.dry_run
        {
            problems.extend(self.sparse().await);
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

    /// The deliveries by what `key` makes of their repositories.
    fn by<'k>(&'k self, key: impl Fn(&'k str) -> &'k str) -> BTreeMap<&'k str, Vec<usize>> {
        let mut groups: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for &at in self.todo {
            groups.entry(key(self.repository(at))).or_default().push(at);
        }
        groups
    }

    fn tags(&self) -> Vec<Problem> {
        let stands = self
            .todo
            .iter()
            .filter(|_| !self.options.move_tags)
            .filter_map(|&at| {
                let Ok(TagState::Other(digest)) = &self.standings[at] else {
                    return None;
                };
                let (delivery, wanted) = (&self.deliveries[at], self.entry(at).top.digest);
                let place = format!("{}:{}", delivery.destination, delivery.tag);
                let message = format!(
                    "{place} stands at {digest} already, not at {wanted}; --move-tags replaces it"
                );
                let problem = Problem::new(ProblemKind::Tag, place, message, vec![at]);
                Some(Problem {
                    stands: Some(digest.clone()),
                    wanted: Some(wanted),
                    ..problem
                })
            });
        stands.collect()
    }

    fn names(&self, harbor: bool) -> Vec<Problem> {
        let faults = self
            .by(|repository| repository)
            .into_values()
            .filter_map(|stops| {
                let place = &self.deliveries[*stops.first()?].destination;
                let fault = names::fault(place)
                    .or_else(|| names::harbor_fault(place).filter(|_| harbor))?;
                Some(Problem::new(
                    ProblemKind::Name,
                    place.to_string(),
                    fault,
                    stops,
                ))
            });
        faults.collect()
    }

    async fn missing_projects(&self) -> Vec<String> {
        let named = self
            .todo
            .iter()
            .map(|&at| self.repository(at))
            .filter(|name| name.contains('/'));
        let projects: BTreeSet<&str> = named.map(project).collect();
        let mut missing = Vec::new();
        for project in projects {
            // where this account may not know, the right to push will tell
            if let Ok(Some(false)) = self.uploader.session.has_project(project).await {
                missing.push(project.to_owned());
            }
        }
        missing
    }

    fn missing_project(&self, missing: &str) -> Problem {
        let stops = self.by(project).remove(missing).unwrap_or_default();
        let message = format!(
            "Harbor has no project '{missing}'; make it there, or let --create-projects make it (private)"
        );
        Problem::new(ProblemKind::Project, missing, message, stops)
    }

    async fn create(&self, missing: &[String]) -> Vec<Problem> {
        let mut problems = Vec::new();
        for name in missing {
            match self.uploader.session.create_project(name).await {
                Ok(()) => self
                    .uploader
                    .progress
                    .note(&format!("made the Harbor project '{name}'")),
                Err(error) => {
                    let message = format!("the project '{name}' cannot be made: {error}");
                    problems.push(Problem {
                        message,
                        ..self.missing_project(name)
                    });
                }
            }
        }
        problems
    }

    /// Whether there is room in each project. What is there already is asked for only where it
    /// would get tight.
    async fn quotas(&self, missing: &[String]) -> Vec<Problem> {
        let mut problems = Vec::new();
        for (name, stops) in self.by(project) {
            if missing.iter().any(|missing| missing == name) {
                continue;
            }
            let session = &self.uploader.session;
            let Some(free) = session.quota(name).await.and_then(|quota| quota.free()) else {
                continue;
            };
            let blobs = self.blobs(name, &stops);
            let mut needed: u64 = blobs.values().map(|(size, _)| size).sum();
            if needed > free {
                let blobs: Vec<_> = blobs.into_iter().collect();
                let there =
                    run_concurrently(blobs.len(), self.uploader.limits.jobs, async |at: usize| {
                        let (digest, (size, repository)) = &blobs[at];
                        let there = session.has_blob(repository, digest).await.unwrap_or(false);
                        if there { *size } else { 0 }
                    });
                needed -= there.await.into_iter().sum::<u64>();
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

    /// The blobs that deliveries to a project bring there: size, and a repository for each.
    fn blobs(&self, name: &str, stops: &[usize]) -> BTreeMap<Digest, (u64, &str)> {
        let blobs_of = |at: usize| self.entry(at).parts.into_iter();
        let whole = (0..self.deliveries.len()).filter(|&at| {
            matches!(self.standings[at], Ok(TagState::Whole))
                && project(self.repository(at)) == name
        });
        let there: BTreeSet<Digest> = whole
            .flat_map(|at| blobs_of(at).map(|part| part.descriptor.digest))
            .collect();
        let brought = stops.iter().flat_map(|&at| {
            let parts = blobs_of(at).filter(|part| !part.is_manifest());
            parts.map(move |part| {
                (
                    part.descriptor.digest,
                    (part.descriptor.size, self.repository(at)),
                )
            })
        });
        brought
            .filter(|(digest, _)| !there.contains(digest))
            .collect()
    }

    /// Whether this account may push: an upload is begun and cancelled, once for each project; once
    /// in all at a registry that asks for no sign-in; once for each repository where each must be
    /// made first. A dry run begins none, and reports only what was refused already.
    async fn rights(&self, missing: &[String]) -> Vec<Problem> {
        let session = &self.uploader.session;
        let groups = if self.options.dry_run {
            BTreeMap::new()
        } else if is_ecr(session.host()) {
            self.by(|repository| repository)
        } else if session.is_anonymous() {
            self.by(|_| "")
        } else {
            self.by(project)
        };
        let asked = groups
            .into_iter()
            .filter(|(name, _)| !missing.iter().any(|missing| missing == name));
        let asked: Vec<Vec<usize>> = asked.map(|(_, stops)| stops).collect();
        let refusals =
            run_concurrently(asked.len(), self.uploader.limits.jobs, async |at: usize| {
                let repository = self.repository(asked[at][0]);
                let refused = session.check_push(repository).await.err();
                refused.map(|error| self.refused(repository, &error, asked[at].clone()))
            });
        let mut problems: Vec<Problem> = refusals.await.into_iter().flatten().collect();
        let told: BTreeSet<usize> = problems
            .iter()
            .flat_map(|problem| problem.stops.clone())
            .collect();
        for &at in self.todo.iter().filter(|at| !told.contains(at)) {
            if let Err(error) = &self.standings[at]
                && !missing
                    .iter()
                    .any(|missing| missing == project(self.repository(at)))
            {
                problems.push(self.refused(self.repository(at), error, vec![at]));
            }
        }
        problems
    }

    fn refused(&self, repository: &str, error: &HttpError, stops: Vec<usize>) -> Problem {
        let host = self.uploader.session.host();
        let unknown = error.has_code("NAME_UNKNOWN");
        let (kind, message) = match error.kind {
            ErrorKind::NotFound if is_ecr(host) => (
                ProblemKind::Repository,
                format!(
                    "{host} has no repository {repository}: {}",
                    ecr_command(host, repository)
                ),
            ),
            ErrorKind::NotFound if unknown => (
                ProblemKind::Repository,
                format!("{host} has no repository {repository}, and makes none by itself: {error}"),
            ),
            _ => (
                ProblemKind::Rights,
                format!("nothing can be pushed to {repository}: {error}"),
            ),
        };
        Problem::new(kind, format!("{host}/{repository}"), message, stops)
    }

    async fn sparse(&self) -> Vec<Problem> {
        let at = self
            .todo
            .iter()
            .find(|&&at| self.entry(at).trimmed().is_some());
        let Some(&at) = at else { return Vec::new() };
        let entry = self.entry(at);
        let message = match self
            .uploader
            .accepts_sparse_index(&entry, self.repository(at))
            .await
        {
            Ok(true) => return Vec::new(),
            Ok(false) => format!(
                "the registry refuses an index with missing children, and the site says `index: exact`: {}; lock all \
                 platforms of it, or allow the trimmed index",
                entry.name
            ),
            Err(error) => format!(
                "whether the registry takes {} cannot be found out: {error}",
                entry.name
            ),
        };
        let place = &self.deliveries[at].destination;
        vec![Problem::new(
            ProblemKind::Index,
            place.to_string(),
            message,
            vec![at],
        )]
    }
}
