//! A stand-in for the parts of Harbor that a push uses, in front of a registry: the token service,
//! projects and quotas. Requests and errors follow `api/v2.0/swagger.yaml` of goharbor/harbor. The
//! tests prove nothing about Harbor itself.

use super::reverse_proxy::{ProxyAction, RecordedRequest, ReverseProxy};
use base64::Engine as _;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// The account with all rights, as `user:password`.
pub const ACCOUNT: &str = "admin:Harbor12345";

/// A project: its quota in bytes (-1: none), and how many bytes it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Project {
    pub hard: i64,
    pub used: i64,
}

/// A Harbor that runs until the process ends.
pub struct Harbor {
    pub middle: ReverseProxy,
    projects: Arc<Mutex<BTreeMap<String, Project>>>,
}

impl Harbor {
    /// A Harbor that keeps its blobs in the registry at `registry`.
    pub fn new(registry: &str, projects: &[(&str, i64, i64)]) -> Harbor {
        let named = projects
            .iter()
            .map(|&(name, hard, used)| (name.to_owned(), Project { hard, used }));
        let projects: Arc<Mutex<BTreeMap<String, Project>>> = Arc::new(Mutex::new(named.collect()));
        let own = projects.clone();
        let middle = ReverseProxy::new(registry, move |request| answer_request(request, &own));
        Harbor { middle, projects }
    }

    pub fn address(&self) -> &str {
        &self.middle.address
    }

    pub fn projects(&self) -> BTreeMap<String, Project> {
        self.projects.lock().unwrap().clone()
    }

    /// A docker auth file with the account.
    pub fn auth_file(&self) -> String {
        json!({"auths": {self.address(): {"auth": encoded()}}}).to_string()
    }
}

fn encoded() -> String {
    base64::engine::general_purpose::STANDARD.encode(ACCOUNT)
}

fn answer_request(
    request: &RecordedRequest,
    own: &Arc<Mutex<BTreeMap<String, Project>>>,
) -> ProxyAction {
    let signed_in = request.header("authorization") == Some(&format!("Basic {}", encoded()));
    let mut projects = own.lock().unwrap();
    let (path, query) = request
        .target
        .split_once('?')
        .unwrap_or((&request.target, ""));
    let answer =
        |status, body: serde_json::Value| ProxyAction::Answer(status, Vec::new(), body.to_string());
    if path == "/service/token" {
        return if signed_in {
            answer(200, json!({"token": "good"}))
        } else {
            ProxyAction::status(401)
        };
    }
    if let Some(path) = path.strip_prefix("/api/v2.0/") {
        return match (request.method.as_str(), path) {
            ("GET", "systeminfo") => answer(
                200,
                json!({"auth_mode": "db_auth", "self_registration": false}),
            ),
            _ if !signed_in => ProxyAction::refuse(401, "UNAUTHORIZED", "unauthorized"),
            ("HEAD", "projects") => {
                let name = query.strip_prefix("project_name=").unwrap_or("");
                ProxyAction::status(if projects.contains_key(name) {
                    200
                } else {
                    404
                })
            }
            ("POST", "projects") => {
                let own = own.clone();
                ProxyAction::Read(Box::new(move |request| {
                    let document: serde_json::Value =
                        serde_json::from_slice(&request.body).unwrap();
                    assert_eq!(document["metadata"]["public"], "false");
                    let name = document["project_name"].as_str().unwrap().to_owned();
                    own.lock()
                        .unwrap()
                        .insert(name, Project { hard: -1, used: 0 });
                    ProxyAction::status(201)
                }))
            }
            ("GET", path) => {
                let name = path
                    .strip_prefix("projects/")
                    .and_then(|rest| rest.strip_suffix("/summary"))
                    // without this header, Harbor reads a number as the ID of a project
                    .filter(|name| {
                        name.parse::<u32>().is_err()
                            || request.header("x-is-resource-name") == Some("true")
                    });
                match name.and_then(|name| projects.get(name)) {
                    Some(Project { hard, used }) => answer(
                        200,
                        json!({"quota": {"hard": {"storage": hard}, "used": {"storage": used}}}),
                    ),
                    None => ProxyAction::refuse(404, "NOT_FOUND", "project not found"),
                }
            }
            _ => ProxyAction::status(405),
        };
    }
    let name = path
        .strip_prefix("/v2/")
        .and_then(|path| path.split('/').next())
        .unwrap_or("");
    let project = projects.get_mut(name);
    // a missing project gets the same response as a request without a valid token
    if request.header("authorization") != Some("Bearer good") || project.is_none() {
        let host = request.header("host").unwrap_or("");
        let challenge =
            format!("Bearer realm=\"http://{host}/service/token\",service=\"harbor-registry\"");
        let headers = vec![("WWW-Authenticate".to_owned(), challenge)];
        let body = json!({"errors": [{"code": "UNAUTHORIZED", "message": format!("project {name} not found")}]});
        return ProxyAction::Answer(401, headers, body.to_string());
    }
    match project {
        Some(project) if request.is("PUT", "/blobs/uploads/") => {
            let size = request.length as i64;
            if project.hard >= 0 && project.used + size > project.hard {
                let message = format!(
                    "Quota exceeded when processing the request of adding {size} B of storage resource, which when \
                     updated to current usage of {} B will exceed the configured upper limit of {} B.",
                    project.used, project.hard
                );
                return ProxyAction::refuse(403, "DENIED", &message);
            }
            project.used += size;
            ProxyAction::Pass
        }
        _ => ProxyAction::Pass,
    }
}
