//! Handles one request: authentication, its route, and the handler that answers it.

use crate::api::{self, ReadResult};
use crate::blobs::blob_response;
use crate::catalog::{CHART_INDEX, media_type_of};
use crate::connections::RequestPermit;
use crate::git::{GitRoute, respond_git};
use crate::metrics_page::metrics_page;
use crate::observe::UserName;
use crate::page;
use crate::response::{
    Body, RequestError, ServerResponse, blocking, response_with_body, set_header,
    within_answer_memory,
};
use crate::route::{
    FORWARDED_PROTO, RequestHosts, Route, header_text, host_as_written, is_over_tls,
};
use crate::sign_in::{AccessRight, AuthenticatedUser, HtpasswdUsers};
use crate::state::{ServerState, is_api_path, newest_state, state_for};
use http::header::{
    ALLOW, AUTHORIZATION, CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderName, REFERRER_POLICY,
    RETRY_AFTER, USER_AGENT, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use http::request::Parts;
use http::uri::PathAndQuery;
use http::{HeaderMap, Method, Request, StatusCode, Uri, Version};
use jiff::Timestamp;
use landfall_item::{MirrorFile, RequestedName};
use landfall_model::report::EntryKind;
use landfall_model::split_port;
use serde_json::json;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The folders below which every file is available as HOST/PATH. Files are also available at the
/// root, so that `files` of a site can be the server's own URL.
const FILE_FOLDERS: [&str; 3] = ["/files/", "/apt/", "/yum/"];

/// The methods of everything that is only read.
const READ_METHODS: &str = "GET, HEAD";

/// The document about what clients asked for in vain.
const MISSES: &str = "/misses.json";

/// The token service for the docker daemon.
const TOKEN_SERVICE: &str = "/v2/token";

/// Headers that only proxies add to a request.
const OF_PROXIES: [&str; 4] = ["forwarded", "via", "x-forwarded-for", "x-real-ip"];

const API_VERSION: HeaderName = HeaderName::from_static("docker-distribution-api-version");

/// The policy for all responses except the page: a browser executes no content, loads no resources
/// for it, and gives it no access to this origin.
const SANDBOX: &str = "sandbox; default-src 'none'";

/// Answers one request from `address`. The permit is taken after authentication, so that no permit
/// is held while a password is compared.
pub(crate) async fn respond(
    state: Arc<ServerState>,
    address: IpAddr,
    request: Request<Body>,
) -> (ServerResponse, Option<RequestPermit>) {
    let path = request.uri().path().to_owned();
    let (state, is_current) = match state_for(state.clone(), &path).await {
        Ok(newest) => (newest, Ok(())),
        // the error becomes the response; no content of the old state is sent
        Err(error) => (state, Err(error)),
    };
    let hosts = RequestHosts::of(&state.bundles, &state.ports, &request);
    let (parts, body) = request.into_parts();
    let is_head = parts.method == Method::HEAD;
    let log_name = format!("{} {path}", parts.method);
    // the file of an original URL takes precedence over every path of the server itself
    let file = if is_read(&parts.method) {
        hosts.file(&state.bundles, &path, parts.uri.query())
    } else {
        None
    };
    let is_api = is_api_path(&path);
    // the misses name clients, so they are not for everybody
    let needs_user = is_api || path == MISSES || path == "/misses";
    let read_target = is_read(&parts.method).then(|| (parts.uri.clone(), hosts.clone()));
    let admitted = match is_current {
        Ok(()) => admit(&state, &parts, address, needs_user && file.is_none()).await,
        Err(error) => Err(error),
    };
    let mut user_name = None;
    let mut permit = None;
    let result = match admitted {
        Err(error) => Err(error),
        Ok((user, request_permit)) => {
            permit = Some(request_permit);
            let may_push = user
                .as_ref()
                .is_none_or(|user| user.right == AccessRight::Push);
            user_name = user.and_then(|user| user.user);
            match file {
                Some(Err(error)) => Err(error),
                Some(Ok(digest)) => {
                    blob_response(&state, digest, media_type_of(&path), &parts).await
                }
                None if is_api => respond_api(state.clone(), parts, hosts, body, may_push).await,
                None => respond_other(state.clone(), parts, &hosts, body).await,
            }
        }
    };
    if let (Err(error), Some((uri, hosts))) = (&result, read_target)
        && error.status == StatusCode::NOT_FOUND
    {
        record_miss(&state, &uri, &hosts, address);
    }
    let mut response = result.unwrap_or_else(|error| {
        if error.is_logged {
            state
                .progress
                .note(&format!("{log_name}: {}", error.message));
        }
        if is_api {
            error.into_json()
        } else {
            error.into_text()
        }
    });
    if let Some(name) = user_name {
        // for the access log
        response.extensions_mut().insert(UserName(name));
    }
    if is_api {
        set_header(&mut response, API_VERSION, "registry/2.0");
    }
    // the length of the body stays in the header (RFC 9110 §9.3.2)
    if is_head {
        *response.body_mut() = Body::default();
    }
    (response, permit)
}

/// Records what a request asked for in vain, if that is the name of an item.
fn record_miss(state: &ServerState, uri: &Uri, hosts: &RequestHosts, client: IpAddr) {
    let target = uri.path_and_query().map_or("", PathAndQuery::as_str);
    if let Some(mut requested) = RequestedName::of_target(target, hosts.other_server()) {
        if let (EntryKind::Image, Some(host)) = (requested.kind, &requested.host)
            && let Some(name) = state.bundles.source_name(&requested.name, host)
        {
            requested.name = name;
        }
        let misses = &state.observer.misses;
        misses.record(requested, uri.path(), client, Timestamp::now());
    }
}

fn is_read(method: &Method) -> bool {
    method == Method::GET || method == Method::HEAD
}

/// Keeps browsers from guessing the type of a response and from running it. The page has a policy
/// of its own.
pub(crate) fn confine(response: &mut ServerResponse) {
    set_header(response, X_CONTENT_TYPE_OPTIONS, "nosniff");
    if !response.headers().contains_key(CONTENT_SECURITY_POLICY) {
        set_header(response, CONTENT_SECURITY_POLICY, SANDBOX);
    }
}

/// Authenticates the request if `needs_user`, and then takes a permit for it.
async fn admit(
    state: &ServerState,
    parts: &Parts,
    address: IpAddr,
    needs_user: bool,
) -> Result<(Option<AuthenticatedUser>, RequestPermit), RequestError> {
    let user = if needs_user {
        authenticate(state, parts, address).await?
    } else {
        None
    };
    let permit = state.requests.enter(&state.connections, 1).await;
    let permit = permit.ok_or_else(|| {
        overloaded(
            StatusCode::SERVICE_UNAVAILABLE,
            "too many requests are in progress",
        )
    })?;
    Ok((user, permit))
}

/// The error for a request that waited too long for a limit.
pub(crate) fn overloaded(status: StatusCode, why: &str) -> RequestError {
    RequestError::new(status, "TOOMANYREQUESTS", format!("{why}; retry later"))
        .with_header(RETRY_AFTER, "5")
}

/// The user of the request; `None` if the server has no users and everyone may do everything.
async fn authenticate(
    state: &ServerState,
    parts: &Parts,
    address: IpAddr,
) -> Result<Option<AuthenticatedUser>, RequestError> {
    let Some(users) = &state.users else {
        return Ok(None);
    };
    let header = parts.headers.get(AUTHORIZATION);
    let user = users
        .authenticate(header, &state.sign_ins, address)
        .await
        .map_err(|_| {
            overloaded(
                StatusCode::TOO_MANY_REQUESTS,
                "too many passwords are being compared",
            )
        })?;
    let path = parts.uri.path();
    // an anonymous request to the root of the API is refused: clients learn from the challenge that
    // they can sign in before they push. The misses are for users only
    let may_be_anonymous =
        is_read(&parts.method) && is_api_path(path) && path.trim_end_matches('/') != "/v2";
    match user {
        Some(user) if user.user.is_some() || may_be_anonymous => Ok(Some(user)),
        _ => {
            let error = RequestError::new(
                StatusCode::UNAUTHORIZED,
                "UNAUTHORIZED",
                "user name and password are required",
            );
            let challenge = token_challenge(state, users, parts)
                .unwrap_or_else(|| "Basic realm=\"landfall\", charset=\"UTF-8\"".into());
            Err(error.with_header(WWW_AUTHENTICATE, challenge))
        }
    }
}

/// The challenge of `/v2/` for the docker daemon, if everybody may read. If `/v2/` requires Basic,
/// a daemon without an account sends no further request; a token is issued without an account, too.
///
/// `None` for others, and if the URL of this server is not known: if a proxy ends TLS and does not
/// say so, the daemon would send its password over plain http. Such a proxy may listen at the port
/// of this server, or name this server in `Host`, as nginx does by default.
fn token_challenge(state: &ServerState, users: &HtpasswdUsers, parts: &Parts) -> Option<String> {
    let is_docker = header_text(&parts.headers, USER_AGENT)?.starts_with("docker/");
    let is_version = parts.uri.path().trim_end_matches('/') == "/v2";
    if !(is_docker && is_version && users.allows_anonymous()) {
        return None;
    }
    let host = host_as_written(&parts.uri, &parts.headers)?;
    let has_own_port = || {
        let port = split_port(host).1.and_then(|port| port.parse::<u16>().ok());
        port.is_some_and(|port| state.ports.contains(&port))
    };
    // the daemon speaks HTTP/1.1, and nginx HTTP/1.0 to servers by default
    let is_proxied = || {
        parts.version == Version::HTTP_10
            || OF_PROXIES
                .iter()
                .any(|name| parts.headers.contains_key(*name))
    };
    let scheme = if is_over_tls(parts) {
        "https"
    } else if parts.headers.contains_key(FORWARDED_PROTO) || has_own_port() && !is_proxied() {
        "http"
    } else {
        return None;
    };
    let realm = format!("{scheme}://{host}{TOKEN_SERVICE}");
    Some(format!("Bearer realm=\"{realm}\",service=\"landfall\""))
}

/// The token for a request of an account or, without one, of an anonymous client: the credentials
/// of `Authorization`, which are verified again with each request.
fn token_response(headers: &HeaderMap) -> ServerResponse {
    // the base64 of `:`, which is an empty user name and password
    const ANONYMOUS: &str = "Og==";
    let credentials = header_text(headers, AUTHORIZATION).and_then(|text| text.split_once(' '));
    let token = credentials.map_or(ANONYMOUS, |(_, token)| token.trim());
    let body = json!({"token": token, "expires_in": 3600}).to_string();
    let mut response = response_with_body(StatusCode::OK, "application/json", body);
    set_header(&mut response, CACHE_CONTROL, "no-store");
    response
}

/// Answers a request to the distribution API.
async fn respond_api(
    state: Arc<ServerState>,
    parts: Parts,
    hosts: RequestHosts,
    body: Body,
    may_push: bool,
) -> Result<ServerResponse, RequestError> {
    let allows_anonymous = state
        .users
        .as_ref()
        .is_some_and(HtpasswdUsers::allows_anonymous);
    if allows_anonymous && parts.uri.path() == TOKEN_SERVICE && is_read(&parts.method) {
        return Ok(token_response(&parts.headers));
    }
    let route = Route::parse(parts.uri.path())?;
    let allowed = allowed_methods(&route);
    if parts.method == Method::OPTIONS {
        return Ok(respond_options(allowed));
    }
    if !allowed
        .split(", ")
        .any(|method| method == parts.method.as_str())
    {
        let message = format!(
            "{} is not supported here: see the Allow header",
            parts.method
        );
        return Err(RequestError::method_not_allowed(message).with_header(ALLOW, allowed));
    }
    // GET of an upload in progress belongs to the push
    if is_read(&parts.method) && !matches!(route, Route::Upload(..)) {
        return respond_read(state, parts, hosts, route).await;
    }
    if !may_push {
        return Err(RequestError::denied("this user may only read"));
    }
    let Some(store) = state.writable.clone() else {
        let message = "this server is read-only; start it with --writable DIR to push to it";
        return Err(RequestError::method_not_allowed(message).with_header(ALLOW, READ_METHODS));
    };
    // in its own task, which finishes even if the client disconnects
    let task = tokio::spawn(async move {
        match route {
            Route::Manifest(name, reference) if parts.method == Method::DELETE => {
                api::delete_manifest(state, store, name, reference).await
            }
            Route::Blob(_, digest) => api::delete_blob(state, store, digest).await,
            Route::Manifest(name, reference) => {
                api::put_manifest(state, store, &parts, name, reference, body).await
            }
            Route::Uploads(name) => api::begin_upload(state, store, &parts, &name, body).await,
            Route::Upload(name, id) => {
                api::resume_upload(state, store, &parts, &name, &id, body).await
            }
            _ => Err(RequestError::method_not_allowed(
                "this resource cannot be written to",
            )),
        }
    });
    task.await?
}

/// Answers a GET or HEAD of the distribution API.
async fn respond_read(
    state: Arc<ServerState>,
    parts: Parts,
    hosts: RequestHosts,
    route: Route,
) -> Result<ServerResponse, RequestError> {
    let _slot = match route {
        // the first request for referrers reads every manifest of the repository
        Route::Referrers(..) => state.manifest_slots.acquire().await.ok(),
        _ => None,
    };
    let _turn = match route {
        Route::Catalog | Route::Tags(_) | Route::Referrers(..) => {
            state.documents.acquire().await.ok()
        }
        _ => None,
    };
    let reader = state.clone();
    let read_parts = parts.clone();
    let result = blocking(move || api::read(&reader, &read_parts, &hosts, &route)).await??;
    match result {
        ReadResult::Response(response) => within_answer_memory(&state, response).await,
        ReadResult::Blob { digest, media_type } => {
            blob_response(&state, &digest, &media_type, &parts).await
        }
    }
}

/// The methods of a route, as `Allow` lists them.
fn allowed_methods(route: &Route) -> &'static str {
    match route {
        Route::Version | Route::Catalog | Route::Tags(_) | Route::Referrers(..) => READ_METHODS,
        Route::Blob(..) => "GET, HEAD, DELETE",
        Route::Manifest(..) => "GET, HEAD, PUT, DELETE",
        Route::Uploads(_) => "POST",
        Route::Upload(..) => "GET, PATCH, PUT, DELETE",
    }
}

/// Whether the request asks about the server itself. Such a request needs no permit, so that
/// probes succeed under load. A file of an original URL takes precedence.
pub(crate) fn is_about_server<T>(state: &ServerState, request: &Request<T>) -> bool {
    let path = request.uri().path();
    if !matches!(path, "/healthz" | "/readyz" | "/metrics") {
        return false;
    }
    let hosts = RequestHosts::of(&state.bundles, &state.ports, request);
    hosts.file(&state.bundles, path, None).is_none()
}

/// Answers a request about the server itself.
pub(crate) async fn respond_about_server<T>(
    state: &Arc<ServerState>,
    request: &Request<T>,
) -> ServerResponse {
    if !is_read(request.method()) && *request.method() != Method::OPTIONS {
        return read_only().into_text();
    }
    let plain = "text/plain; charset=utf-8";
    let (status, content_type, text) = match request.uri().path() {
        "/metrics" => (
            StatusCode::OK,
            "text/plain; version=0.0.4; charset=utf-8",
            metrics_page(state),
        ),
        "/readyz" => match readiness(state).await {
            Ok(()) => (StatusCode::OK, plain, "ready\n".to_owned()),
            Err(why) => (StatusCode::SERVICE_UNAVAILABLE, plain, format!("{why}\n")),
        },
        _ => (StatusCode::OK, plain, "ok\n".to_owned()),
    };
    let mut response = response_with_body(status, content_type, text.into_bytes());
    if request.method() == Method::HEAD {
        *response.body_mut() = Body::default();
    }
    response
}

fn read_only() -> RequestError {
    RequestError::method_not_allowed("only GET and HEAD are supported here")
        .with_header(ALLOW, READ_METHODS)
}

/// Answers OPTIONS, by which `HAProxy` checks its servers unless another method is configured: it
/// counts a server that answers 405 as down.
fn respond_options(methods: &str) -> ServerResponse {
    let mut response = ServerResponse::new(Body::default());
    *response.status_mut() = StatusCode::NO_CONTENT;
    set_header(&mut response, ALLOW, methods);
    response
}

/// Fails with the reason why no more requests should be sent to this server.
async fn readiness(state: &Arc<ServerState>) -> Result<(), String> {
    if state.draining.load(Ordering::Relaxed) {
        return Err("the server is about to stop".into());
    }
    newest_state(state.clone()).await.map(drop)
}

/// Answers a request outside of the API: git's protocol, and everything that is only read.
async fn respond_other(
    state: Arc<ServerState>,
    parts: Parts,
    hosts: &RequestHosts,
    body: Body,
) -> Result<ServerResponse, RequestError> {
    match GitRoute::parse(&state.bundles.git, hosts, parts.uri.path()) {
        Some(route) => respond_git(&state, &parts, body, route?).await,
        None => respond_plain(state, parts, hosts).await,
    }
}

/// Answers a request that only reads: the page, charts below `/charts/`, providers below
/// `/providers/`, and files and packages below their folders or at the root.
async fn respond_plain(
    state: Arc<ServerState>,
    parts: Parts,
    hosts: &RequestHosts,
) -> Result<ServerResponse, RequestError> {
    if parts.method == Method::OPTIONS {
        return Ok(respond_options(READ_METHODS));
    }
    if !is_read(&parts.method) {
        return Err(read_only());
    }
    let reader = state.clone();
    if parts.uri.path() == MISSES {
        let document = blocking(move || page::misses_document(&reader)).await?;
        return Ok(response_with_body(
            StatusCode::OK,
            "application/json",
            document.to_string().into_bytes(),
        ));
    }
    let page_parts = parts.clone();
    if let Some(page) = blocking(move || page::page(&reader, &page_parts)).await? {
        let mut response = response_with_body(StatusCode::OK, "text/html; charset=utf-8", page?);
        set_header(&mut response, CONTENT_SECURITY_POLICY, &page::POLICY);
        set_header(&mut response, REFERRER_POLICY, "no-referrer");
        return Ok(response);
    }
    let path = parts.uri.path();
    if let Some(chart) = path.strip_prefix("/charts/")
        && !state.bundles.charts.is_empty()
    {
        return respond_chart(&state, chart, &parts).await;
    }
    if let Some(file) = path.strip_prefix("/providers/")
        && !state.bundles.providers.is_empty()
    {
        return match state.bundles.providers.find(file)? {
            MirrorFile::Document(text) => {
                let media_type = media_type_of(file);
                let response = response_with_body(StatusCode::OK, media_type, text.clone());
                within_answer_memory(&state, response).await
            }
            MirrorFile::Package { digest, .. } => {
                blob_response(&state, digest, media_type_of(file), &parts).await
            }
        };
    }
    let files = &state.bundles.files;
    let in_folder = FILE_FOLDERS
        .iter()
        .find_map(|folder| path.strip_prefix(folder));
    // at the root only if there is such a file, because other paths belong to the server
    let at_root = path.strip_prefix('/').filter(|file| files.has(file));
    let Some(file) = in_folder.or(at_root) else {
        let message = match hosts.host_of_files(&state.bundles) {
            Some(host) => format!("{host}{path} is not served here; / lists all files"),
            None => "there is nothing at this path; / lists the content".to_owned(),
        };
        return Err(RequestError::not_found("NAME_UNKNOWN", message));
    };
    let digest = files.find(file, parts.uri.query())?;
    blob_response(&state, digest, media_type_of(file), &parts).await
}

/// Answers a request below `/charts/`.
async fn respond_chart(
    state: &Arc<ServerState>,
    chart: &str,
    parts: &Parts,
) -> Result<ServerResponse, RequestError> {
    if chart == CHART_INDEX {
        let reader = state.clone();
        let index = blocking(move || {
            let charts = &reader.bundles.charts;
            charts.index(&reader.blobs, &*reader.progress)
        });
        let index = index.await?;
        return Ok(response_with_body(
            StatusCode::OK,
            "application/yaml",
            index,
        ));
    }
    let digest = state.bundles.charts.find(chart)?;
    blob_response(state, digest, media_type_of(chart), parts).await
}
