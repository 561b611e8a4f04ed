//! Finds the credentials for a repository in the site, docker and podman auth files,
//! `DOCKER_AUTH_CONFIG`, and credential helpers.

use super::auth_file::{AuthFile, containers_folder, hub_key};
use super::credential::{Credential, CredentialLookup, RegistrySecret, site_secret};
use crate::atomic_file::read_configuration;
use landfall_http::host_of;
use landfall_model::config::{PathDestinations, Site, SiteCredentials};
use landfall_model::{Failure, TargetRegistry};
use landfall_os::home_folder;
use std::cmp::Reverse;
use std::path::{Path, PathBuf};
use url::Url;

/// What is wrong with a `credentials` entry that names no source.
const NO_SOURCE: &str = "name usernameEnv and passwordEnv, or file, or authFile";

/// All sources of credentials, in order of precedence.
#[derive(Debug, Default)]
pub struct Keychain {
    /// The entries of the site by key. An entry that cannot be read is an error only if its
    /// registry is used: each side of the air gap has only its own secrets.
    site: Vec<(String, Result<Credential, Failure>)>,
    /// The auth files that the site names, each with the key of the site entry that names it.
    site_files: Vec<(String, AuthFile)>,
    files: Vec<AuthFile>,
}

impl Keychain {
    /// Loads the credentials in a site and in the environment. `get` returns the value of an
    /// environment variable. An empty variable counts as unset: an empty path would mean the
    /// current folder.
    ///
    /// # Errors
    /// If a file or variable of the environment, or the address of the site's registry, is invalid.
    /// Errors in credentials of the site are returned by [`Keychain::find`].
    pub fn load(
        site: Option<&Site>,
        get: impl Fn(&str) -> Option<String>,
    ) -> Result<Keychain, Failure> {
        let get = |name: &str| get(name).filter(|value| !value.is_empty());
        let mut keychain = Keychain::default();
        if let Some(site) = site {
            keychain.add_site(site, &get)?;
        }
        if let Some(text) = get("DOCKER_AUTH_CONFIG") {
            keychain
                .files
                .push(AuthFile::parse("DOCKER_AUTH_CONFIG", &text)?);
        }
        let named = get("REGISTRY_AUTH_FILE").map(PathBuf::from);
        if let Some(path) = &named {
            keychain
                .files
                .push(AuthFile::read_named(path, "REGISTRY_AUTH_FILE")?);
        }
        let docker = get("DOCKER_CONFIG")
            .map(PathBuf::from)
            .or_else(|| home_folder(get).map(|home| home.join(".docker")));
        // in the order of podman and skopeo: runtime folder, user's configuration, docker
        let usual = [
            get("XDG_RUNTIME_DIR").map(|dir| Path::new(&dir).join("containers/auth.json")),
            containers_folder(get).map(|folder| folder.join("auth.json")),
            docker.map(|dir| dir.join("config.json")),
        ];
        for path in usual.into_iter().flatten() {
            // an unreadable file is an error: without its account, failures would look like missing
            // rights
            let text = read_configuration(&path).map_err(|error| Failure::read(&path, error))?;
            if let Some(text) = text {
                let file = AuthFile::parse(&path.display().to_string(), &text)?;
                keychain.files.push(file);
            }
        }
        Ok(keychain)
    }

    fn add_site(
        &mut self,
        site: &Site,
        get: &impl Fn(&str) -> Option<String>,
    ) -> Result<(), Failure> {
        if let Some(registry) = &site.registry {
            let target: TargetRegistry = registry.address.parse().map_err(|error| {
                Failure::usage(format!("registry.address of the site: {error}"))
            })?;
            for destinations in registry.paths.values() {
                if let PathDestinations::Entry(entry) = destinations
                    && let Some(credentials) = &entry.credentials
                {
                    for path in &entry.to {
                        let key = format!("{}/{}", target, path.trim_matches('/'));
                        self.add(site, &key, credentials, "registry.paths of the site", get);
                    }
                }
            }
            if let Some(credentials) = &registry.credentials {
                self.add(
                    site,
                    &target.registry,
                    credentials,
                    "registry.credentials of the site",
                    get,
                );
            }
        }
        for (host, upstream) in &site.upstreams {
            if let Some(credentials) = &upstream.credentials {
                let key = match upstream.mirror.as_deref().map(Url::parse) {
                    None => host.clone(),
                    // the mirror requires the account, so the key is its host; like that of its
                    // session, without the default port
                    Some(Ok(url)) => hub_key(host_of(&url)),
                    // `RegistrySessions` reports the invalid URL
                    Some(Err(_)) => continue,
                };
                self.add(
                    site,
                    &key,
                    credentials,
                    &format!("upstreams.{host} of the site"),
                    get,
                );
            }
        }
        Ok(())
    }

    fn add(
        &mut self,
        site: &Site,
        key: &str,
        from: &SiteCredentials,
        setting: &str,
        get: &impl Fn(&str) -> Option<String>,
    ) {
        let account =
            match &from.auth_file {
                Some(path) => match AuthFile::read_named(&site.resolve(path), setting) {
                    Ok(file) => return self.site_files.push((key.to_owned(), file)),
                    Err(error) => Err(error),
                },
                None => site_secret(site, from, setting, NO_SOURCE, get).map(
                    |(user, password, source)| Credential {
                        secret: RegistrySecret::Basic(user, password),
                        source,
                    },
                ),
            };
        self.site.push((key.to_owned(), account));
    }

    /// Returns the hosts with credentials, as far as known without running a helper.
    pub fn hosts(&self) -> Vec<String> {
        let of_site = self.site.iter().map(|(key, _)| key);
        let site_files = self.site_files.iter().map(|(_, file)| file);
        let of_files = site_files.chain(&self.files).flat_map(AuthFile::keys);
        of_site
            .chain(of_files)
            .map(|key| key.split('/').next().unwrap_or(key).to_owned())
            .collect()
    }

    /// Returns the credentials for `host/repository`: those of the longest matching key in the
    /// first source with a matching key.
    ///
    /// # Errors
    /// If a variable or file that the site names is missing, a helper cannot be run, or an entry is
    /// invalid. Callers report the error only if the registry requires an account.
    pub async fn find(&self, host: &str, repository: &str) -> CredentialLookup {
        let host = hub_key(host);
        let full = format!("{host}/{repository}");
        let covers = |key: &str| covers(key, &full);
        let of_site = self
            .site
            .iter()
            .filter(|(key, _)| covers(key))
            .max_by_key(|(key, _)| key.len());
        // an error is returned rather than a less specific account: the user did not intend that
        // account for this repository
        if let Some((_, credential)) = of_site {
            return credential.clone().map(Some);
        }
        // an auth file may have accounts of other registries too, so all files are searched, in
        // this order: the file that the site names for this repository, the site's other files, the
        // user's files
        let mut site_files: Vec<_> = self.site_files.iter().collect();
        site_files.sort_by_key(|(key, _)| Reverse(if covers(key) { key.len() } else { 0 }));
        let site_files = site_files.into_iter().map(|(_, file)| file);
        for file in site_files.chain(&self.files) {
            if let Some(found) = file.find(&host, covers).await? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }
}

/// Whether the entry `key` is for `full`, a host with a repository. As for Kubernetes, a `*` in the
/// host of the key stands for any text within a label.
fn covers(key: &str, full: &str) -> bool {
    let (key_host, key_path) = key.split_at(key.find('/').unwrap_or(key.len()));
    let (host, path) = full.split_at(full.find('/').unwrap_or(full.len()));
    let is_label = |(pattern, label): (&str, &str)| match pattern.split_once('*') {
        // the last label has the port, which must be the same
        Some((start, end)) => label
            .strip_prefix(start)
            .and_then(|rest| rest.strip_suffix(end))
            .is_some_and(|text| !text.contains(':')),
        None => pattern == label,
    };
    let is_host = key_host.split('.').count() == host.split('.').count()
        && key_host.split('.').zip(host.split('.')).all(is_label);
    let is_below = path
        .strip_prefix(key_path)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    is_host && is_below
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keychain(config: &str) -> Keychain {
        Keychain::load(None, |name| {
            (name == "DOCKER_AUTH_CONFIG").then(|| config.to_owned())
        })
        .unwrap()
    }

    async fn user(keychain: &Keychain, host: &str, repository: &str) -> Option<String> {
        match keychain.find(host, repository).await.unwrap()?.secret {
            RegistrySecret::Basic(user, password) => Some(format!("{user}:{password}")),
            RegistrySecret::Identity(token) => Some(token),
        }
    }

    #[tokio::test]
    async fn keys_are_normalized_and_the_longest_wins() {
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
            user(&keychain, "registry-1.docker.io", "library/nginx")
                .await
                .as_deref(),
            Some("hub:a:b")
        );
        assert_eq!(
            user(&keychain, "quay.io", "other/x").await.as_deref(),
            Some("quay:p")
        );
        assert_eq!(
            user(&keychain, "quay.io", "team/x").await.as_deref(),
            Some("team:p")
        );
        assert_eq!(
            user(&keychain, "quay.io", "teamwork/x").await.as_deref(),
            Some("quay:p")
        );
        assert_eq!(
            user(&keychain, "172.20.0.2:5000", "x").await.as_deref(),
            Some("tok")
        );
        assert_eq!(user(&keychain, "empty.test", "x").await, None);
        assert!(keychain.hosts().contains(&"quay.io".to_owned()));
    }

    #[tokio::test]
    async fn a_star_stands_for_text_within_a_label_of_the_host() {
        let keychain = keychain(
            r#"{"auths": {
                "*.jfrog.test": {"username": "any", "password": "p"},
                "a.jfrog.test": {"username": "a", "password": "p"},
                "https://reg-*.test:5000/v2/": {"username": "port", "password": "p"},
                "*.reg.test/team": {"username": "team", "password": "p"},
                "k8s.*": {"username": "k8s", "password": "p"}
            }}"#,
        );
        for (host, repository, expected) in [
            ("b.jfrog.test", "x", Some("any:p")),
            ("a.jfrog.test", "x", Some("a:p")),
            ("jfrog.test", "x", None),
            ("b.c.jfrog.test", "x", None),
            ("b.jfrog.test:5000", "x", None),
            ("reg-eu.test:5000", "x", Some("port:p")),
            ("reg.test:5000", "x", None),
            ("eu.reg.test", "team/x", Some("team:p")),
            ("eu.reg.test", "teamwork/x", None),
            ("k8s.test", "x", Some("k8s:p")),
            ("k8s.test:5000", "x", None),
        ] {
            let found = user(&keychain, host, repository).await;
            assert_eq!(found.as_deref(), expected, "{host}/{repository}");
        }
    }

    #[tokio::test]
    async fn entries_are_read_as_by_docker_and_kubernetes() {
        for entries in [
            // `auth` wins
            r#""r.test": {"auth": "dTpwdw==", "username": "", "password": ""}"#,
            r#""r.test": {"auth": "dTpwdw==", "username": "old", "password": "x"}"#,
            r#""r.test": {"auth": "", "username": "u", "password": "pw"}"#,
            // as `base64` breaks lines, and without padding
            r#""r.test": {"auth": "dTpw\r\ndw==\n"}"#,
            r#""r.test": {"auth": "dTpwdw"}"#,
            // several entries of one host
            r#""r.test": {"auth": "dTpwdw=="}, "https://r.test/": {}"#,
            r#""r.test": null, "https://r.test/v2/": {"auth": "dTpwdw=="}"#,
            r#""r.test": {"auth": "dTpwdw=="}, "https://r.test": {"auth": "eDp4"}"#,
        ] {
            let keychain = keychain(&format!(r#"{{"auths": {{{entries}}}}}"#));
            let found = user(&keychain, "r.test", "x").await;
            assert_eq!(found.as_deref(), Some("u:pw"), "{entries}");
        }
    }

    #[test]
    fn a_home_without_the_usual_files_has_no_accounts() {
        let no_folder = tempfile::NamedTempFile::new().unwrap();
        let folder = tempfile::tempdir().unwrap();
        if cfg!(unix) {
            std::fs::create_dir_all(folder.path().join(".docker/config.json")).unwrap();
        }
        for home in [no_folder.path(), folder.path()] {
            let home = home.display().to_string();
            let keychain = Keychain::load(None, |name| (name == "HOME").then(|| home.clone()));
            assert_eq!(keychain.unwrap().hosts(), Vec::<String>::new(), "{home}");
        }
    }

    #[tokio::test]
    async fn a_missing_secret_of_the_site_is_an_error_only_for_its_registry() {
        let site = "registry: {address: far.test, credentials: {usernameEnv: U, passwordEnv: P}}\n\
                    upstreams:\n  quay.io: {credentials: {file: /nowhere/quay}}\n  ghcr.io: {credentials: {authFile: /nowhere/auth}}\n  \
                    gcr.io: {mirror: \"https://cache.test:443/gcr\", credentials: {file: /nowhere/gcr}}\n";
        let site = Site::parse(
            Path::new("site.yaml"),
            &format!("apiVersion: landfall/v1\nkind: Site\n{site}"),
        )
        .unwrap();
        let keychain = Keychain::load(Some(&site), |_| None).unwrap();
        assert!(
            keychain
                .find("docker.io", "library/nginx")
                .await
                .unwrap()
                .is_none()
        );
        for (host, words) in [
            (
                "far.test",
                "registry.credentials of the site: the environment variable U is not set",
            ),
            (
                "quay.io",
                "upstreams.quay.io of the site: cannot read /nowhere/quay",
            ),
            (
                "ghcr.io",
                "upstreams.ghcr.io of the site: cannot read /nowhere/auth",
            ),
            // the host of the mirror, without the default port
            (
                "cache.test",
                "upstreams.gcr.io of the site: cannot read /nowhere/gcr",
            ),
        ] {
            let error = keychain.find(host, "team/x").await.unwrap_err().to_string();
            assert!(error.starts_with(words), "{error}");
        }
    }

    #[tokio::test]
    async fn a_byte_order_mark_is_not_a_part_of_the_user_name() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("account"), "\u{feff}me:p:w\r\n").unwrap();
        let site = "apiVersion: landfall/v1\nkind: Site\n\
                    upstreams: {quay.io: {credentials: {file: account}}}\n";
        let site = Site::parse(&dir.path().join("site.yaml"), site).unwrap();
        let keychain = Keychain::load(Some(&site), |_| None).unwrap();
        let found = user(&keychain, "quay.io", "x").await;
        assert_eq!(found.as_deref(), Some("me:p:w"));
    }

    #[tokio::test]
    async fn a_line_break_is_not_a_part_of_the_password() {
        let site = "apiVersion: landfall/v1\nkind: Site\n\
                    upstreams: {quay.io: {credentials: {usernameEnv: U, passwordEnv: P}}}\n";
        let site = Site::parse(Path::new("site.yaml"), site).unwrap();
        let get = |name: &str| match name {
            "U" => Some("me".to_owned()),
            "P" => Some("p w\r\n".to_owned()),
            _ => None,
        };
        let keychain = Keychain::load(Some(&site), get).unwrap();
        let found = user(&keychain, "quay.io", "x").await;
        assert_eq!(found.as_deref(), Some("me:p w"));
    }

    #[tokio::test]
    async fn the_auth_file_that_the_site_names_for_a_repository_is_searched_first() {
        let dir = tempfile::tempdir().unwrap();
        let auths = |users: &[(&str, &str)]| {
            let entries = users.iter().map(|(key, user)| {
                format!(r#""{key}": {{"username": "{user}", "password": "p"}}"#)
            });
            format!(
                r#"{{"auths": {{{}}}}}"#,
                entries.collect::<Vec<_>>().join(",")
            )
        };
        for (name, users) in [
            ("team", &[("far.test", "team")][..]),
            ("far", &[("far.test", "far"), ("quay.io", "far")]),
            (
                "ghcr",
                &[
                    ("ghcr.io", "ghcr"),
                    ("gcr.io", "ghcr"),
                    ("far.test", "ghcr"),
                ],
            ),
            (
                "quay",
                &[("quay.io", "quay"), ("gcr.io", "quay"), ("ghcr.io", "quay")],
            ),
        ] {
            std::fs::write(dir.path().join(name), auths(users)).unwrap();
        }
        let site = "registry:\n  address: far.test\n  credentials: {authFile: far}\n  paths:\n    \
                    quay.io/team: {to: [team], credentials: {authFile: team}}\nupstreams:\n  \
                    quay.io: {credentials: {authFile: quay}}\n  \
                    ghcr.io: {credentials: {authFile: ghcr}}\n";
        let site = Site::parse(
            &dir.path().join("site.yaml"),
            &format!("apiVersion: landfall/v1\nkind: Site\n{site}"),
        )
        .unwrap();
        let own = auths(&[("gcr.io", "own"), ("docker.io", "own")]);
        let keychain = Keychain::load(Some(&site), |name| {
            (name == "DOCKER_AUTH_CONFIG").then(|| own.clone())
        })
        .unwrap();
        for (host, repository, expected) in [
            ("far.test", "team/app", "team:p"),
            ("far.test", "other/app", "far:p"),
            ("quay.io", "x", "quay:p"),
            ("ghcr.io", "x", "ghcr:p"),
            // the site names no file for gcr.io, so the first of the site's files with an
            // account for gcr.io is used
            ("gcr.io", "x", "ghcr:p"),
            ("docker.io", "x", "own:p"),
        ] {
            let found = user(&keychain, host, repository).await;
            assert_eq!(found.as_deref(), Some(expected), "{host}/{repository}");
        }
    }

    #[tokio::test]
    async fn auth_files_are_found_in_the_users_folders() {
        let dir = tempfile::tempdir().unwrap();
        let write = |path: &str, user: &str| {
            let auth = format!(
                r#"{{"auths": {{"{user}.test": {{"username": "{user}", "password": "p"}}}}}}"#
            );
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, auth).unwrap();
        };
        write("run/containers/auth.json", "run");
        write("config/containers/auth.json", "config");
        write("home/.config/containers/auth.json", "home");
        write("home/.docker/config.json", "docker");
        let variables = |names: &'static [(&str, &str)]| {
            let dir = dir.path().to_owned();
            move |name: &str| {
                let (_, folder) = names.iter().find(|(variable, _)| *variable == name)?;
                Some(dir.join(folder).display().to_string())
            }
        };
        const VARIABLES: &[(&str, &str)] = &[
            ("HOME", "home"),
            ("XDG_CONFIG_HOME", "config"),
            ("XDG_RUNTIME_DIR", "run"),
        ];
        for (names, found) in [
            (&VARIABLES[..1], [false, false, true, true]),
            // the folder in XDG_CONFIG_HOME replaces ~/.config
            (VARIABLES, [true, true, false, true]),
        ] {
            let keychain = Keychain::load(None, variables(names)).unwrap();
            for (user, is_found) in ["run", "config", "home", "docker"].iter().zip(found) {
                let host = format!("{user}.test");
                let account = keychain.find(&host, "x").await.unwrap();
                assert_eq!(account.is_some(), is_found, "{user}, {names:?}");
            }
        }
    }

    #[tokio::test]
    async fn empty_variables_count_as_unset() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join(".docker")).unwrap();
        let auth = r#"{"auths": {"own.test": {"username": "u", "password": "p"}}}"#;
        std::fs::write(dir.path().join(".docker/config.json"), auth).unwrap();
        let home = dir.path().display().to_string();
        let keychain = Keychain::load(None, |name| {
            Some(if name == "HOME" {
                home.clone()
            } else {
                String::new()
            })
        });
        assert_eq!(keychain.unwrap().hosts(), ["own.test"]);
    }

    #[tokio::test]
    async fn keys_of_helpers_are_normalized() {
        let helpers = r#"{"https://index.docker.io/v1/": "landfall-none"}"#;
        let keychain = keychain(&format!(r#"{{"credHelpers": {helpers}}}"#));
        let error = keychain.find("docker.io", "library/nginx").await;
        let error = error.unwrap_err().to_string();
        assert!(error.contains("docker-credential-landfall-none"), "{error}");
        assert_eq!(keychain.hosts(), ["docker.io"]);
    }

    #[tokio::test]
    async fn unsafe_helper_names_are_refused_and_missing_helpers_reported() {
        let error = keychain(r#"{"credHelpers": {"a.test": "../evil"}}"#)
            .find("a.test", "x")
            .await
            .unwrap_err();
        assert!(
            error
                .to_string()
                .contains("not a valid name of a credential helper"),
            "{error}"
        );
        let error = keychain(r#"{"credsStore": "landfall-none"}"#)
            .find("a.test", "x")
            .await
            .unwrap_err();
        assert!(
            error
                .to_string()
                .contains("docker-credential-landfall-none"),
            "{error}"
        );
    }
}
