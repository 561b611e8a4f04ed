//! The configuration files of the AWS CLI, `~/.aws/credentials` and `~/.aws/config`, which
//! `object_store` does not read.

use crate::atomic_file::read_configuration;
use landfall_os::home_folder;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The settings of a profile.
pub(super) type AwsProfile = BTreeMap<String, String>;

/// Returns the settings of the profile that `AWS_PROFILE` names, or of `default`, from both files.
/// The file with credentials is read only if `needs_account` is set. Fails if a file cannot be
/// read, neither file has the named profile, or an account is needed and the profile has no access
/// key, because its credentials come from a program, a login or a role.
pub(super) fn load_profile(
    environment: impl Fn(&str) -> Option<String>,
    needs_account: bool,
) -> Result<AwsProfile, String> {
    let home = home_folder(&environment);
    let file = |variable: &str, name: &str| {
        environment(variable)
            .map(PathBuf::from)
            .or_else(|| Some(home.as_ref()?.join(".aws").join(name)))
    };
    let named = environment("AWS_PROFILE");
    let wanted = named.as_deref().unwrap_or("default");
    let paths = [
        file("AWS_CONFIG_FILE", "config"),
        file("AWS_SHARED_CREDENTIALS_FILE", "credentials"),
    ];
    let [config, credentials] = &paths;
    let config = match config {
        // in this file, sections are named `profile NAME`; only the default may omit `profile`
        Some(path) => match section_of(path, &format!("profile {wanted}"))? {
            None if wanted == "default" => section_of(path, wanted)?,
            found => found,
        },
        None => None,
    };
    let credentials = match credentials {
        Some(path) if needs_account => section_of(path, wanted)?,
        _ => None,
    };
    // a missing default profile is normal: the account may come from the instance's metadata
    if let (Some(named), None, None) = (&named, &config, &credentials) {
        let read: Vec<String> = paths
            .iter()
            .flatten()
            .map(|path| format!(" in {}", path.display()))
            .collect();
        return Err(format!(
            "AWS_PROFILE names '{named}', which was not found{}",
            read.join(" or")
        ));
    }
    let mut profile = config.unwrap_or_default();
    // `credentials` wins over `config`, as in the AWS CLI
    profile.extend(credentials.unwrap_or_default());
    // the credentials of these profiles need a program, a browser or another service; without this
    // check, requests would use another account or none
    let by_program = [
        "credential_process",
        "sso_session",
        "sso_start_url",
        "role_arn",
    ];
    if needs_account
        && !profile.contains_key("aws_access_key_id")
        && let Some(key) = by_program.iter().find(|key| profile.contains_key(**key))
    {
        return Err(format!(
            "profile '{wanted}' uses {key}, which landfall does not support; put the keys into the \
             environment: eval \"$(aws configure export-credentials --profile {wanted} \
             --format env)\""
        ));
    }
    Ok(profile)
}

/// Returns the settings in a section of a file, or `None` if the file or section is missing.
fn section_of(path: &Path, wanted: &str) -> Result<Option<AwsProfile>, String> {
    // without this error, requests would use another account or none
    let text = read_configuration(path).map_err(|error| {
        let path = path.display();
        format!(
            "cannot read {path}: {error}; correct the file, or set AWS_ACCESS_KEY_ID and \
             AWS_SECRET_ACCESS_KEY"
        )
    })?;
    let Some(text) = text else { return Ok(None) };
    let mut found: Option<AwsProfile> = None;
    let mut is_in = false;
    // the indentation of the section's last key that is not nested: the file may indent all keys
    let mut key_indent: Option<usize> = None;
    for line in text.lines() {
        let indent = line.len() - line.trim_start().len();
        let line = line.trim();
        if line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(section) = line
            .strip_prefix('[')
            .and_then(|rest| rest.split(']').next())
        {
            is_in = section.trim() == wanted;
            key_indent = None;
            if is_in {
                // a section without settings exists too, so AWS_PROFILE may name it
                found.get_or_insert_default();
            }
        } else if is_in
            && let Some((key, value)) = line.split_once('=')
            && let Some(found) = &mut found
        {
            let value = value.trim();
            let is_nested = key_indent.is_some_and(|key_indent| indent > key_indent);
            if !is_nested {
                key_indent = Some(indent);
            }
            // a nested endpoint is that of one service, such as `dynamodb =`
            let is_ignored = is_nested || value.is_empty();
            if !(is_ignored && key.trim() == "endpoint_url") {
                found.insert(key.trim().to_owned(), value.to_owned());
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_read_from_both_files_and_unsupported_profiles_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let config = dir.path().join("c");
        let credentials = dir.path().join("k");
        std::fs::write(
            &config,
            "[default]\nregion = eu-west-1\n[profile two]\nsso_session=x\n[profile three]\nregion=r\n",
        )
        .unwrap();
        std::fs::write(
            &credentials,
            "# note\n[default]\naws_access_key_id = A\naws_secret_access_key=S=\n",
        )
        .unwrap();
        let with = |name: Option<&str>| {
            let (config, credentials, name) =
                (config.clone(), credentials.clone(), name.map(str::to_owned));
            let environment = move |variable: &str| match variable {
                "AWS_CONFIG_FILE" => Some(config.display().to_string()),
                "AWS_SHARED_CREDENTIALS_FILE" => Some(credentials.display().to_string()),
                "AWS_PROFILE" => name.clone(),
                _ => None,
            };
            load_profile(environment, true)
        };
        let default = with(None).unwrap();
        let value = |key: &str| default[key].as_str();
        assert_eq!(
            (
                value("region"),
                value("aws_access_key_id"),
                value("aws_secret_access_key")
            ),
            ("eu-west-1", "A", "S=")
        );
        assert!(
            with(Some("two"))
                .unwrap_err()
                .contains("export-credentials --profile two")
        );
        // with an account in the environment, the profile is read for its other settings
        let environment = |variable: &str| match variable {
            "AWS_CONFIG_FILE" => Some(config.display().to_string()),
            "AWS_PROFILE" => Some("two".to_owned()),
            _ => None,
        };
        assert!(load_profile(environment, false).is_ok());
        assert_eq!(with(Some("three")).unwrap()["region"], "r");
        let error = with(Some("four")).unwrap_err();
        assert!(error.contains("'four'"), "{error}");
        for path in [&config, &credentials] {
            assert!(error.contains(&*path.display().to_string()), "{error}");
        }
        assert!(load_profile(|_| None, true).unwrap().is_empty());
        // only the endpoint of all services is used
        std::fs::write(
            &config,
            "[default]\nendpoint_url = http://h\ns3 =\n  endpoint_url = http://s3\n",
        )
        .unwrap();
        assert_eq!(with(None).unwrap()["endpoint_url"], "http://h");
        // the section `[profile default]` takes precedence over `[default]`
        std::fs::write(
            &config,
            "[profile default]\nregion=a\n[default]\nregion=b\n",
        )
        .unwrap();
        assert_eq!(with(None).unwrap()["region"], "a");
        // an unreadable file is an error, and a missing file is not
        std::fs::write(&credentials, b"[default]\naws_access_key_id = \xff\n").unwrap();
        let error = with(None).unwrap_err();
        assert!(
            error.contains(&*credentials.display().to_string()),
            "{error}"
        );
        std::fs::remove_file(&credentials).unwrap();
        assert_eq!(with(None).unwrap()["region"], "a");
    }

    #[test]
    fn the_endpoint_of_one_service_is_recognized_by_its_indentation() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("c");
        for (text, wanted) in [
            (
                "  endpoint_url = http://h\n  s3 =\n    endpoint_url = http://s3\n",
                Some("http://h"),
            ),
            (
                "s3 =\n  endpoint_url = http://s3\nendpoint_url = http://h\n",
                Some("http://h"),
            ),
            ("endpoint_url =\n", None),
        ] {
            std::fs::write(&path, format!("[default]\n{text}")).unwrap();
            let found = section_of(&path, "default").unwrap().unwrap();
            let endpoint = found.get("endpoint_url").map(String::as_str);
            assert_eq!(endpoint, wanted, "{text}");
        }
    }
}
