//! Lists the tags of a repository and the referrers of a manifest (distribution-spec, "Listing
//! Tags", "Listing Referrers", "Referrers Tag Schema").

use super::challenge::TokenScope;
use super::manifests::FetchedManifest;
use super::session::RegistrySession;
use bytes::Bytes;
use landfall_http::{
    BodyFailure, ErrorKind, HttpError, HttpRequest, HttpResponse, RequestPurpose, api_errors,
    is_html,
};
use landfall_model::{
    ChildManifest, Descriptor, Digest, Failure, Manifest, UnreadableChild, from_json, media_type,
    referrers_tag, unreadable_children,
};
use reqwest::header::{ACCEPT, LINK};
use reqwest::{Method, StatusCode};
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeSet, HashSet};
use url::Url;

/// How many tags are requested per page.
const PAGE_SIZE: usize = 1000;

#[derive(Deserialize)]
struct TagsPage {
    tags: Option<Vec<Value>>,
}

/// A response to a request for a list.
enum ListResponse {
    /// The bytes of a page, and the URL of the next one.
    Page(Bytes, Option<Url>),
    /// The response is not a list.
    Other(Box<HttpResponse>),
}

impl RegistrySession {
    /// Returns all tags of the repository, or `None` if the list has more than `pages` pages or is
    /// not available, see [`TagList`].
    ///
    /// # Errors
    /// If the request fails.
    pub async fn tags(
        &self,
        repository: &str,
        pages: usize,
    ) -> Result<Option<BTreeSet<String>>, HttpError> {
        Ok(match self.tag_list(repository, pages).await? {
            TagList::Whole(tags) => Some(tags),
            TagList::LongerThan(_) | TagList::Refused => None,
        })
    }

    /// Reads the list of the repository's tags, at most `pages` pages of it.
    ///
    /// # Errors
    /// If the request fails.
    pub async fn tag_list(&self, repository: &str, pages: usize) -> Result<TagList, HttpError> {
        let mut turn = None;
        if self.lists_tags.get().is_none() {
            turn = Some(self.first_tags.lock().await);
        }
        if self.lists_tags.get().is_some_and(Result::is_err) {
            return Ok(TagList::Refused);
        }
        let scope = self.scope(repository, false);
        let plain_url = self.url(repository, "tags/list")?;
        let mut url = plain_url.clone();
        url.query_pairs_mut()
            .append_pair("n", &PAGE_SIZE.to_string());
        let mut tags = BTreeSet::new();
        let mut left = self.transport.limits().document_bytes;
        let mut seen = HashSet::new();
        let mut number = 0;
        while number < pages {
            let request = HttpRequest::new(Method::GET, url.clone(), RequestPurpose::Registry);
            let (bytes, next) = match self.tags_page(request, &scope, left).await {
                Ok(ListResponse::Page(bytes, next)) => {
                    let _ = self.lists_tags.set(Ok(()));
                    drop(turn.take());
                    (bytes, next)
                }
                // some registries refuse a page of this size; without a size, they choose one
                Ok(ListResponse::Other(response))
                    if response.status == StatusCode::BAD_REQUEST
                        && tags.is_empty()
                        && url != plain_url =>
                {
                    response.discard().await;
                    url = plain_url.clone();
                    continue;
                }
                Ok(ListResponse::Other(response))
                    if response.status == StatusCode::INTERNAL_SERVER_ERROR =>
                {
                    self.note_failing_lists(*response, &scope, repository).await;
                    return Ok(TagList::Refused);
                }
                Ok(ListResponse::Other(response)) => {
                    response.discard().await;
                    return Ok(TagList::Refused);
                }
                // an account may be allowed to read images but not the list
                Err(error) if matches!(error.kind, ErrorKind::Invalid | ErrorKind::Denied) => {
                    return Ok(TagList::Refused);
                }
                Err(error) => return Err(error),
            };
            // all pages together may have as many bytes as one document
            left -= bytes.len();
            let Ok(page) = from_json::<TagsPage>(&bytes) else {
                return Ok(TagList::Refused);
            };
            let found = page.tags.unwrap_or_default();
            // a full page without a link to the next: the registry may have cut off the list
            let is_cut = next.is_none() && found.len() == PAGE_SIZE && url != plain_url;
            // entries such as `null` name no tag
            tags.extend(found.into_iter().filter_map(|tag| match tag {
                Value::String(tag) => Some(tag),
                _ => None,
            }));
            number += 1;
            match next {
                // a page that was read before would be read for ever
                Some(next) if !seen.insert(next.clone()) => return Ok(TagList::Refused),
                Some(next) => url = next,
                None if is_cut => return Ok(TagList::Refused),
                None => return Ok(TagList::Whole(tags)),
            }
        }
        Ok(TagList::LongerThan(pages))
    }

    /// Requests a page of a list of tags. Some registries always answer 500 to such requests, so a
    /// 500 is retried only once; all other failures are retried as usual.
    async fn tags_page(
        &self,
        request: HttpRequest,
        scope: &TokenScope,
        limit: usize,
    ) -> Result<ListResponse, HttpError> {
        let single = HttpRequest {
            retried: false,
            ..request.clone()
        };
        let status = match self.page(&single, scope, limit).await {
            Ok(ListResponse::Other(response)) if may_pass(response.status) => {
                let status = response.status;
                response.discard().await;
                status
            }
            Ok(answer) => return Ok(answer),
            Err(_) => return self.page(&request, scope, limit).await,
        };
        tokio::time::sleep(self.transport.retry_policy().pause(1)).await;
        let again = match status {
            StatusCode::INTERNAL_SERVER_ERROR => &single,
            _ => &request,
        };
        self.page(again, scope, limit).await
    }

    /// Records that two requests for a list of tags failed with 500: no more lists are requested
    /// from this registry. Manifests are not affected.
    async fn note_failing_lists(
        &self,
        response: HttpResponse,
        scope: &TokenScope,
        repository: &str,
    ) {
        let what = || format!("the tags of {}/{repository}", self.host());
        let Err(error) = self.expect(response, scope, what, |_| false).await else {
            return;
        };
        // if a list of another repository succeeded, which sets it too, this failure concerns this
        // repository alone
        if self.lists_tags.set(Err(error.clone())).is_ok() {
            self.transport.note_once(&format!(
                "note: {} lists no tags: {error}; no more lists are requested from it in this run",
                self.host()
            ));
        }
    }

    /// Why the registry lists no tags, if its lists failed in this run.
    pub fn tags_failure(&self) -> Option<String> {
        let known = self.lists_tags.get()?;
        known.as_ref().err().map(HttpError::to_string)
    }

    /// Returns the referrers of `subject`, or `None` if the registry returns no list. With `push`,
    /// the token that is requested may also write, so that later uploads can use it.
    ///
    /// # Errors
    /// If the list cannot be read.
    pub async fn referrers(
        &self,
        repository: &str,
        subject: &Digest,
        push: bool,
    ) -> Result<Option<Vec<Descriptor>>, HttpError> {
        Ok(self
            .referrers_response(repository, subject, push)
            .await?
            .listed()
            .map(|list| list.found))
    }

    /// Requests the referrers of `subject`. If the response for the first subject of a repository
    /// shows that there is no API, the referrers of its other subjects are not requested.
    ///
    /// # Errors
    /// If the list cannot be read.
    pub async fn referrers_response(
        &self,
        repository: &str,
        subject: &Digest,
        push: bool,
    ) -> Result<ReferrersResponse, HttpError> {
        let request_first = async || {
            let answer = self.list_referrers(repository, subject, push).await?;
            // `NoList` may concern only this subject: some registries answer 404 for a manifest
            // without referrers
            let lacks_api = matches!(answer, ReferrersResponse::NoApi);
            Ok::<_, HttpError>((lacks_api, answer))
        };
        match self
            .lacks_referrers_api
            // the first subject of a repository is requested alone; otherwise a registry without
            // the API would get one request for each manifest
            .get_or_init_with(repository.to_owned(), request_first)
            .await?
        {
            (_, Some(answer)) => Ok(answer),
            (true, None) => Ok(ReferrersResponse::NoApi),
            (false, None) => self.list_referrers(repository, subject, push).await,
        }
    }

    async fn list_referrers(
        &self,
        repository: &str,
        subject: &Digest,
        push: bool,
    ) -> Result<ReferrersResponse, HttpError> {
        let scope = self.scope(repository, push);
        let mut url = self.url(repository, &format!("referrers/{subject}"))?;
        let name = format!("referrers of {}/{repository}@{subject}", self.host());
        let limits = self.transport.limits();
        let mut listed = ListedReferrers::default();
        let mut left = limits.manifest_bytes;
        for page in 0..limits.pages {
            let request = HttpRequest::new(Method::GET, url.clone(), RequestPurpose::Registry);
            let request = request.header(ACCEPT, media_type::OCI_INDEX);
            let (bytes, next) = match self
                .page(&request, &scope, left)
                .await
                .map_err(|error| error.about(&*name))?
            {
                // a failure of a later page is an error: entries would be missing without a notice
                ListResponse::Other(response) if page == 0 && may_lack_api(&response) => {
                    return Ok(no_list(*response).await);
                }
                ListResponse::Page(bytes, _) if page == 0 && is_html(&bytes) => {
                    return Ok(ReferrersResponse::NoList);
                }
                ListResponse::Page(bytes, next) => (bytes, next),
                ListResponse::Other(response) => {
                    let is_ok = |status| status == StatusCode::OK;
                    self.expect(*response, &scope, || name.clone(), is_ok)
                        .await?
                        .discard()
                        .await;
                    let words = "the response is not a list";
                    return Err(HttpError::new(ErrorKind::Invalid, words).about(&*name));
                }
            };
            left -= bytes.len();
            let entries = referrers_in(&bytes).map_err(|error| {
                HttpError::new(ErrorKind::Invalid, error.to_string())
                    .about(&*name)
                    .caused_by(error)
            })?;
            listed
                .found
                .extend(entries.into_iter().map(|child| child.descriptor));
            listed.unreadable.extend(unreadable_children(&bytes));
            match next {
                Some(next) => url = next,
                None => return Ok(ReferrersResponse::Listed(listed)),
            }
        }
        let words = format!("the list has more than {} pages", limits.pages);
        Err(HttpError::new(ErrorKind::Invalid, words).about(&*name))
    }

    /// Requests a page of a list. The page may have at most `limit` bytes.
    async fn page(
        &self,
        request: &HttpRequest,
        scope: &TokenScope,
        limit: usize,
    ) -> Result<ListResponse, HttpError> {
        let read = async || {
            let mut response = self.send(request.clone(), scope).await?;
            if response.status != StatusCode::OK || response.is_page().await {
                return Ok(ListResponse::Other(Box::new(response)));
            }
            // the header is read first, because reading the body consumes the response
            let next = next_page(&request.url, &response);
            let bytes = response.bytes(limit).await.map_err(BodyFailure::reading)?;
            Ok(ListResponse::Page(bytes, next))
        };
        self.transport.retry_policy().read_body(read).await
    }

    /// Reads the list of referrers that clients maintain under a tag if the registry has no
    /// referrers API. Returns `None` if there is no such list. GitLab returns the subject itself
    /// for this tag, which counts as no list.
    ///
    /// # Errors
    /// If the list cannot be read, or the tag refers to something else.
    pub async fn referrers_list(
        &self,
        repository: &str,
        subject: &Digest,
    ) -> Result<Option<FetchedManifest>, HttpError> {
        let tag = referrers_tag(subject);
        let raw = match self.manifest(repository, &tag).await {
            Err(error) if error.kind == ErrorKind::NotFound => return Ok(None),
            other => other?,
        };
        if subject.matches(&raw.bytes) {
            return Ok(None);
        }
        match Manifest::parse(&raw.bytes, raw.content_type.as_deref()) {
            Ok((Manifest::Index(_), kind)) if kind == media_type::OCI_INDEX => Ok(Some(raw)),
            _ => {
                let words = "not an OCI index, so not a list of referrers";
                let error = HttpError::new(ErrorKind::Invalid, words);
                Err(error.about(format!("{}/{repository}:{tag}", self.host())))
            }
        }
    }
}

/// Parses a list of referrers.
///
/// # Errors
/// If the bytes are not an index.
pub fn referrers_in(bytes: &[u8]) -> Result<Vec<ChildManifest>, Failure> {
    match Manifest::parse(bytes, None) {
        Ok((Manifest::Index(children), _)) => Ok(children),
        Ok(_) => Err(Failure::failed("the response is not an index")),
        Err(error) => Err(Failure::failed(format!(
            "the response is not an index: {error}"
        ))),
    }
}

/// Whether a later attempt at a request with this response may succeed.
fn may_pass(status: StatusCode) -> bool {
    matches!(status.as_u16(), 408 | 429 | 500 | 502..=504)
}

/// Whether a registry with this response in place of a list may lack the referrers API. The spec
/// requires 404 then, but some registries send another status, and some front ends their web page
/// with status 200.
fn may_lack_api(response: &HttpResponse) -> bool {
    matches!(response.status.as_u16(), 200 | 400 | 404 | 405 | 406 | 501)
}

/// Returns `NoApi` if a response without a list means that the registry has no referrers API, and
/// `NoList` otherwise. The spec demands 404 for a missing API, but some registries also send 404
/// for a manifest without referrers or a hidden repository, with error objects that say so.
async fn no_list(response: HttpResponse) -> ReferrersResponse {
    let says_no_api = matches!(response.status.as_u16(), 404 | 405 | 501) && !response.says_page();
    // error objects are short, so a longer body is something else
    match response.bytes(64 << 10).await {
        Ok(body)
            if says_no_api
                && api_errors(&body)
                    .iter()
                    .all(|error| error.code == "UNSUPPORTED") =>
        {
            ReferrersResponse::NoApi
        }
        _ => ReferrersResponse::NoList,
    }
}

/// Returns the URL of the next page (RFC 8288, `rel="next"`). Scheme, host and port of the request
/// are kept, because a registry behind a proxy may name its internal address. If the link leads to
/// the same list below another prefix, the path of the request is kept too.
fn next_page(request_url: &Url, response: &HttpResponse) -> Option<Url> {
    let links: Vec<String> = response.url_headers(LINK.as_str()).collect();
    next_link(request_url, &links.join(", "))
}

/// Whether the parameters of a link, up to the next link, contain `rel="next"`.
fn has_rel_next(parameters: &str) -> bool {
    let own = split_unquoted(parameters, ',').next().unwrap_or(parameters);
    split_unquoted(own, ';').any(|parameter| {
        let mut words = parameter
            .splitn(2, '=')
            .map(|word| word.trim().trim_matches('"'));
        words
            .next()
            .is_some_and(|name| name.eq_ignore_ascii_case("rel"))
            && words.next().is_some_and(|relations| {
                let mut relations = relations.split_whitespace();
                relations.any(|relation| relation.eq_ignore_ascii_case("next"))
            })
    })
}

/// Splits `text` at each `separator` outside of double quotes, in which `\\` escapes a character.
fn split_unquoted(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let mut is_quoted = false;
    let mut is_escaped = false;
    text.split(move |c| {
        let was_escaped = std::mem::replace(&mut is_escaped, false);
        if is_quoted && !was_escaped {
            is_escaped = c == '\\';
        }
        is_quoted ^= c == '"' && !was_escaped;
        c == separator && !is_quoted
    })
}

/// The last two components of the path of a list, as in `/tags/list`.
fn list_name(path: &str) -> &str {
    let mut slashes = path.rmatch_indices('/');
    let start = slashes.nth(1).map_or(0, |(at, _)| at);
    &path[start..]
}

/// Splits a `Link` header into targets and their parameters. Some servers omit `<` and `>`.
fn links(header: &str) -> Vec<(&str, &str)> {
    if !header.contains('<') {
        let links = split_unquoted(header, ',').map(str::trim);
        return links.filter_map(|link| link.split_once(';')).collect();
    }
    let links = header.split('<').skip(1);
    links.filter_map(|link| link.split_once('>')).collect()
}

fn next_link(request_url: &Url, header: &str) -> Option<Url> {
    let links = links(header);
    let next = links
        .iter()
        .find(|(_, parameters)| has_rel_next(parameters));
    let (target, _) = next.or_else(|| match &links[..] {
        // without any relation, the only link can only lead to the next page
        [only] if !only.1.to_ascii_lowercase().contains("rel") => Some(only),
        _ => None,
    })?;
    let joined = request_url.join(target.trim()).ok()?;
    let mut next = request_url.clone();
    if !joined.path().ends_with(list_name(request_url.path())) {
        next.set_path(joined.path());
    }
    next.set_query(joined.query());
    Some(next)
}

// The responses of a registry to requests for lists.

/// The response to a request for the tags of a repository.
#[derive(Debug, Clone)]
pub enum TagList {
    /// All tags of the repository.
    Whole(BTreeSet<String>),
    /// The list has more than this many pages.
    LongerThan(usize),
    /// The registry does not list the tags, denies the list to this account, or may have cut off
    /// the list.
    Refused,
}

/// A list of referrers.
#[derive(Debug, Clone, Default)]
pub struct ListedReferrers {
    /// The manifests that refer to the subject.
    pub found: Vec<Descriptor>,
    /// Entries that name a referrer, but do not describe it in a way that landfall can read.
    pub unreadable: Vec<UnreadableChild>,
}

/// The response to a request for the referrers of a manifest.
#[derive(Debug, Clone)]
pub enum ReferrersResponse {
    /// The manifests that refer to the subject.
    Listed(ListedReferrers),
    /// The registry has no referrers API.
    NoApi,
    /// The registry returns no list, perhaps only for this repository or manifest.
    NoList,
}

impl ReferrersResponse {
    /// Returns the list, or `None` if there is none.
    pub fn listed(self) -> Option<ListedReferrers> {
        match self {
            ReferrersResponse::Listed(found) => Some(found),
            ReferrersResponse::NoApi | ReferrersResponse::NoList => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_page_is_requested_from_the_same_host() {
        let request_url = Url::parse("https://r.test:5000/v2/a/tags/list?n=2").unwrap();
        let next = |header: &str| next_link(&request_url, header).map(|url| url.to_string());
        let second = Some("https://r.test:5000/v2/a/tags/list?last=b&n=2".to_owned());
        assert_eq!(next(r#"</v2/a/tags/list?last=b&n=2>; rel="next""#), second);
        assert_eq!(next("<?last=b&n=2>;rel=next"), second);
        for link in [
            "</tags/list?last=b&n=2>; rel=\"next\"",
            "<https://r.test/registry/v2/a/tags/list?last=b&n=2>; rel=next",
            "<v2/a/tags/list?last=b&n=2>; rel=\"last NEXT\"",
        ] {
            assert_eq!(next(link), second, "{link}");
        }
        assert_eq!(
            next(r#"<http://inside:80/v2/a/tags/list?last=b&n=2>; Rel="next""#),
            second
        );
        assert_eq!(
            next(r#"</x>; rel="prev", </v2/a/tags/list?last=b&n=2>; title="t"; rel="next""#),
            second
        );
        assert_eq!(
            next(r#"</v2/a/tags/list?last=b&n=2>; title="a, \"b; c"; rel="next""#),
            second
        );
        for link in [
            r#"/v2/a/tags/list?last=b&n=2; rel="next""#,
            r#"/v2/a/tags/list?n=2; rel="first", /v2/a/tags/list?last=b&n=2 ; rel=next"#,
            "</v2/a/tags/list?last=b&n=2>",
            r#"</v2/a/tags/list?n=2>; rel="first", </v2/a/tags/list?last=b&n=2>; rel="next""#,
        ] {
            assert_eq!(next(link), second, "{link}");
        }
        assert_eq!(next(r#"</x>; rel="prev", </y>; rel="last""#), None);
        assert_eq!(next(r#"</x>; rel="prev""#), None);
        assert_eq!(next("/x; rel=prev"), None);
        assert_eq!(next("nonsense"), None);
    }

    #[test]
    fn only_an_index_is_a_list() {
        assert_eq!(
            referrers_in(br#"{"schemaVersion":2,"manifests":[]}"#),
            Ok(vec![])
        );
        assert!(referrers_in(b"<html>").is_err());
        assert!(referrers_in(br#"{"errors":[]}"#).is_err());
    }
}
