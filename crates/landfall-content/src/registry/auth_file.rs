//! An auth file of docker or podman (containers/image, `docs/containers-auth.json.5.md`) and the
//! credential helpers that it names.

use super::credential::{Credential, CredentialLookup, RegistrySecret, read_named};
use super::sessions::api_host;
use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use landfall_http::TlsProfile;
use landfall_model::{Failure, canonical_host, from_json, null_as_default};
use landfall_os::home_folder;
use serde::Deserialize;
use serde_json::error::Category;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tokio::io::AsyncWriteExt;

/// Base64 with or without padding: Kubernetes accepts both.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// An auth file, with the responses of its helpers.
#[derive(Debug)]
pub(super) struct AuthFile {
    name: String,
    config: AuthConfig,
    /// The responses of helpers by host: each helper is run once per host.
    helper_responses: tokio::sync::Mutex<HashMap<String, CredentialLookup>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct AuthConfig {
    // `null` is accepted for single entries and for whole maps
    #[serde(default, deserialize_with = "null_as_default")]
    auths: BTreeMap<String, Option<AuthEntry>>,
    #[serde(default, deserialize_with = "null_as_default")]
    cred_helpers: BTreeMap<String, Option<String>>,
    creds_store: Option<String>,
}

#[derive(Default, Deserialize, derive_more::Debug)]
#[debug("AuthEntry")]
struct AuthEntry {
    auth: Option<String>,
    username: Option<String>,
    password: Option<String>,
    #[serde(alias = "identityToken")]
    identitytoken: Option<String>,
}

/// Returns the account. A user name and password that are both empty stand for none: helpers that
/// are asked for every registry answer so, and templates leave such entries.
fn user_and_password(user: &str, password: &str) -> Option<RegistrySecret> {
    let is_empty = user.is_empty() && password.is_empty();
    (!is_empty).then(|| RegistrySecret::Basic(user.into(), password.into()))
}

/// Returns the beginning of the output of a helper, in one line.
fn first_words(output: &str) -> String {
    const WORDS: usize = 60;
    let words: Vec<&str> = output.split_whitespace().take(WORDS).collect();
    words.join(" ")
}

/// Returns the name of a helper, if there is one. In docker, the helper "" means the file itself.
fn helper_name(helper: Option<&String>) -> Option<String> {
    helper.filter(|helper| !helper.is_empty()).cloned()
}

impl AuthFile {
    /// Reads the auth file that the variable or site key `setting` names.
    pub(super) fn read_named(path: &Path, setting: &str) -> Result<AuthFile, Failure> {
        AuthFile::parse(&path.display().to_string(), &read_named(path, setting)?)
    }

    /// Parses an auth file. `name` is its name in messages.
    pub(super) fn parse(name: &str, text: &str) -> Result<AuthFile, Failure> {
        let mut config: AuthConfig = match text.trim() {
            // an empty file or variable counts as one without entries
            "" => AuthConfig::default(),
            text => from_json(text.as_bytes()).map_err(|error| {
                let why = match error.classify() {
                    // the error's own text has the value, which may be a secret
                    Category::Data => {
                        let (line, column) = (error.line(), error.column());
                        format!("a value has another type at line {line} column {column}")
                    }
                    _ => error.to_string(),
                };
                Failure::usage(format!("{name} is not a valid auth file: {why}"))
            })?,
        };
        let is_empty = |entry: &Option<AuthEntry>| {
            let secret = entry.as_ref().map(AuthEntry::secret);
            matches!(secret, None | Some(Ok(None)))
        };
        let AuthConfig {
            auths,
            cred_helpers,
            creds_store,
        } = &config;
        // `.dockercfg`, of which OpenShift and Kubernetes have secrets, is the map of entries
        // itself
        if auths.is_empty()
            && cred_helpers.is_empty()
            && creds_store.is_none()
            && let Ok(entries) = from_json::<BTreeMap<_, _>>(text.as_bytes())
        {
            config.auths = entries;
            config.auths.retain(|_, entry| !is_empty(entry));
        }
        config.auths = with_normal_keys(config.auths, is_empty);
        config.cred_helpers = with_normal_keys(config.cred_helpers, |helper| {
            helper_name(helper.as_ref()).is_none()
        });
        Ok(AuthFile {
            name: name.into(),
            config,
            helper_responses: tokio::sync::Mutex::default(),
        })
    }

    /// Returns the keys of all entries.
    pub(super) fn keys(&self) -> impl Iterator<Item = &String> {
        self.config
            .auths
            .keys()
            .chain(self.config.cred_helpers.keys())
    }

    /// Returns the credentials for `host`: from its helper, or from the entry with the longest key
    /// that `covers` accepts, or from the helper for all hosts.
    pub(super) async fn find(&self, host: &str, covers: impl Fn(&str) -> bool) -> CredentialLookup {
        // the helper of the host wins, then an entry with a secret, then the helper of all hosts
        let of_host = self.config.cred_helpers.get(host);
        if let Some(helper) = of_host.and_then(|helper| helper_name(helper.as_ref())) {
            return self.helper_response(&helper, host).await;
        }
        let store = if of_host.is_some() {
            None
        } else {
            helper_name(self.config.creds_store.as_ref())
        };
        let best = self
            .config
            .auths
            .iter()
            .filter(|(key, _)| covers(key))
            // containers/image allows keys with a namespace; the most specific key applies
            .max_by_key(|(key, _)| key.len());
        let inline = match best {
            Some((key, entry)) => {
                entry
                    .as_ref()
                    .map_or(Ok(None), AuthEntry::secret)
                    .map_err(|fault| {
                        Failure::usage(format!("{}: {key}: auth is {fault}", self.name))
                    })?
            }
            None => None,
        };
        match (inline, store) {
            (Some(secret), _) => Ok(Some(Credential {
                secret,
                source: self.name.clone(),
            })),
            (None, Some(helper)) => self.helper_response(&helper, host).await,
            (None, None) => Ok(None),
        }
    }

    async fn helper_response(&self, helper: &str, host: &str) -> CredentialLookup {
        // locked while a helper runs: some helpers open a dialog, and only one may be open
        let mut helper_responses = self.helper_responses.lock().await;
        if let Some(answer) = helper_responses.get(host) {
            return answer.clone();
        }
        let answer = self.run_helper(helper, host).await;
        helper_responses.insert(host.to_owned(), answer.clone());
        answer
    }

    /// Runs `docker-credential-<helper> get` (docker/docker-credential-helpers, README,
    /// "Development").
    async fn run_helper(&self, helper: &str, host: &str) -> Result<Option<Credential>, Failure> {
        // the name becomes part of a program's name, so it must not contain a path
        if !helper
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
        {
            return Err(Failure::usage(format!(
                "{}: '{helper}' is not a valid name of a credential helper",
                self.name
            )));
        }
        let program = format!("docker-credential-{helper}");
        let key = if host == "docker.io" {
            // the key under which `docker login` stores accounts of Docker Hub
            "https://index.docker.io/v1/"
        } else {
            host
        };
        let failed = |error| {
            let name = &self.name;
            Failure::failed(format!("cannot run {program} (named in {name}): {error}"))
        };
        let mut child = tokio::process::Command::new(&program)
            .arg("get")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(failed)?;
        if let Some(mut stdin) = child.stdin.take() {
            // a helper that does not read its input may still respond
            let _ = stdin.write_all(key.as_bytes()).await;
        }
        let output = child.wait_with_output().await.map_err(failed)?;
        let text = String::from_utf8_lossy(&output.stdout);
        if !output.status.success() {
            // helpers write their errors to stdout, but those of clouds write them to stderr
            let errors = String::from_utf8_lossy(&output.stderr);
            let mut outputs = [&text, &errors].into_iter().map(|text| text.trim());
            let words = outputs.find(|words| !words.is_empty());
            let words = words.map_or_else(|| output.status.to_string(), first_words);
            // helpers report a missing entry as a failure with this message
            return if words.to_lowercase().contains("credentials not found") {
                Ok(None)
            } else {
                Err(Failure::failed(format!(
                    "{program} failed for {key}: {words}"
                )))
            };
        }
        let answer: Map<String, Value> = from_json(text.as_bytes())
            .map_err(|_| Failure::failed(format!("the output of {program} is invalid")))?;
        // docker ignores the case of the names
        let member = |name: &str| {
            let mut members = answer.iter();
            let member = members.find(|(found, _)| found.eq_ignore_ascii_case(name));
            member.and_then(|(_, value)| value.as_str()).unwrap_or("")
        };
        let secret = match (member("Username"), member("Secret")) {
            // the user name of the helper protocol for an identity token
            ("<token>", secret) => Some(RegistrySecret::Identity(secret.into())),
            (user, secret) => user_and_password(user, secret),
        };
        Ok(secret.map(|secret| Credential {
            secret,
            source: program,
        }))
    }
}

/// Normalizes the keys. If a host has several, an entry that is not empty counts, and the one whose
/// key is normal already.
fn with_normal_keys<T>(
    entries: BTreeMap<String, T>,
    is_empty: impl Fn(&T) -> bool,
) -> BTreeMap<String, T> {
    let mut entries: Vec<_> = entries.into_iter().collect();
    entries.sort_by_key(|(key, entry)| (is_empty(entry), normal_key(key) != *key));
    let mut normal = BTreeMap::new();
    for (key, entry) in entries {
        normal.entry(normal_key(&key)).or_insert(entry);
    }
    normal
}

impl AuthEntry {
    fn secret(&self) -> Result<Option<RegistrySecret>, &'static str> {
        // an identity token wins: docker stores it next to an `auth` that has only a user name
        if let Some(token) = self
            .identitytoken
            .as_ref()
            .filter(|token| !token.is_empty())
        {
            return Ok(Some(RegistrySecret::Identity(token.clone())));
        }
        let Some(auth) = self.auth.as_ref().filter(|auth| !auth.is_empty()) else {
            let account = self.username.as_ref().zip(self.password.as_ref());
            return Ok(account.and_then(|(user, password)| user_and_password(user, password)));
        };
        // like docker and Kubernetes: `auth` wins, and may have the line breaks of `base64`
        let auth: String = auth.split_whitespace().collect();
        let decoded = BASE64.decode(auth).map_err(|_| "not base64")?;
        let decoded = String::from_utf8(decoded).map_err(|_| "not text")?;
        let (user, password) = decoded.split_once(':').ok_or("not user:password")?;
        // docker's own parser trims these bytes as well
        Ok(user_and_password(user, password.trim_end_matches('\0')))
    }
}

/// Normalizes a key: `https://index.docker.io/v1/` to `docker.io`, `https://host:1/v2/` to
/// `host:1`; `host/namespace` is unchanged.
pub(super) fn normal_key(key: &str) -> String {
    let bare = key
        .split_once("://")
        .map_or(key, |(_, rest)| rest)
        .trim_end_matches('/');
    let bare = bare
        .strip_suffix("/v1")
        .or_else(|| bare.strip_suffix("/v2"))
        .unwrap_or(bare);
    match bare.split_once('/') {
        Some((host, path)) => format!("{}/{path}", hub_key(host)),
        None => hub_key(bare),
    }
}

/// Returns the key of a host. All hosts of Docker Hub share one key.
pub(super) fn hub_key(host: &str) -> String {
    canonical_host(host).to_ascii_lowercase()
}

/// Returns the folders to read, the user's own first.
pub fn certs_d_folders(get: impl Fn(&str) -> Option<String>) -> Vec<PathBuf> {
    let own = containers_folder(get).map(|folder| folder.join("certs.d"));
    own.into_iter()
        .chain([
            "/etc/containers/certs.d".into(),
            "/etc/docker/certs.d".into(),
        ])
        .collect()
}

/// Returns the folder with the user's configuration of podman and skopeo.
pub(super) fn containers_folder(get: impl Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let folder = |name: &str| get(name).filter(|dir| !dir.is_empty()).map(PathBuf::from);
    let config = folder("XDG_CONFIG_HOME").or_else(|| Some(home_folder(get)?.join(".config")));
    config.map(|config| config.join("containers"))
}

/// Returns the TLS settings in these folders, by host. Authorities of all folders are used, but
/// only the first client certificate of a host. A missing or unreadable folder counts as empty; an
/// invalid file is an error only when its host is contacted.
pub fn certs_d(folders: &[PathBuf]) -> BTreeMap<String, TlsProfile> {
    let mut hosts: BTreeMap<String, TlsProfile> = BTreeMap::new();
    for folder in folders.iter().flat_map(|folder| sorted(folder)) {
        let Some(name) = folder.file_name().and_then(|name| name.to_str()) else {
            continue;
        };
        let files = sorted(&folder);
        let host = api_host(name).to_ascii_lowercase();
        let client = with_extension(&files, "cert")
            .next()
            .map(|path| (path.clone(), path.with_extension("key")));
        // a key without a certificate is kept too, so that the missing file is reported
        let client = client.or_else(|| {
            with_extension(&files, "key")
                .next()
                .map(|key| (key.with_extension("cert"), key.clone()))
        });
        let ca: Vec<PathBuf> = with_extension(&files, "crt").cloned().collect();
        if ca.is_empty() && client.is_none() {
            continue;
        }
        let profile = hosts.entry(host).or_default();
        profile.ca.extend(ca);
        profile.client = profile.client.take().or(client);
    }
    hosts
}

fn with_extension<'a>(
    files: &'a [PathBuf],
    extension: &'static str,
) -> impl Iterator<Item = &'a PathBuf> {
    files
        .iter()
        .filter(move |path| path.extension().is_some_and(|found| found == extension))
}

fn sorted(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_contain_no_secret() {
        for text in [
            r#"{"auths": {"reg.test": "secret"}}"#,
            r#"{"auths": {"reg.test": {"auth": ["secret"]}}}"#,
            r#"{"auths": {"reg.test": {"auth": "secret" 1}}}"#,
        ] {
            let error = AuthFile::parse("a.json", text).unwrap_err().to_string();
            assert!(!error.contains("secret"), "{error}");
            assert!(
                error.contains("not a valid auth file") && error.contains("line 1"),
                "{error}"
            );
        }
    }

    #[tokio::test]
    async fn an_empty_user_name_and_password_are_no_account() {
        for entry in [r#"{"username": "", "password": ""}"#, r#"{"auth": "Og=="}"#] {
            let text = format!(r#"{{"auths": {{"r.test": {entry}}}}}"#);
            let file = AuthFile::parse("a.json", &text).unwrap();
            let found = file.find("r.test", |key| key == "r.test").await;
            assert_eq!(found.unwrap(), None, "{entry}");
        }
    }

    #[test]
    fn a_map_of_entries_is_an_auth_file() {
        let keys = |text: &str| {
            let file = AuthFile::parse("a.json", text).unwrap();
            file.keys().cloned().collect::<Vec<_>>()
        };
        let entries = r#"{"https://r.test/v1/": {"auth": "dTpwdw==", "email": "a"}, "x.test": {}}"#;
        assert_eq!(keys(entries), ["r.test"]);
        for other in [
            "{}",
            r#"{"auths": {}}"#,
            r#"{"HttpHeaders": {"User-Agent": "x"}, "proxies": {"default": {}}}"#,
            r#"{"experimental": "enabled"}"#,
        ] {
            assert_eq!(keys(other), Vec::<String>::new(), "{other}");
        }
    }

    #[test]
    fn certificates_are_read_by_host() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str| {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, "").unwrap();
            path
        };
        let own = write("own/Reg.test:5000/b.crt");
        let client = (
            write("own/Reg.test:5000/c.cert"),
            write("own/Reg.test:5000/c.key"),
        );
        let system = write("system/reg.test:5000/ca.crt");
        write("system/reg.test:5000/other.cert");
        write("system/docker.io/ca.crt");
        write("system/empty.test/notes.txt");
        let key = write("system/half.test/x.key");
        let hosts = certs_d(&["own", "nowhere", "system"].map(|name| dir.path().join(name)));
        let reg = &hosts["reg.test:5000"];
        assert_eq!((&reg.ca, &reg.client), (&vec![own, system], &Some(client)));
        assert_eq!(
            hosts["half.test"].client,
            Some((key.with_extension("cert"), key))
        );
        assert_eq!(
            hosts.keys().collect::<Vec<_>>(),
            ["half.test", "reg.test:5000", "registry-1.docker.io"]
        );
    }

    #[test]
    fn the_users_folder_follows_the_environment() {
        let home = certs_d_folders(|name| (name == "HOME").then(|| "/h".to_owned()));
        assert_eq!(home[0], Path::new("/h/.config/containers/certs.d"));
        let xdg = certs_d_folders(|name| (name == "XDG_CONFIG_HOME").then(|| "/x".to_owned()));
        assert_eq!(
            (xdg[0].as_path(), xdg.len()),
            (Path::new("/x/containers/certs.d"), 3)
        );
        for none in [None, Some(String::new())] {
            assert_eq!(certs_d_folders(|_| none.clone()).len(), 2);
        }
    }
}
