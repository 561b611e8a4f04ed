//! One request: authentication, its route, and the handler that answers it.

use super::response::{ApiError, Response, blocking, bytes, set};
use super::route::Route;
use super::state::State;
use super::{blob_response, blob_upload, file_table, manifest_upload, page, pull};
use axum::body::Body;
use axum::http::header::{ALLOW, AUTHORIZATION, HeaderName, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS};
use axum::http::request::Parts;
use axum::http::{Method, Request, StatusCode};
use std::sync::Arc;

const API_VERSION: HeaderName = HeaderName::from_static("docker-distribution-api-version");

/// Answers one request.
pub(super) async fn answer(state: Arc<State>, request: Request<Body>) -> Response {
    let (parts, body) = request.into_parts();
    let head = parts.method == Method::HEAD;
    let is_api = parts.uri.path() == "/v2" || parts.uri.path().starts_with("/v2/");
    let what = format!("{} {}", parts.method, parts.uri.path());
    let result = match is_api {
        true => api(state.clone(), parts, body).await,
        false => plain(state.clone(), parts).await,
    };
    let mut response = result.unwrap_or_else(|error| {
        if error.log {
            state.notes.note(&format!("{what}: {}", error.message));
        }
        if is_api { error.into_json() } else { error.into_text() }
    });
    set(&mut response, X_CONTENT_TYPE_OPTIONS, "nosniff");
    if is_api {
        set(&mut response, API_VERSION, "registry/2.0");
    }
    if head {
        *response.body_mut() = Body::empty();
    }
    response
}

/// The distribution API, below `/v2/`.
async fn api(state: Arc<State>, parts: Parts, body: Body) -> Result<Response, ApiError> {
    if let Some(users) = &state.users
        && !users.know(parts.headers.get(AUTHORIZATION)).await
    {
        let message = "user name and password are needed";
        return Err(ApiError::new(StatusCode::UNAUTHORIZED, "UNAUTHORIZED", message)
            .with(WWW_AUTHENTICATE, "Basic realm=\"landfall\", charset=\"UTF-8\""));
    }
    let route = Route::parse(parts.uri.path())?;
    let read = parts.method == Method::GET || parts.method == Method::HEAD;
    let allowed = allowed(&route);
    if !allowed.split(", ").any(|method| method == parts.method.as_str()) {
        let why = if parts.method == Method::DELETE { "nothing is deleted here" } else { "see Allow" };
        let message = format!("{} is not offered for this: {why}", parts.method);
        return Err(ApiError::method(message).with(ALLOW, allowed));
    }
    if read && !matches!(route, Route::Upload(..)) {
        return blocking(move || pull::read(&state, &parts, &route)).await?;
    }
    let Some(store) = state.writable.clone() else {
        let message = "this server only reads; start it with --writable DIR to push to it";
        return Err(ApiError::method(message).with(ALLOW, "GET, HEAD"));
    };
    // a task of its own: when the client goes away, what has come in is still put in order
    let task = tokio::spawn(async move {
        match route {
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
        Route::Version | Route::Catalog | Route::Tags(_) | Route::Referrers(..) | Route::Blob(..) => {
            "GET, HEAD"
        }
        Route::Manifest(..) => "GET, HEAD, PUT",
        Route::Uploads(_) => "POST",
        Route::Upload(..) => "GET, PATCH, PUT, DELETE",
    }
}

/// Everything outside of the API: the page, and plain files below `/files/`.
async fn plain(state: Arc<State>, parts: Parts) -> Result<Response, ApiError> {
    if parts.method != Method::GET && parts.method != Method::HEAD {
        return Err(ApiError::method("only GET and HEAD are offered here").with(ALLOW, "GET, HEAD"));
    }
    blocking(move || {
        let path = parts.uri.path();
        if path == "/" {
            let page = page::page(&state, &parts.headers)?;
            let mut response = bytes(StatusCode::OK, "text/html; charset=utf-8", page);
            set(&mut response, page::POLICY.0, page::POLICY.1);
            return Ok(response);
        }
        let unknown = || ApiError::not_found("NAME_UNKNOWN", "there is nothing here; / lists what there is");
        let file = path.strip_prefix("/files/").ok_or_else(unknown)?;
        let digest = state.bundles.files.find(file, parts.uri.query())?;
        blob_response::blob_response(&state, digest, file_table::media_type(file), &parts)
    })
    .await?
}
