//! One request: authentication, its route, and the handler that answers it.

use super::auth::{Known, Right};
use super::blob_response::blob_response;
use super::lookup::{fresh, state_for};
use super::metrics_page::metrics_page;
use super::observe::User;
use super::origin::Hosts;
use super::pull::Answer;
use super::response::{ApiError, Response, blocking, bytes, set};
use super::route::Route;
use super::state::State;
use super::{blob_upload, chart_table, deletion, file_table, manifest_upload, origin, page, pull};
use axum::body::Body;
use axum::http::header::{
    ALLOW, AUTHORIZATION, HeaderName, REFERRER_POLICY, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::request::Parts;
use axum::http::{Method, Request, StatusCode};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Below these stands every file as HOST/PATH: they are one table under three names. It is also at the root, so that the
/// server's own URL can be `files` of a site.
const FOLDERS: [&str; 3] = ["/files/", "/apt/", "/yum/"];
const API_VERSION: HeaderName = HeaderName::from_static("docker-distribution-api-version");

/// Answers one request.
pub(super) async fn answer(state: Arc<State>, request: Request<Body>) -> Response {
    let path = request.uri().path().to_owned();
    let (state, fresh) = match state_for(state.clone(), &path).await {
        Ok(fresh) => (fresh, Ok(())),
        Err(error) => (state, Err(error)),
    };
    let hosts = origin::hosts(&state, &request);
    let (parts, body) = request.into_parts();
    let head = parts.method == Method::HEAD;
    let is_read = head || parts.method == Method::GET;
    let path = parts.uri.path();
    let is_api = path == "/v2" || path.starts_with("/v2/");
    let what = format!("{} {path}", parts.method);
    let file = hosts.file(&state, path, parts.uri.query()).filter(|_| is_read);
    let (user, result) = match (fresh, file) {
        (Err(error), _) | (Ok(()), Some(Err(error))) => (None, Err(error)),
        (Ok(()), Some(Ok(digest))) => {
            (None, blob_response(&state, digest, file_table::media_type(path), &parts).await)
        }
        (Ok(()), None) if is_api => api(state.clone(), parts, hosts, body).await,
        (Ok(()), None) => (None, plain(state.clone(), parts, &hosts).await),
    };
    let mut response = result.unwrap_or_else(|error| {
        if error.log {
            state.notes.note(&format!("{what}: {}", error.message));
        }
        if is_api { error.into_json() } else { error.into_text() }
    });
    if let Some(user) = user {
        // for the access log
        response.extensions_mut().insert(User(user));
    }
    set(&mut response, X_CONTENT_TYPE_OPTIONS, "nosniff");
    if is_api {
        set(&mut response, API_VERSION, "registry/2.0");
    }
    if head {
        *response.body_mut() = Body::empty();
    }
    response
}

/// The distribution API, below `/v2/`: the user who asks, and the answer.
async fn api(
    state: Arc<State>,
    parts: Parts,
    hosts: Hosts,
    body: Body,
) -> (Option<String>, Result<Response, ApiError>) {
    let known = match signed_in(&state, &parts).await {
        Ok(known) => known,
        Err(error) => return (None, Err(error)),
    };
    let may_push = known.as_ref().is_none_or(|known| known.right == Right::Push);
    let result = routed(state, parts, hosts, body, may_push).await;
    (known.and_then(|known| known.user), result)
}

/// Who sent the request; `None` where everybody may do everything.
async fn signed_in(state: &State, parts: &Parts) -> Result<Option<Known>, ApiError> {
    let Some(users) = &state.users else { return Ok(None) };
    let known = users.find(parts.headers.get(AUTHORIZATION)).await;
    let reads = parts.method == Method::GET || parts.method == Method::HEAD;
    // clients learn from the first address of the API that they can sign in, before they push
    let may_stay = |known: &Known| known.user.is_some() || (reads && !is_root(parts.uri.path()));
    match known.filter(may_stay) {
        Some(known) => Ok(Some(known)),
        None => {
            let message = "user name and password are needed";
            Err(ApiError::new(StatusCode::UNAUTHORIZED, "UNAUTHORIZED", message)
                .with(WWW_AUTHENTICATE, "Basic realm=\"landfall\", charset=\"UTF-8\""))
        }
    }
}

fn is_root(path: &str) -> bool {
    path.trim_end_matches('/') == "/v2"
}

/// A request of the API, by its route.
async fn routed(
    state: Arc<State>,
    parts: Parts,
    hosts: Hosts,
    body: Body,
    may_push: bool,
) -> Result<Response, ApiError> {
    let route = Route::parse(parts.uri.path())?;
    let read = parts.method == Method::GET || parts.method == Method::HEAD;
    let allowed = allowed(&route);
    if !allowed.split(", ").any(|method| method == parts.method.as_str()) {
        let message = format!("{} is not offered for this: see Allow", parts.method);
        return Err(ApiError::method(message).with(ALLOW, allowed));
    }
    if read && !matches!(route, Route::Upload(..)) {
        let (asked, read) = (state.clone(), parts.clone());
        return match blocking(move || pull::read(&asked, &read, &hosts, &route)).await?? {
            Answer::Ready(response) => Ok(response),
            Answer::Content(digest, kind) => blob_response(&state, &digest, &kind, &parts).await,
        };
    }
    if !may_push {
        return Err(ApiError::denied("this user may only read"));
    }
    let Some(store) = state.writable.clone() else {
        let message = "this server only reads; start it with --writable DIR to push to it";
        return Err(ApiError::method(message).with(ALLOW, "GET, HEAD"));
    };
    // a task of its own: when the client goes away, what has come in is still put in order
    let task = tokio::spawn(async move {
        match route {
            Route::Manifest(name, reference) if parts.method == Method::DELETE => {
                deletion::manifest(state, store, name, reference).await
            }
            Route::Blob(_, digest) => deletion::blob(state, store, digest).await,
            Route::Manifest(name, reference) => {
                manifest_upload::put(state, store, &parts, name, reference, body).await
            }
            Route::Uploads(name) => blob_upload::begin(state, store, &parts, &name, body).await,
            Route::Upload(name, id) => blob_upload::resume(state, store, &parts, &name, &id, body).await,
            _ => Err(ApiError::method("this cannot be written to")),
        }
    });
    task.await.map_err(|stopped| ApiError::internal(stopped.to_string()))?
}

/// The methods of a route, as `Allow` lists them.
fn allowed(route: &Route) -> &'static str {
    match route {
        Route::Version | Route::Catalog | Route::Tags(_) | Route::Referrers(..) => "GET, HEAD",
        Route::Blob(..) => "GET, HEAD, DELETE",
        Route::Manifest(..) => "GET, HEAD, PUT, DELETE",
        Route::Uploads(_) => "POST",
        Route::Upload(..) => "GET, PATCH, PUT, DELETE",
    }
}

/// Whether the request asks about the server itself. It needs no place in flight.
pub(super) fn is_about_the_server<T>(state: &State, request: &Request<T>) -> bool {
    let path = request.uri().path();
    let is_about = path == "/healthz" || path == "/readyz" || path == "/metrics";
    is_about && origin::hosts(state, request).file(state, path, None).is_none()
}

/// Answers a request about the server itself.
pub(super) async fn about<T>(state: &Arc<State>, request: &Request<T>) -> Response {
    if request.method() != Method::GET && request.method() != Method::HEAD {
        return ApiError::method("only GET and HEAD are offered here").with(ALLOW, "GET, HEAD").into_text();
    }
    let plain = "text/plain; charset=utf-8";
    let (status, kind, text) = match request.uri().path() {
        "/metrics" => (StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", metrics_page(state)),
        "/readyz" => match readiness(state).await {
            Ok(()) => (StatusCode::OK, plain, "ready\n".to_owned()),
            Err(why) => (StatusCode::SERVICE_UNAVAILABLE, plain, format!("{why}\n")),
        },
        _ => (StatusCode::OK, plain, "ok\n".to_owned()),
    };
    let mut response = bytes(status, kind, text.into_bytes());
    if request.method() == Method::HEAD {
        *response.body_mut() = Body::empty();
    }
    response
}

/// Whether more requests may be sent here; or why not.
async fn readiness(state: &Arc<State>) -> Result<(), String> {
    if state.draining.load(Ordering::Relaxed) {
        return Err("the server is about to stop".into());
    }
    fresh(state.clone()).await.map(drop)
}

/// Everything outside of the API: the page, and charts below `/charts/`, and plain files and packages below `/files/` and at the root.
async fn plain(state: Arc<State>, parts: Parts, hosts: &Hosts) -> Result<Response, ApiError> {
    if parts.method != Method::GET && parts.method != Method::HEAD {
        return Err(ApiError::method("only GET and HEAD are offered here").with(ALLOW, "GET, HEAD"));
    }
    let path = parts.uri.path();
    let (asked, of_page) = (state.clone(), parts.clone());
    if let Some(page) = blocking(move || page::page(&asked, &of_page)).await? {
        let mut response = bytes(StatusCode::OK, "text/html; charset=utf-8", page?);
        set(&mut response, page::POLICY.0.clone(), &page::POLICY.1);
        set(&mut response, REFERRER_POLICY, "no-referrer");
        return Ok(response);
    }
    let unknown = || {
        let of_host = hosts.of_files(&state).map(|host| format!("there is no file at {host}{path} here"));
        let message = of_host.unwrap_or_else(|| "there is nothing here".into());
        ApiError::not_found("NAME_UNKNOWN", format!("{message}; / lists what there is"))
    };
    if let Some(chart) = path.strip_prefix("/charts/").filter(|_| !state.bundles.charts.is_empty()) {
        if chart == chart_table::INDEX {
            let reader = state.clone();
            let index = move || reader.bundles.charts.index(&reader.blobs, &*reader.notes).to_owned();
            return Ok(bytes(StatusCode::OK, "application/yaml", blocking(index).await?.into_bytes()));
        }
        let digest = state.bundles.charts.find(chart)?;
        return blob_response(&state, digest, file_table::media_type(chart), &parts).await;
    }
    let of_root = || path.strip_prefix('/').filter(|file| state.bundles.files.has(file));
    let file = FOLDERS.iter().find_map(|folder| path.strip_prefix(folder)).or_else(of_root);
    let file = file.ok_or_else(unknown)?;
    let digest = state.bundles.files.find(file, parts.uri.query())?;
    blob_response(&state, digest, file_table::media_type(file), &parts).await
}
