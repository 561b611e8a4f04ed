//! `.lfsconfig`: the server of the large files of a repository (git-lfs, git-lfs-config(5)).

use super::config_file::parse_config;

/// What the `.lfsconfig` of a commit says about the server of its large files.
///
/// git-lfs reads only a few keys of this file, because it comes from strangers. Of these, a mirror
/// needs the URLs; `lfs.fetchinclude` and `lfs.fetchexclude` limit what a clone downloads first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LfsConfig {
    /// `lfs.url` or, without it, `remote.origin.lfsurl`: `origin` is the remote of a clone.
    pub url: Option<String>,
    /// `lfs.gitprotocol`, which replaces the scheme of a URL `git://…`.
    pub git_protocol: Option<String>,
}

impl LfsConfig {
    /// Reads the content of a `.lfsconfig`. Later values replace earlier ones; other keys are
    /// ignored, and so are included files.
    ///
    /// # Errors
    /// If git could not read `text`.
    pub fn parse(text: &str) -> Result<LfsConfig, String> {
        let mut config = LfsConfig::default();
        let mut of_remote = None;
        for entry in parse_config(text)? {
            let Some(value) = entry.value else {
                continue;
            };
            let subsection = entry.subsection.as_deref();
            match (entry.section.as_str(), subsection, entry.key.as_str()) {
                ("lfs", None, "url") => config.url = Some(value),
                ("lfs", None, "gitprotocol") => config.git_protocol = Some(value),
                ("remote", Some("origin"), "lfsurl") => of_remote = Some(value),
                _ => {}
            }
        }
        config.url = config.url.or(of_remote);
        Ok(config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_keys_that_git_lfs_trusts_name_a_server() {
        let url = |text: &str| LfsConfig::parse(text).unwrap().url;
        let remote = "[remote \"origin\"]\n\tlfsurl = https://h/remote\n\turl = https://h/git\n";
        assert_eq!(url(remote).as_deref(), Some("https://h/remote"));
        let both = format!("[lfs]\n\turl = https://h/lfs\n{remote}");
        assert_eq!(url(&both).as_deref(), Some("https://h/lfs"));
        let twice = "[lfs]\nurl = https://h/a\nurl = https://h/b\n";
        assert_eq!(url(twice).as_deref(), Some("https://h/b"));
        for other in [
            "",
            "[lfs]\n\tpushurl = https://h/push\n\tlocksverify = true\n",
            "[lfs \"https://h/\"]\n\taccess = basic\n\turl = https://h/x\n",
            "[remote \"fork\"]\n\tlfsurl = https://h/fork\n",
            "[remote \"origin\"]\n\turl = https://h/git\n\tlfspushurl = https://h/push\n",
            "[url \"https://h/\"]\n\tinsteadOf = https://other/\n",
            "[include]\n\tpath = other\n",
            "[lfs]\n\turl\n",
        ] {
            assert_eq!(url(other), None, "{other}");
        }
        let config = LfsConfig::parse("[lfs]\ngitprotocol = http\n").unwrap();
        assert_eq!(config.git_protocol.as_deref(), Some("http"));
        assert!(LfsConfig::parse("<<<<<<< HEAD\n[lfs]\n").is_err());
    }
}
