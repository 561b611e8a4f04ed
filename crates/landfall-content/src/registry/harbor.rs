//! Harbor's API for projects and their quotas (goharbor/harbor, api/v2.0/swagger.yaml).

use super::challenge::TokenScope;
use super::session::RegistrySession;
use landfall_http::{ErrorKind, HttpError, HttpRequest, HttpResponse, RequestBody, RequestPurpose};
use landfall_model::from_json;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderName};
use reqwest::{Method, StatusCode};
use serde_json::Value;

impl RegistrySession {
    /// Whether the registry is Harbor, which answers `GET /api/v2.0/systeminfo` without an account.
    pub async fn is_harbor(&self) -> bool {
        let Ok(response) = self.harbor(Method::GET, "systeminfo", None, "").await else {
            return false;
        };
        if response.status != StatusCode::OK {
            response.discard().await;
            return false;
        }
        let Ok(body) = response.bytes(self.transport.limits().document_bytes).await else {
            return false;
        };
        // other servers may answer any path with 200, so the body is checked for a key of Harbor
        let document: Option<Value> = from_json(&body).ok();
        document.is_some_and(|document| document.get("auth_mode").is_some())
    }

    /// Whether Harbor has this project, or `None` if the response does not show that, for example
    /// if this account may not see the project.
    ///
    /// # Errors
    /// If the request fails.
    pub async fn has_project(&self, project: &str) -> Result<Option<bool>, HttpError> {
        let response = self
            .harbor(
                Method::HEAD,
                "projects",
                Some(("project_name", project)),
                project,
            )
            .await?;
        Ok(match response.status {
            StatusCode::OK => Some(true),
            StatusCode::NOT_FOUND => Some(false),
            // 401 and 403 do not show whether the project exists
            _ => None,
        })
    }

    /// Creates a private project, unless it exists.
    ///
    /// # Errors
    /// If Harbor refuses, with its message.
    pub async fn create_project(&self, project: &str) -> Result<(), HttpError> {
        let url = self.harbor_url("projects", None)?;
        let mut request = HttpRequest::new(Method::POST, url, RequestPurpose::Registry)
            .header(CONTENT_TYPE, "application/json");
        let document =
            serde_json::json!({"project_name": project, "metadata": {"public": "false"}});
        request.body = RequestBody::Bytes(document.to_string().into());
        let response = self.send_with_account(request, project).await?;
        let scope = self.scope(project, true);
        self.expect(
            response,
            &scope,
            || format!("project {project} of {}", self.host()),
            // 409: the project exists; another client may have created it a moment ago
            |status| matches!(status, StatusCode::CREATED | StatusCode::CONFLICT),
        )
        .await?
        .discard()
        .await;
        Ok(())
    }

    /// Returns the free bytes of a project's storage quota, or `None` if it has no limit or cannot
    /// be read.
    pub async fn free_quota(&self, project: &str) -> Option<u64> {
        let url = self.harbor_url(&format!("projects/{project}/summary"), None);
        let request = HttpRequest::new(Method::GET, url.ok()?, RequestPurpose::Registry)
            // without this header, Harbor reads a name that consists of digits as an ID
            .header(HeaderName::from_static("x-is-resource-name"), "true");
        let response = self.send_with_account(request, project).await.ok()?;
        if response.status != StatusCode::OK {
            response.discard().await;
            return None;
        }
        let body = response
            .bytes(self.transport.limits().document_bytes)
            .await
            .ok()?;
        let summary: Value = from_json(&body).ok()?;
        // -1 means no limit
        let hard = summary["quota"]["hard"]["storage"].as_u64()?;
        let used = summary["quota"]["used"].as_object()?.get("storage");
        let used = used.and_then(Value::as_u64).unwrap_or(0);
        Some(hard.saturating_sub(used))
    }

    async fn harbor(
        &self,
        method: Method,
        path: &str,
        query: Option<(&str, &str)>,
        project: &str,
    ) -> Result<HttpResponse, HttpError> {
        let url = self.harbor_url(path, query)?;
        self.send_with_account(
            HttpRequest::new(method, url, RequestPurpose::Registry),
            project,
        )
        .await
    }

    fn harbor_url(&self, path: &str, query: Option<(&str, &str)>) -> Result<url::Url, HttpError> {
        let joined = self.base.join(&format!("/api/v2.0/{path}"));
        let mut url = joined.map_err(|error| {
            HttpError::new(
                ErrorKind::Invalid,
                format!("'{path}' is not valid in a URL"),
            )
            .caused_by(error)
        })?;
        if let Some((key, value)) = query {
            url.query_pairs_mut().append_pair(key, value);
        }
        Ok(url)
    }

    /// Sends a request with the account for `project`, or anonymously if `project` is empty or has
    /// no user name and password. The API accepts only Basic authentication, not the tokens of the
    /// registry.
    async fn send_with_account(
        &self,
        mut request: HttpRequest,
        project: &str,
    ) -> Result<HttpResponse, HttpError> {
        if !project.is_empty() {
            let scope = TokenScope {
                repository: project.into(),
                push: true,
                ..TokenScope::default()
            };
            if let Some(header) = self.auth.basic(&scope).await? {
                request = request.header(AUTHORIZATION, &header);
            }
        }
        self.transport.send(&request).await
    }
}
