//! One request: authentication, its route, and the handler that answers it.

use super::auth::{AccessRight, Known};
use super::blob_response::blob_response;
use super::connections::Ticket;
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
    ALLOW, AUTHORIZATION, CONTENT_SECURITY_POLICY, HeaderName, REFERRER_POLICY, RETRY_AFTER,
    WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::request::Parts;
use axum::http::{Method, Request, StatusCode};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Below these stands every file as HOST/PATH: they are one table under three names. It is also at
/// the root, so that the server's own URL can be `files` of a site.
const FOLDERS: [&str; 3] = ["/files/", "/apt/", "/yum/"];
const API_VERSION: HeaderName = HeaderName::from_static("docker-distribution-api-version");

/// What a browser may do with everything but the page, whatever an author has put into it: run
/// nothing, load nothing, and use nothing of this origin.
const SANDBOX: &str = "sandbox; default-src 'none'";

/// Answers one request from `address`. It has its place in flight once it is known who sent it: the
/// place is not held while a password is compared.
pub(super) async fn answer(
    state: Arc<State>,
    address: IpAddr,
    request: Request<Body>,
) -> (Response, Option<Ticket>) {
    let path = request.uri().path().to_owned();
    let (state, fresh) = match state_for(state.clone(), &path).await {
        Ok(fresh) => (fresh, Ok(())),
        Err(error) => (state, Err(error)),
    };
    let hosts = origin::hosts(&state, &request);
    let (parts, body) = request.into_parts();
    let (what, head) = (
        format!("{} {path}", parts.method),
        parts.method == Method::HEAD,
    );
    let is_read = head || parts.method == Method::GET;
    let file = hosts
        .file(&state, &path, parts.uri.query())
        .filter(|_| is_read);
    let is_api = path == "/v2" || path.starts_with("/v2/");
    let admitted = match fresh {
        Ok(()) => admit(&state, &parts, address, is_api && file.is_none()).await,
        Err(error) => Err(error),
    };
    let (mut user, mut ticket) = (None, None);
    let result = match admitted {
        Err(error) => Err(error),
        Ok((known, place)) => {
            ticket = Some(place);
            let may_push = known
                .as_ref()
                .is_none_or(|known| known.right == AccessRight::Push);
            user = known.and_then(|known| known.user);
            match file {
                Some(Err(error)) => Err(error),
                Some(Ok(digest)) => {
                    blob_response(&state, digest, file_table::media_type(&path), &parts).await
                }
                None if is_api => routed(state.clone(), parts, hosts, body, may_push).await,
                None => plain(state.clone(), parts, &hosts).await,
            }
        }
    };
    let mut response = result.unwrap_or_else(|error| {
        if error.log {
            state.notes.note(&format!("{what}: {}", error.message));
        }
        if is_api {
            error.into_json()
        } else {
            error.into_text()
        }
    });
    if let Some(user) = user {
        // for the access log
        response.extensions_mut().insert(User(user));
    }
    if is_api {
        set(&mut response, API_VERSION, "registry/2.0");
    }
    if head {
        *response.body_mut() = Body::empty();
    }
    (response, ticket)
}

/// Lets no browser guess what a response is, or run it. The page has a policy of its own.
pub(super) fn confine(response: &mut Response) {
    set(response, X_CONTENT_TYPE_OPTIONS, "nosniff");
    if !response.headers().contains_key(CONTENT_SECURITY_POLICY) {
        set(response, CONTENT_SECURITY_POLICY, SANDBOX);
    }
}

/// Who sent the request, where that must be known (`None` where everybody may do everything), and
/// then its place in flight.
async fn admit(
    state: &State,
    parts: &Parts,
    address: IpAddr,
    needs_user: bool,
) -> Result<(Option<Known>, Ticket), ApiError> {
    let known = if needs_user {
        signed_in(state, parts, address).await?
    } else {
        None
    };
    let place = state.in_flight.enter(&state.seats).await;
    let place = place.ok_or_else(|| {
        busy(
            StatusCode::SERVICE_UNAVAILABLE,
            "too many requests are in flight",
        )
    })?;
    Ok((known, place))
}

fn busy(status: StatusCode, why: &str) -> ApiError {
    ApiError::new(status, "TOOMANYREQUESTS", format!("{why}; come back later"))
        .with(RETRY_AFTER, "5")
}

/// Who sent the request; `None` where everybody may do everything.
async fn signed_in(
    state: &State,
    parts: &Parts,
    address: IpAddr,
) -> Result<Option<Known>, ApiError> {
    let Some(users) = &state.users else {
        return Ok(None);
    };
    let known = users
        .find(parts.headers.get(AUTHORIZATION), &state.sign_ins, address)
        .await;
    let too_many = |_| {
        busy(
            StatusCode::TOO_MANY_REQUESTS,
            "too many passwords are being checked",
        )
    };
    let known = known.map_err(too_many)?;
    let reads = parts.method == Method::GET || parts.method == Method::HEAD;
    // clients learn from the first address of the API that they can sign in, before they push
    let may_stay = |known: &Known| known.user.is_some() || (reads && !is_root(parts.uri.path()));
    match known.filter(may_stay) {
        Some(known) => Ok(Some(known)),
        None => {
            let message = "user name and password are needed";
            Err(
                ApiError::new(StatusCode::UNAUTHORIZED, "UNAUTHORIZED", message).with(
                    WWW_AUTHENTICATE,
                    "Basic realm=\"landfall\", charset=\"UTF-8\"",
                ),
            )
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
    if !allowed
        .split(", ")
        .any(|method| method == parts.method.as_str())
    {
        let message = format!("{} is not offered for this: see Allow", parts.method);
        return Err(ApiError::method(message).with(ALLOW, allowed));
    }
    if read && !matches!(route, Route::Upload(..)) {
        let (asked, read) = (state.clone(), parts.clone());
        let _slot = match route {
            Route::Referrers(..) => state.manifest_slots.acquire().await.ok(),
            _ => None,
        };
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
            Route::Upload(name, id) => {
                blob_upload::resume(state, store, &parts, &name, &id, body).await
            }
            _ => Err(ApiError::method("this cannot be written to")),
        }
    });
    task.await
        .map_err(|stopped| ApiError::internal(stopped.to_string()))?
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
    is_about
        && origin::hosts(state, request)
            .file(state, path, None)
            .is_none()
}

/// Answers a request about the server itself.
pub(super) async fn about<T>(state: &Arc<State>, request: &Request<T>) -> Response {
    if request.method() != Method::GET && request.method() != Method::HEAD {
        return ApiError::method("only GET and HEAD are offered here")
            .with(ALLOW, "GET, HEAD")
            .into_text();
    }
    let plain = "text/plain; charset=utf-8";
    let (status, kind, text) = match request.uri().path() {
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

/// Everything outside of the API: the page, and charts below `/charts/`, and plain files and
/// packages below `/files/` and at the root.
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
        let of_host = hosts
            .of_files(&state)
            .map(|host| format!("there is no file at {host}{path} here"));
        let message = of_host.unwrap_or_else(|| "there is nothing here".into());
        ApiError::not_found("NAME_UNKNOWN", format!("{message}; / lists what there is"))
    };
    if let Some(chart) = path
        .strip_prefix("/charts/")
        .filter(|_| !state.bundles.charts.is_empty())
    {
        if chart == chart_table::INDEX {
            let reader = state.clone();
            let index = move || {
                reader
                    .bundles
                    .charts
                    .index(&reader.blobs, &*reader.notes)
                    .to_owned()
            };
            return Ok(bytes(
                StatusCode::OK,
                "application/yaml",
                blocking(index).await?.into_bytes(),
            ));
        }
        let digest = state.bundles.charts.find(chart)?;
        return blob_response(&state, digest, file_table::media_type(chart), &parts).await;
    }
    let of_root = || {
        path.strip_prefix('/')
            .filter(|file| state.bundles.files.has(file))
    };
    let file = FOLDERS
        .iter()
        .find_map(|folder| path.strip_prefix(folder))
        .or_else(of_root);
    let file = file.ok_or_else(unknown)?;
    let digest = state.bundles.files.find(file, parts.uri.query())?;
    blob_response(&state, digest, file_table::media_type(file), &parts).await
}
