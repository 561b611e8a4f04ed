//! `git`: configuration with which git fetches the locked repositories from the mirror.

use crate::platform::{OutputForm, PlatformSetting, RenderPlatform, RenderRequest, RenderedConfig};
use crate::rendered_file::header;
use landfall_item::LockedGitRepository;
use landfall_model::{Failure, without_scheme};
use std::collections::BTreeSet;

const URL: PlatformSetting = PlatformSetting::new(
    "url",
    "URL",
    "The server that has each repository at /<host>/<path>, such as http://mirror:5000 of \
           `landfall serve` [default: `files` of the site]",
);

pub(super) static PLATFORM: RenderPlatform = RenderPlatform {
    name: "git",
    about: "configuration of git that fetches the locked repositories from the mirror",
    details: "Include the file in the configuration of each machine or user: \
              `git config --global include.path FILE`. git then replaces the URL of a \
              locked repository, with or without a path after it, also for `git push`. \
              git-lfs replaces the URL of a Git LFS server that a repository names.",
    settings: &[URL],
    writes: OutputForm::Text {
        out: "Write the configuration to this file instead of stdout",
    },
    needs_registry: false,
    ..RenderPlatform::new(render)
};

fn render(request: &RenderRequest<'_>) -> Result<RenderedConfig, Failure> {
    if request.lock.git.is_empty() {
        let notes = vec!["the lock has no git repositories, so there is nothing to write".into()];
        return Ok(RenderedConfig::of_text(String::new(), notes));
    }
    let base = request.files_url("repositories")?;
    let mut urls: Vec<String> = request
        .lock
        .git
        .iter()
        .flat_map(LockedGitRepository::urls)
        .collect();
    // git-lfs uses `insteadOf` for the URL in `.lfsconfig` too
    let servers = request.lock.git.iter();
    let servers: BTreeSet<&str> = servers
        .flat_map(LockedGitRepository::other_lfs_servers)
        .collect();
    urls.extend(servers.into_iter().map(str::to_owned));
    let mut text = header("landfall render git");
    for url in &urls {
        let mirror = quoted(&format!("{base}/{}", without_scheme(url)));
        text += &format!("[url {mirror}]\n\tinsteadOf = {}\n", quoted(url));
    }
    // an `http.proxy` of the user or the machine applies to all hosts
    if request.has_bypass_for(base) {
        text += &format!("[http {}]\n\tproxy = \"\"\n", quoted(base));
    }
    text += &longer_names(&urls);
    Ok(RenderedConfig::of_text(text, Vec::new()))
}

/// Returns entries that keep the URLs of repositories that are not locked, such as `…/api2` if
/// `…/api` is locked. git compares only prefixes, and the longest prefix wins, so there is an entry
/// for each character that may continue a locked URL.
fn longer_names(urls: &[String]) -> String {
    let locked: BTreeSet<&str> = urls.iter().map(String::as_str).collect();
    let mut text = String::from(
        "# git compares prefixes; these entries keep the URLs of other repositories\n",
    );
    for url in urls {
        for next in ('0'..='9')
            .chain('A'..='Z')
            .chain('a'..='z')
            .chain("%+-._~".chars())
        {
            let longer = format!("{url}{next}");
            if !locked.contains(longer.as_str()) {
                let longer = quoted(&longer);
                text += &format!("[url {longer}] insteadOf = {longer}\n");
            }
        }
    }
    text
}

/// Quotes a text for git's configuration (git-config, "Syntax"). URLs have no line breaks.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_continue_a_locked_url_are_kept() {
        let urls = ["https://h/team/api", "https://h/team/api2"].map(str::to_owned);
        let text = longer_names(&urls);
        let is_kept =
            |url: &str| text.contains(&format!("[url \"{url}\"] insteadOf = \"{url}\"\n"));
        for url in [
            "https://h/team/apim",
            "https://h/team/api-",
            "https://h/team/api.",
        ] {
            assert!(is_kept(url), "{url}");
        }
        // a path below the repository, and another locked repository
        assert!(!is_kept("https://h/team/api/"));
        assert!(!is_kept("https://h/team/api2"));
    }
}
