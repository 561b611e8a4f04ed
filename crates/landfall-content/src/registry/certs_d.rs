//! Reads the certificates in `certs.d` folders, as docker, podman and skopeo do:
//! `certs.d/<host[:port]>/` with `*.crt` (certificate authorities) and `*.cert` with `*.key` (a
//! client certificate) (containers/image, `docs/containers-certs.d.5.md`).

use landfall_http::TlsProfile;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

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
    let config = folder("XDG_CONFIG_HOME").or_else(|| Some(folder("HOME")?.join(".config")));
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
        let host = match name {
            // connections use the host name of Docker Hub's API
            "docker.io" => "registry-1.docker.io".to_owned(),
            name => name.to_ascii_lowercase(),
        };
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
