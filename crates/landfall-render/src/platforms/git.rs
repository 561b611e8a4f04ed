//! `git`: configuration with which git fetches the locked repositories from the mirror.

use crate::error::RenderError;
use crate::platform::{OutputForm, PlatformSpec, RenderPlatform, RenderedConfig, RenderedOutput};
use crate::request::RenderRequest;
use crate::settings::PlatformSetting;

pub(super) struct GitPlatform;

const URL: PlatformSetting = PlatformSetting {
    key: "url",
    value_name: "URL",
    help: "The server that has each repository at /<host>/<path>, such as http://mirror:5000 of \
           `landfall serve` [default: `files` of the site]",
    default: None,
    choices: &[],
};

impl RenderPlatform for GitPlatform {
    fn spec(&self) -> &'static PlatformSpec {
        &PlatformSpec {
            name: "git",
            about: "configuration of git that fetches the locked repositories from the mirror",
            details: "Include the file in the configuration of each machine or user: \
                      `git config --global include.path FILE`. URLs that begin with that of \
                      a locked repository are changed, for `git push` as well.",
            inputs: &[],
            settings: &[URL],
            consumer: None,
            reads_lock: true,
            writes: OutputForm::Text {
                out: "Write the configuration to this file instead of stdout",
            },
        }
    }

    fn needs_registry(&self) -> bool {
        false
    }

    fn render(&self, request: &RenderRequest<'_>) -> Result<RenderedConfig, RenderError> {
        if request.lock.git.is_empty() {
            let notes =
                vec!["the lock has no git repositories, so there is nothing to write".into()];
            return Ok(RenderedConfig {
                output: RenderedOutput::Text(String::new()),
                notes,
                ..RenderedConfig::default()
            });
        }
        let url = request.settings.get(URL.key).or(request.file_server());
        let base = url.map(|url| url.trim_end_matches('/')).ok_or_else(|| {
            RenderError::Site(
                "machines have no URL for the repositories; add `files: http://HOST:PORT` \
                 to the site, or use --set url=http://HOST:PORT"
                    .into(),
            )
        })?;
        let mut text = String::new();
        for repository in &request.lock.git {
            for url in repository.urls() {
                let path = url.split_once("://").map_or(&*url, |(_, path)| path);
                let mirror = quoted(&format!("{base}/{path}"));
                text += &format!("[url {mirror}]\n\tinsteadOf = {}\n", quoted(&url));
            }
        }
        Ok(RenderedConfig {
            output: RenderedOutput::Text(text),
            ..RenderedConfig::default()
        })
    }
}

/// A text in the quotes of git's configuration (git-config, "Syntax"). URLs have no line breaks.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
