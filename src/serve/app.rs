//! One request: whose it is, what it asks for, and the answer.

use super::auth::Users;
use super::catalogue::Catalogue;
use super::content::Contents;
use super::name::Route;
use super::pushed::Pushed;
use super::reply::{Problem, Reply, bytes, set};
use super::upload::Uploads;
use super::{files, page, registry};
use crate::model::Limits;
use crate::report::Progress;
use axum::body::Body;
use axum::http::header::{ALLOW, AUTHORIZATION, HeaderName, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS};
use axum::http::request::Parts;
use axum::http::{Method, Request, StatusCode};
use std::sync::Arc;
use tokio::task::spawn_blocking;

const API_VERSION: HeaderName = HeaderName::from_static("docker-distribution-api-version");

/// Everything that answers need.
pub(super) struct App {
    pub(super) catalogue: Catalogue,
    pub(super) contents: Contents,
    pub(super) pushed: Option<Arc<Pushed>>,
    pub(super) uploads: Uploads,
    pub(super) users: Option<Users>,
    pub(super) limits: Limits,
    pub(super) notes: Arc<dyn Progress>,
    /// `host:port` as it listens.
    pub(super) address: String,
}

impl App {
    /// Answers one request.
    pub(super) async fn answer(self: Arc<App>, request: Request<Body>) -> Reply {
        let (parts, body) = request.into_parts();
        let head = parts.method == Method::HEAD;
        let api = parts.uri.path() == "/v2" || parts.uri.path().starts_with("/v2/");
        let what = format!("{} {}", parts.method, parts.uri.path());
        let result = match api {
            true => self.clone().api(parts, body).await,
            false => self.clone().plain(parts).await,
        };
        let mut reply = result.unwrap_or_else(|problem| {
            if problem.tell {
                self.notes.note(&format!("{what}: {}", problem.message));
            }
            if api { problem.into_json() } else { problem.into_text() }
        });
        set(&mut reply, X_CONTENT_TYPE_OPTIONS, "nosniff");
        if api {
            set(&mut reply, API_VERSION, "registry/2.0");
        }
        if head {
            *reply.body_mut() = Body::empty();
        }
        reply
    }

    async fn api(self: Arc<App>, parts: Parts, body: Body) -> Result<Reply, Problem> {
        if let Some(users) = &self.users
            && !users.know(parts.headers.get(AUTHORIZATION)).await
        {
            let message = "user name and password are needed";
            return Err(Problem::new(StatusCode::UNAUTHORIZED, "UNAUTHORIZED", message)
                .with(WWW_AUTHENTICATE, "Basic realm=\"landfall\", charset=\"UTF-8\""));
        }
        let route = Route::parse(parts.uri.path())?;
        let read = parts.method == Method::GET || parts.method == Method::HEAD;
        let allowed = match &route {
            Route::Version | Route::Catalog | Route::Tags(_) | Route::Referrers(..) | Route::Blob(..) => {
                "GET, HEAD"
            }
            Route::Manifest(..) => "GET, HEAD, PUT",
            Route::Uploads(_) => "POST",
            Route::Upload(..) => "GET, PATCH, PUT, DELETE",
        };
        if !allowed.split(", ").any(|method| method == parts.method.as_str()) {
            let why = if parts.method == Method::DELETE { "nothing is deleted here" } else { "see Allow" };
            let message = format!("{} is not offered for this: {why}", parts.method);
            return Err(Problem::method(message).with(ALLOW, allowed));
        }
        if read && !matches!(route, Route::Upload(..)) {
            return blocking(move || registry::read(&self, &parts, &route)).await?;
        }
        let Some(pushed) = self.pushed.clone() else {
            let message = "this server only reads; start it with --writable DIR to push to it";
            return Err(Problem::method(message).with(ALLOW, "GET, HEAD"));
        };
        // a task of its own: what has come in is kept in order when the client goes away
        let task = tokio::spawn(super::upload::write(self, pushed, parts, route, body));
        task.await.map_err(|stopped| Problem::internal(stopped.to_string()))?
    }

    async fn plain(self: Arc<App>, parts: Parts) -> Result<Reply, Problem> {
        if parts.method != Method::GET && parts.method != Method::HEAD {
            return Err(Problem::method("only GET and HEAD are offered here").with(ALLOW, "GET, HEAD"));
        }
        blocking(move || {
            let path = parts.uri.path();
            if path == "/" {
                let mut reply =
                    bytes(StatusCode::OK, "text/html; charset=utf-8", page::page(&self, &parts.headers)?);
                set(&mut reply, page::POLICY.0, page::POLICY.1);
                return Ok(reply);
            }
            let unknown =
                || Problem::not_found("NAME_UNKNOWN", "there is nothing here; / lists what there is");
            let file = path.strip_prefix("/files/").ok_or_else(unknown)?;
            let digest = self.catalogue.files.find(file, parts.uri.query())?;
            let head = parts.method == Method::HEAD;
            self.contents.reply(digest, files::media_type(file), &parts.headers, head)
        })
        .await?
    }
}

/// Runs what may wait for a disk on a thread for that.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Problem> {
    spawn_blocking(work).await.map_err(|stopped| Problem::internal(stopped.to_string()))
}
