//! The responses of the fault registry that follow from [`Rule`]s.

use super::answers::ranged;
use super::rules::{Ranges, Refusal, Response, Rule, TagList, UploadLocation};
use super::server::Faults;
use super::switch::{FaultKind, Location, RequestKind};
use super::wire::{Answer, Request};
use serde_json::{Value, json};
use std::sync::Arc;

const INDEXES: [&str; 2] = [
    crate::support::images::OCI_INDEX,
    crate::support::images::DOCKER_LIST,
];

/// Finds the value of the first rule of this kind.
macro_rules! rule {
    ($rules:expr, $name:ident) => {
        $rules.iter().find_map(|rule| match rule {
            Rule::$name(value) => Some(value),
            _ => None,
        })
    };
}

impl Faults {
    fn rules(&self) -> Arc<[Rule]> {
        self.state().settings.rules.clone()
    }

    /// The fault that the rules mean for this request.
    pub(super) fn product_fault(&self, on: RequestKind, request: &Request) -> Option<FaultKind> {
        let rules = self.rules();
        match on {
            RequestKind::Manifest | RequestKind::ManifestHead => {
                rule!(rules, NoContentDigest).map(|_| FaultKind::NoDigest)
            }
            RequestKind::Blob | RequestKind::Second => match rule!(rules, Ranges)? {
                Ranges::Ignored => Some(FaultKind::RangeDropped),
                Ranges::Refused(status) => Some(FaultKind::RangeRefused(*status)),
            },
            RequestKind::Begin => {
                let digest = request.query("mount")?;
                let uncommitted = rule!(rules, MountUncommitted).filter(|response| {
                    response.status == 202
                        && !self.is_committed(request.query("from").unwrap_or_default(), digest)
                });
                uncommitted.map(|response| FaultKind::Mount(response.status))
            }
            RequestKind::Patch => rule!(rules, Upload)?.patch.map(FaultKind::PatchStatus),
            _ => None,
        }
    }

    /// The form of `Location` of a new upload by the rules.
    pub(super) fn product_location(&self) -> Option<Location> {
        let UploadLocation::Relative = rule!(self.rules(), Upload)?.location?;
        Some(Location::Relative)
    }

    /// Whether an index with missing children is accepted.
    pub(super) fn accepts_sparse_indexes(&self) -> bool {
        rule!(self.rules(), SparseIndexes).is_some()
    }

    /// The response by the rules, for requests that they answer without the content.
    pub(super) fn product_answer(
        &self,
        on: Option<RequestKind>,
        request: &Request,
        repository: &str,
        last: &str,
        body: &[u8],
    ) -> Option<Answer> {
        let rules = self.rules();
        if rules.is_empty() {
            return None;
        }
        let respond = |response: &Response| Some(self.respond(response, repository, last, ""));
        match on {
            Some(RequestKind::PutManifest) => self.refused(&rules, request, repository, last, body),
            Some(RequestKind::ManifestHead) => respond(rule!(rules, ManifestHead)?),
            Some(RequestKind::Blob) => {
                let redirect = rules.iter().find_map(|rule| match rule {
                    Rule::RedirectsBlobs { status, path } => Some((*status, path.as_deref())),
                    _ => None,
                });
                let (status, path) = redirect?;
                self.state().content.any_blob(last)?;
                let target = match path {
                    Some(path) => format!("{path}/{last}"),
                    None => format!("http://{}/signed/{last}?signature=good", self.second),
                };
                Some(Answer::new(status, "").header("Location", target))
            }
            // the target of a redirect to a folder of the host
            None if request.method == "GET" && last.starts_with("sha256:") => {
                let blob = self.state().content.any_blob(last)?;
                Some(ranged(request, &blob, None))
            }
            Some(RequestKind::Tags) => self.listed(rule!(rules, Tags)?, request, repository),
            Some(RequestKind::Referrers) => {
                let unknown = rule!(rules, ReferrersOfUnknown)
                    .filter(|_| !self.has_manifest(repository, last));
                respond(rule!(rules, NoReferrersApi).or(unknown)?)
            }
            Some(RequestKind::Begin) => {
                let digest = request.query("mount")?;
                let response = match request.query("from") {
                    None => rule!(rules, MountWithoutFrom)?,
                    Some(from) => rule!(rules, MountUncommitted)
                        .filter(|_| !self.is_committed(from, digest))?,
                };
                match response.status {
                    // from any repository
                    201 => self.mounted(repository, digest),
                    // an upload begins
                    202 => None,
                    _ => Some(self.respond(response, repository, last, digest)),
                }
            }
            Some(RequestKind::Patch) => respond(rule!(rules, Upload)?.no_patch.as_ref()?),
            Some(RequestKind::Second) if request.path.starts_with("/-/") => {
                let page = "<!DOCTYPE html><html><head><title>Not Found</title></head></html>";
                Some(Answer::new(404, page).header("Content-Type", "text/html"))
            }
            None if request.method == "DELETE" && !last.contains(':') => {
                respond(rule!(rules, DeleteTag)?)
            }
            None if request.method == "DELETE" => {
                let child = rule!(rules, DeleteChild).filter(|_| self.is_child(repository, last));
                let untagged =
                    rule!(rules, DeleteUntagged).filter(|_| !self.is_tagged(repository, last));
                respond(child.or(untagged).or(rule!(rules, DeleteDigest))?)
            }
            _ => None,
        }
    }

    /// Changes a response as the rules demand.
    pub(super) fn as_product(
        &self,
        on: Option<RequestKind>,
        repository: &str,
        last: &str,
        answer: Answer,
    ) -> Answer {
        let rules = self.rules();
        let is_manifest = matches!(on, Some(RequestKind::Manifest | RequestKind::ManifestHead));
        let is_blob = matches!(on, Some(RequestKind::Blob | RequestKind::BlobHead));
        if answer.status == 404
            && (is_manifest || is_blob)
            && let Some(response) = rule!(rules, Missing)
        {
            return self.respond(response, repository, last, "");
        }
        let mut answer = answer;
        if is_manifest && let Some(headers) = rule!(rules, ManifestHeaders) {
            answer.headers.extend(headers.iter().cloned());
        }
        if on == Some(RequestKind::PutManifest) && rule!(rules, OciSubject) == Some(&false) {
            answer.headers.retain(|(name, _)| name != "OCI-Subject");
        }
        let is_write = matches!(
            on,
            Some(
                RequestKind::Begin
                    | RequestKind::Patch
                    | RequestKind::Upload
                    | RequestKind::PutManifest
            )
        );
        if is_write && answer.status < 300 && rule!(rules, HtmlResponses) == Some(&true) {
            answer = answer.header("Content-Type", "text/html; charset=utf-8");
        }
        answer
    }

    /// The digest that a registry reads a tag as, if it reads `sha256-<hex>` as a digest.
    pub(super) fn tag_as_digest(&self, repository: &str, reference: &str) -> Option<String> {
        rule!(self.rules(), TagsAreDigests).filter(|is_so| **is_so)?;
        let digest = format!("sha256:{}", reference.strip_prefix("sha256-")?);
        self.has_manifest(repository, &digest).then_some(digest)
    }

    /// The response to a mount of a blob that any repository has.
    fn mounted(&self, repository: &str, digest: &str) -> Option<Answer> {
        let mut state = self.state();
        let blob = state.content.any_blob(digest)?;
        let key = (repository.to_owned(), digest.to_owned());
        state.content.blobs.insert(key, blob);
        let location = format!("/v2/{repository}/blobs/{digest}");
        Some(Answer::new(201, "").header("Location", location))
    }

    fn has_manifest(&self, repository: &str, digest: &str) -> bool {
        let key = (repository.to_owned(), digest.to_owned());
        self.state().content.manifests.contains_key(&key)
    }

    fn is_tagged(&self, repository: &str, digest: &str) -> bool {
        let state = self.state();
        let mut tags = state.content.tags.iter();
        tags.any(|((own, _), at)| own == repository && at == digest)
    }

    /// Whether a tagged manifest of the repository has the blob.
    fn is_committed(&self, repository: &str, blob: &str) -> bool {
        let state = self.state();
        let content = &state.content;
        let tagged = content
            .tags
            .iter()
            .filter(|((own, _), _)| own == repository);
        tagged
            .map(|(_, digest)| (repository.to_owned(), digest.clone()))
            .any(|key| {
                let bytes = content.manifests.get(&key).map(|(_, bytes)| &bytes[..]);
                bytes.is_some_and(|bytes| String::from_utf8_lossy(bytes).contains(blob))
            })
    }

    fn is_child(&self, repository: &str, digest: &str) -> bool {
        let state = self.state();
        let own = state
            .content
            .manifests
            .iter()
            .filter(|((own, _), _)| own == repository);
        own.map(|(_, (_, bytes))| bytes).any(|bytes| {
            let document: Value = serde_json::from_slice(bytes).unwrap_or_default();
            let children = document["manifests"].as_array().into_iter().flatten();
            children.into_iter().any(|child| child["digest"] == digest)
        })
    }

    /// The response to a manifest that the rules refuse.
    fn refused(
        &self,
        rules: &[Rule],
        request: &Request,
        repository: &str,
        last: &str,
        body: &[u8],
    ) -> Option<Answer> {
        let tag = (repository.to_owned(), last.to_owned());
        if let Some(response) = rule!(rules, ImmutableTags)
            && self.state().content.tags.contains_key(&tag)
        {
            return Some(self.respond(response, repository, last, last));
        }
        let document: Value = serde_json::from_slice(body).unwrap_or_default();
        rules.iter().find_map(|rule| {
            let Rule::Refuses(refusal) = rule else {
                return None;
            };
            let what = self.matches(refusal, request, repository, &document, body)?;
            Some(self.respond(&refusal.with, repository, last, &what))
        })
    }

    /// The media type or digest for which a manifest is refused, if it is.
    fn matches(
        &self,
        refusal: &Refusal,
        request: &Request,
        repository: &str,
        document: &Value,
        body: &[u8],
    ) -> Option<String> {
        let unlisted = |list: &Option<Vec<String>>, found: Option<&str>| {
            let found = found.filter(|found| !found.is_empty())?;
            let list = list.as_ref()?;
            (!list.iter().any(|one| one == found)).then(|| found.to_owned())
        };
        let children = document["manifests"].as_array();
        let is_nested = || {
            let types = children?
                .iter()
                .filter_map(|child| child["mediaType"].as_str());
            types
                .into_iter()
                .find(|kind| INDEXES.contains(kind))
                .map(str::to_owned)
        };
        let missing = || {
            self.state()
                .content
                .lacking_children(repository, document)
                .into_iter()
                .next()
        };
        let mut layers = document["layers"].as_array().into_iter().flatten();
        unlisted(
            &refusal.content_types_except,
            request.header("content-type"),
        )
        .or_else(|| {
            unlisted(
                &refusal.config_types_except,
                document["config"]["mediaType"].as_str(),
            )
        })
        .or_else(|| {
            unlisted(
                &refusal.artifact_types_except,
                document["artifactType"].as_str(),
            )
        })
        .or_else(|| {
            let types = layers.find_map(|layer| {
                let kind = layer["mediaType"].as_str()?;
                refusal
                    .layer_types
                    .iter()
                    .flatten()
                    .find(|own| *own == kind)
            });
            types.cloned()
        })
        .or_else(|| {
            let subject = document["subject"]["digest"]
                .as_str()
                .filter(|_| refusal.subjects);
            subject.map(str::to_owned)
        })
        .or_else(|| missing().filter(|_| refusal.sparse_indexes))
        .or_else(|| is_nested().filter(|_| refusal.nested_indexes))
        .or_else(|| {
            let is_larger = refusal.larger_than.is_some_and(|limit| body.len() > limit);
            is_larger.then(|| body.len().to_string())
        })
        .or_else(|| {
            let depth = repository.split('/').count();
            let is_deeper = refusal.deeper_than.is_some_and(|limit| depth > limit);
            is_deeper.then(|| repository.to_owned())
        })
    }

    /// A response with its placeholders replaced.
    fn respond(&self, response: &Response, repository: &str, last: &str, what: &str) -> Answer {
        let replace = |text: &str| {
            let text = text.replace("TYPE", what).replace("REPO", repository);
            text.replace("REFERENCE", last)
        };
        let Response { status, .. } = *response;
        if let Some(location) = &response.location {
            let target = format!("http://{}{}", self.second, replace(location));
            return Answer::new(status, "").header("Location", target);
        }
        let typed = |body: String, kind| Answer::new(status, body).header("Content-Type", kind);
        if let Some(text) = &response.text {
            return typed(replace(text), "text/plain; charset=utf-8");
        }
        if let Some(title) = &response.page {
            let page = format!("<!DOCTYPE html><html><head><title>{title}</title></head></html>");
            return typed(page, "text/html; charset=utf-8");
        }
        if let Some(document) = &response.json {
            return typed(replace(&document.to_string()), "application/json");
        }
        let Some(code) = &response.code else {
            return Answer::new(status, "");
        };
        let mut error = json!({"code": code, "message": response.message});
        if let Some(detail) = &response.detail {
            error["detail"] = detail.clone();
        }
        typed(
            replace(&json!({"errors": [error]}).to_string()),
            "application/json",
        )
    }

    /// A page of the tags of a repository by the rule; `None` for the page that the server makes
    /// without rules.
    fn listed(&self, rule: &TagList, request: &Request, repository: &str) -> Option<Answer> {
        let accepted = request.header("accept").unwrap_or("*/*");
        let takes_json = ["*/*", "application/json"].map(|kind| accepted.contains(kind));
        if rule.only_json && takes_json == [false; 2] {
            return Some(Answer::new(406, ""));
        }
        let state = self.state();
        let is_known = state
            .content
            .manifests
            .keys()
            .any(|(own, _)| own == repository);
        let of_repository = state
            .content
            .tags
            .keys()
            .filter(|(own, _)| own == repository);
        let last = request.query("last").unwrap_or_default();
        let all: Vec<String> = of_repository
            .map(|(_, tag)| tag.clone())
            .filter(|tag| tag.as_str() > last)
            .collect();
        drop(state);
        if !is_known {
            let unknown = Response::error(404, "NAME_UNKNOWN", "repository name not known");
            return Some(self.respond(
                rule.unknown.as_ref().unwrap_or(&unknown),
                repository,
                "",
                "",
            ));
        }
        let wanted = request.query("n").filter(|_| !rule.n_ignored);
        let wanted = wanted.and_then(|n| n.parse::<usize>().ok());
        let size = [wanted, rule.page]
            .into_iter()
            .flatten()
            .min()
            .unwrap_or(all.len());
        let page = &all[..size.min(all.len())];
        let tags = if page.is_empty() && rule.null {
            json!(null)
        } else {
            json!(page)
        };
        let document = json!({"name": repository, "tags": tags}).to_string();
        let answer = Answer::new(200, document).header("Content-Type", "application/json");
        let is_linked = rule.always_linked
            || rule.linked_if_full && page.len() == size
            || page.len() < all.len();
        let (Some(last), true) = (page.last(), is_linked) else {
            return Some(answer);
        };
        let link = rule
            .link
            .as_deref()
            .unwrap_or("/v2/REPO/tags/list?last=LAST&n=N");
        let tail = repository
            .split_once('/')
            .map_or(repository, |(_, tail)| tail);
        let link = link
            .replace("HOST", &self.address)
            .replace("REPO", repository)
            .replace("TAIL", tail)
            .replace("LAST", last)
            .replace("=N", &format!("={size}"));
        Some(answer.header("Link", format!("<{link}>; rel=\"next\"")))
    }
}

impl Response {
    fn error(status: u16, code: &str, message: &str) -> Response {
        Response {
            status,
            code: Some(code.into()),
            message: message.into(),
            detail: None,
            text: None,
            page: None,
            json: None,
            location: None,
        }
    }
}
