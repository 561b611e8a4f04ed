//! Where credentials come from: the site, docker and podman auth files, `DOCKER_AUTH_CONFIG`, and
//! credential helpers. They are never shown; where they came from is.

use crate::config::{Credentials as SiteCredentials, Site};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tokio::io::AsyncWriteExt;

/// An account, and where it was found.
#[derive(Clone, PartialEq, Eq)]
pub struct Credential {
    /// The secret itself.
    pub secret: Secret,
    /// Where it was found, for messages.
    pub source: String,
}

/// What is presented.
#[derive(Clone, PartialEq, Eq)]
pub enum Secret {
    /// User name and password.
    Basic(String, String),
    /// An OAuth2 refresh token (`identitytoken` of auth files).
    Identity(String),
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Display for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.secret {
            Secret::Basic(user, _) => write!(f, "account '{user}' from {}", self.source),
            Secret::Identity(_) => write!(f, "identity token from {}", self.source),
        }
    }
}

impl Secret {
    /// The value of an `Authorization: Basic` header, for user name and password.
    pub fn basic_header(&self) -> Option<String> {
        match self {
            Secret::Basic(user, password) => {
                Some(format!("Basic {}", STANDARD.encode(format!("{user}:{password}"))))
            }
            Secret::Identity(_) => None,
        }
    }
}

/// All places that credentials come from, in order of precedence.
#[derive(Debug, Default)]
pub struct Keychain {
    site: Vec<(String, Credential)>,
    files: Vec<AuthFile>,
}

#[derive(Debug)]
struct AuthFile {
    name: String,
    config: AuthConfig,
    /// What helpers answered, by host: each is asked once a run.
    asked: tokio::sync::Mutex<HashMap<String, Option<Credential>>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct AuthConfig {
    #[serde(default)]
    auths: BTreeMap<String, AuthEntry>,
    #[serde(default)]
    cred_helpers: BTreeMap<String, String>,
    creds_store: Option<String>,
}

#[derive(Default, Deserialize)]
struct AuthEntry {
    auth: Option<String>,
    username: Option<String>,
    password: Option<String>,
    #[serde(alias = "identityToken")]
    identitytoken: Option<String>,
}

impl fmt::Debug for AuthEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AuthEntry")
    }
}

impl Keychain {
    /// The keychain of a site and of the process's environment, as `get` shows it.
    ///
    /// # Errors
    /// What is wrong with a file or a variable that is named.
    pub fn load(site: Option<&Site>, get: impl Fn(&str) -> Option<String>) -> Result<Keychain, String> {
        let mut keychain = Keychain::default();
        if let Some(site) = site {
            keychain.add_site(site, &get)?;
        }
        if let Some(text) = get("DOCKER_AUTH_CONFIG") {
            keychain.files.push(AuthFile::parse("DOCKER_AUTH_CONFIG", &text)?);
        }
        let home = get("HOME").map(PathBuf::from);
        let named = get("REGISTRY_AUTH_FILE").map(PathBuf::from);
        if let Some(path) = &named {
            let text = std::fs::read_to_string(path)
                .map_err(|error| format!("cannot read {} (REGISTRY_AUTH_FILE): {error}", path.display()))?;
            keychain.files.push(AuthFile::parse(&path.display().to_string(), &text)?);
        }
        let docker = get("DOCKER_CONFIG")
            .map(PathBuf::from)
            .or_else(|| home.as_ref().map(|home| home.join(".docker")));
        let usual = [
            get("XDG_RUNTIME_DIR").map(|dir| Path::new(&dir).join("containers/auth.json")),
            home.map(|home| home.join(".config/containers/auth.json")),
            docker.map(|dir| dir.join("config.json")),
        ];
        for path in usual.into_iter().flatten() {
            match std::fs::read_to_string(&path) {
                Ok(text) => keychain.files.push(AuthFile::parse(&path.display().to_string(), &text)?),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(format!("cannot read {}: {error}", path.display())),
            }
        }
        Ok(keychain)
    }

    fn add_site(&mut self, site: &Site, get: &impl Fn(&str) -> Option<String>) -> Result<(), String> {
        if let Some(registry) = &site.registry {
            let target: crate::model::Target =
                registry.address.parse().map_err(|error| format!("registry.address of the site: {error}"))?;
            for destinations in registry.paths.values() {
                if let crate::config::Destinations::Entry(entry) = destinations
                    && let Some(credentials) = &entry.credentials
                {
                    for path in &entry.to {
                        let key = format!("{}/{}", target, path.trim_matches('/'));
                        self.add(site, &key, credentials, "registry.paths of the site", get)?;
                    }
                }
            }
            if let Some(credentials) = &registry.credentials {
                self.add(site, &target.registry, credentials, "registry.credentials of the site", get)?;
            }
        }
        for (host, upstream) in &site.upstreams {
            if let Some(credentials) = &upstream.credentials {
                let key = upstream.mirror.as_deref().map_or(host.clone(), normal_key);
                let host_only = key.split('/').next().unwrap_or(&key).to_owned();
                self.add(site, &host_only, credentials, &format!("upstreams.{host} of the site"), get)?;
            }
        }
        Ok(())
    }

    fn add(
        &mut self,
        site: &Site,
        key: &str,
        from: &SiteCredentials,
        place: &str,
        get: &impl Fn(&str) -> Option<String>,
    ) -> Result<(), String> {
        if let Some(path) = &from.auth_file {
            let path = site.resolve(path);
            let text = std::fs::read_to_string(&path)
                .map_err(|error| format!("{place}: cannot read {}: {error}", path.display()))?;
            self.files.insert(0, AuthFile::parse(&path.display().to_string(), &text)?);
            return Ok(());
        }
        let (user, password, source) = site_secret(site, from, place, get)?;
        self.site.push((key.to_owned(), Credential { secret: Secret::Basic(user, password), source }));
        Ok(())
    }

    /// The hosts that there is an account for, as far as that is known without asking a helper.
    pub fn hosts(&self) -> Vec<String> {
        let of_site = self.site.iter().map(|(key, _)| key);
        let of_files = self
            .files
            .iter()
            .flat_map(|file| file.config.auths.keys().chain(file.config.cred_helpers.keys()));
        let host = |key: &String| key.split('/').next().unwrap_or(key).to_owned();
        of_site.chain(of_files).map(host).collect()
    }

    /// The account for `host/repository`: the longest matching key of the first place that has one.
    ///
    /// # Errors
    /// A helper that cannot be run, or an entry that cannot be read.
    pub async fn find(&self, host: &str, repository: &str) -> Result<Option<Credential>, String> {
        let host = hub_key(host);
        let full = format!("{host}/{repository}");
        let covers =
            |key: &str| full == key || full.strip_prefix(key).is_some_and(|rest| rest.starts_with('/'));
        let of_site = self.site.iter().filter(|(key, _)| covers(key)).max_by_key(|(key, _)| key.len());
        if let Some((_, credential)) = of_site {
            return Ok(Some(credential.clone()));
        }
        for file in &self.files {
            if let Some(found) = file.find(&host, covers).await? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }
}

/// User, password and where they came from, of a `credentials` entry of the site.
///
/// # Errors
/// Which variable or file is missing or empty.
pub(super) fn site_secret(
    site: &Site,
    from: &SiteCredentials,
    place: &str,
    get: &impl Fn(&str) -> Option<String>,
) -> Result<(String, String, String), String> {
    if let Some(path) = &from.file {
        let path = site.resolve(path);
        let text = std::fs::read_to_string(&path)
            .map_err(|error| format!("{place}: cannot read {}: {error}", path.display()))?;
        let line = text.lines().next().unwrap_or_default();
        let (user, password) = line
            .split_once(':')
            .ok_or_else(|| format!("{place}: the first line of {} is not user:password", path.display()))?;
        return Ok((user.into(), password.into(), path.display().to_string()));
    }
    let (Some(user), Some(password)) = (&from.username_env, &from.password_env) else {
        return Err(format!("{place}: name usernameEnv and passwordEnv, or file, or authFile"));
    };
    let value = |name: &str| {
        get(name)
            .filter(|value| !value.is_empty())
            .ok_or_else(|| format!("{place}: the environment variable {name} is not set"))
    };
    Ok((value(user)?, value(password)?, format!("${user}")))
}

impl AuthFile {
    fn parse(name: &str, text: &str) -> Result<AuthFile, String> {
        let mut config: AuthConfig = match text.trim() {
            "" => AuthConfig::default(),
            text => serde_json::from_str(text).map_err(|error| format!("{name} is no auth file: {error}"))?,
        };
        config.auths = config.auths.into_iter().map(|(key, entry)| (normal_key(&key), entry)).collect();
        Ok(AuthFile { name: name.into(), config, asked: tokio::sync::Mutex::default() })
    }

    async fn find(&self, host: &str, covers: impl Fn(&str) -> bool) -> Result<Option<Credential>, String> {
        if let Some(helper) = self.config.cred_helpers.get(host) {
            return self.ask(helper, host).await;
        }
        let best = self.config.auths.iter().filter(|(key, _)| covers(key)).max_by_key(|(key, _)| key.len());
        let inline = match best {
            Some((key, entry)) => entry.secret().map_err(|why| format!("{}: {key}: {why}", self.name))?,
            None => None,
        };
        match (inline, &self.config.creds_store) {
            (Some(secret), _) => Ok(Some(Credential { secret, source: self.name.clone() })),
            (None, Some(helper)) => self.ask(helper, host).await,
            (None, None) => Ok(None),
        }
    }

    async fn ask(&self, helper: &str, host: &str) -> Result<Option<Credential>, String> {
        let mut asked = self.asked.lock().await;
        if let Some(answer) = asked.get(host) {
            return Ok(answer.clone());
        }
        let answer = self.run_helper(helper, host).await?;
        asked.insert(host.to_owned(), answer.clone());
        Ok(answer)
    }

    /// Runs `docker-credential-<helper> get` (docker/docker-credential-helpers, "Development").
    async fn run_helper(&self, helper: &str, host: &str) -> Result<Option<Credential>, String> {
        if helper.is_empty()
            || !helper.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
        {
            return Err(format!("{}: '{helper}' is no name of a credential helper", self.name));
        }
        let program = format!("docker-credential-{helper}");
        let key = if host == "docker.io" { "https://index.docker.io/v1/" } else { host };
        let failed =
            |error: std::io::Error| format!("cannot run {program} (named in {}): {error}", self.name);
        let mut child = tokio::process::Command::new(&program)
            .arg("get")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .map_err(failed)?;
        if let Some(mut stdin) = child.stdin.take() {
            // a helper that does not read its input may still answer
            let _ = stdin.write_all(key.as_bytes()).await;
        }
        let output = child.wait_with_output().await.map_err(failed)?;
        let text = String::from_utf8_lossy(&output.stdout);
        if !output.status.success() {
            return if text.to_lowercase().contains("credentials not found") {
                Ok(None)
            } else {
                Err(format!("{program} failed for {key}: {}", text.trim()))
            };
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "PascalCase")]
        struct Answer {
            username: String,
            secret: String,
        }
        let answer: Answer = serde_json::from_str(&text)
            .map_err(|_| format!("{program} gave an answer that is not understood"))?;
        let secret = match answer.username.as_str() {
            "<token>" => Secret::Identity(answer.secret),
            _ => Secret::Basic(answer.username, answer.secret),
        };
        Ok(Some(Credential { secret, source: program }))
    }
}

impl AuthEntry {
    fn secret(&self) -> Result<Option<Secret>, String> {
        if let Some(token) = self.identitytoken.as_ref().filter(|token| !token.is_empty()) {
            return Ok(Some(Secret::Identity(token.clone())));
        }
        if let (Some(user), Some(password)) = (&self.username, &self.password) {
            return Ok(Some(Secret::Basic(user.clone(), password.clone())));
        }
        let Some(auth) = self.auth.as_ref().filter(|auth| !auth.is_empty()) else { return Ok(None) };
        let decoded = STANDARD.decode(auth.trim()).map_err(|_| "auth is not base64".to_owned())?;
        let decoded = String::from_utf8(decoded).map_err(|_| "auth is not text".to_owned())?;
        let (user, password) = decoded.split_once(':').ok_or("auth is not user:password")?;
        Ok(Some(Secret::Basic(user.into(), password.trim_end_matches('\0').into())))
    }
}

/// `https://index.docker.io/v1/` -> `docker.io`; `https://host:1/v2/` -> `host:1`; `host/ns` stays.
fn normal_key(key: &str) -> String {
    let bare = key.split_once("://").map_or(key, |(_, rest)| rest).trim_end_matches('/');
    let bare = bare.strip_suffix("/v1").or_else(|| bare.strip_suffix("/v2")).unwrap_or(bare);
    match bare.split_once('/') {
        Some((host, path)) => format!("{}/{path}", hub_key(host)),
        None => hub_key(bare),
    }
}

fn hub_key(host: &str) -> String {
    match host {
        "index.docker.io" | "registry-1.docker.io" => "docker.io".into(),
        other => other.to_ascii_lowercase(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keychain(config: &str) -> Keychain {
        Keychain::load(None, |name| (name == "DOCKER_AUTH_CONFIG").then(|| config.to_owned())).unwrap()
    }

    async fn user(keychain: &Keychain, host: &str, repository: &str) -> Option<String> {
        match keychain.find(host, repository).await.unwrap()?.secret {
            Secret::Basic(user, password) => Some(format!("{user}:{password}")),
            Secret::Identity(token) => Some(token),
        }
    }

    #[tokio::test]
    async fn keys_in_all_their_forms_and_the_longest_wins() {
        let keychain = keychain(
            r#"{"auths": {
                "https://index.docker.io/v1/": {"auth": "aHViOmE6Yg=="},
                "quay.io": {"username": "quay", "password": "p"},
                "quay.io/team": {"username": "team", "password": "p"},
                "https://172.20.0.2:5000/v2/": {"identitytoken": "tok"},
                "empty.test": {}
            }}"#,
        );
        assert_eq!(
            user(&keychain, "registry-1.docker.io", "library/nginx").await.as_deref(),
            Some("hub:a:b")
        );
        assert_eq!(user(&keychain, "quay.io", "other/x").await.as_deref(), Some("quay:p"));
        assert_eq!(user(&keychain, "quay.io", "team/x").await.as_deref(), Some("team:p"));
        assert_eq!(user(&keychain, "quay.io", "teamwork/x").await.as_deref(), Some("quay:p"));
        assert_eq!(user(&keychain, "172.20.0.2:5000", "x").await.as_deref(), Some("tok"));
        assert_eq!(user(&keychain, "empty.test", "x").await, None);
        assert!(keychain.hosts().contains(&"quay.io".to_owned()));
    }

    #[tokio::test]
    async fn helpers_are_named_safely_and_missing_ones_reported() {
        let error =
            keychain(r#"{"credHelpers": {"a.test": "../evil"}}"#).find("a.test", "x").await.unwrap_err();
        assert!(error.contains("no name of a credential helper"), "{error}");
        let error = keychain(r#"{"credsStore": "landfall-none"}"#).find("a.test", "x").await.unwrap_err();
        assert!(error.contains("docker-credential-landfall-none"), "{error}");
    }

    #[test]
    fn secrets_are_not_shown() {
        let credential =
            Credential { secret: Secret::Basic("robot".into(), "hush".into()), source: "x".into() };
        assert_eq!(format!("{credential} {credential:?}"), "account 'robot' from x account 'robot' from x");
    }
}
