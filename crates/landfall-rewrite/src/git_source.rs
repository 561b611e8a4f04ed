//! Sources that name a git repository, a folder in it and a version, as Kustomize and Terraform
//! write them: `https://host/org/repo.git//folder?ref=v1`.

use std::ops::Range;

/// A text that names a git repository, and possibly a folder in it and a version.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct GitSource<'t> {
    /// The bytes of the text that name the repository.
    pub(crate) repository: Range<usize>,
    /// The http or https URL of the repository.
    pub(crate) url: String,
    /// The branch, tag or commit.
    pub(crate) revision: Option<&'t str>,
    /// How the text names the repository.
    pub(crate) form: GitSourceForm,
}

/// How a text names a repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GitSourceForm {
    /// By an http or https URL.
    Url,
    /// `github.com/…`, without a scheme.
    GitHub,
    /// By an address for SSH.
    Ssh,
}

/// A use of a git repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GitUse {
    /// The offset of its first byte in the text.
    pub(crate) at: usize,
    /// The keys that lead to the value.
    pub(crate) path: Vec<String>,
    /// The source or URL, as written.
    pub(crate) written: String,
    /// The http or https URL of the repository.
    pub(crate) url: String,
    /// The branch, tag, commit or range of versions.
    pub(crate) revision: Option<String>,
    /// Whether the revision is a range of versions, even if it looks like a branch or tag.
    pub(crate) is_range: bool,
    pub(crate) form: GitSourceForm,
    /// Whether the locked URL may also be this URL with `.git` added: a rewrite changes such
    /// sources, too.
    pub(crate) is_source: bool,
}

/// The address in a source.
struct SourceAddress<'t> {
    form: GitSourceForm,
    scheme: &'t str,
    host: &'t str,
    /// The part after the host and its slash or colon.
    path: &'t str,
    /// The offset of the path in the text.
    path_start: usize,
}

/// The scheme with which Terraform and Kustomize mark sources in git.
const FORCED: &str = "git::";

const GITHUB: &str = "github.com";

impl GitUse {
    /// The use of a source of Kustomize or Terraform.
    pub(crate) fn of_source(
        at: usize,
        path: Vec<String>,
        written: &str,
        source: &GitSource<'_>,
    ) -> GitUse {
        GitUse {
            at,
            path,
            written: written.to_owned(),
            url: source.url.clone(),
            revision: source.revision.map(str::to_owned),
            is_range: false,
            form: source.form,
            is_source: true,
        }
    }
}

impl<'t> GitSource<'t> {
    /// Reads a source. `None` unless the form of `text` shows that it names a repository: most URLs
    /// are links or files.
    pub(crate) fn parse(text: &'t str) -> Option<GitSource<'t>> {
        let is_forced = text.starts_with(FORCED);
        let start = if is_forced { FORCED.len() } else { 0 };
        let (address, query) = text[start..]
            .split_once('?')
            .unwrap_or((&text[start..], ""));
        let revision = query
            .split('&')
            .find_map(|part| part.strip_prefix("ref=").or(part.strip_prefix("version=")))
            .filter(|revision| !revision.is_empty());
        let address = SourceAddress::parse(address)?;
        let length = address.repository_length();
        let rest = &address.path[length..];
        let is_short = rest.is_empty() && address.path.matches('/').count() == 1;
        let is_repository = is_forced
            || address.form != GitSourceForm::Url
            || address.path[..length].ends_with(".git")
            || rest.starts_with("//")
            || revision.is_some()
            || (address.host == GITHUB && is_short);
        is_repository.then(|| address.source(start, length, revision))
    }

    /// Reads the address of a repository without a folder or version: a URL, or an address for SSH.
    pub(crate) fn of_repository(text: &'t str) -> Option<GitSource<'t>> {
        let address = SourceAddress::parse(text)?;
        Some(address.source(0, address.path.trim_end_matches('/').len(), None))
    }
}

impl<'t> SourceAddress<'t> {
    fn parse(text: &'t str) -> Option<SourceAddress<'t>> {
        if text.contains(|c: char| c.is_whitespace() || c.is_control() || "{}$<>\"'".contains(c)) {
            return None;
        }
        let (form, scheme, rest) = match text.split_once("://") {
            Some((scheme @ ("http" | "https"), rest)) => (GitSourceForm::Url, scheme, rest),
            Some(("ssh" | "git+ssh", rest)) => (GitSourceForm::Ssh, "https", rest),
            Some(_) => return None,
            None if text.starts_with("git@") => (GitSourceForm::Ssh, "https", text),
            None if text.starts_with("github.com/") => (GitSourceForm::GitHub, "https", text),
            None => return None,
        };
        let is_short_ssh = !text.contains("://") && form == GitSourceForm::Ssh;
        let separator = if is_short_ssh { ':' } else { '/' };
        let (authority, path) = rest.split_once(separator)?;
        let host = authority
            .rsplit_once('@')
            .map_or(authority, |(_, host)| host);
        // the port of SSH is not that of a web server
        let host = match form {
            GitSourceForm::Ssh => host.split(':').next().unwrap_or(host),
            _ => host,
        };
        (!host.is_empty() && !path.trim_matches('/').is_empty()).then_some(SourceAddress {
            form,
            scheme,
            host,
            path,
            path_start: text.len() - path.len(),
        })
    }

    /// The length of the part of the path that names the repository.
    fn repository_length(&self) -> usize {
        if let Some(at) = self.path.find("//") {
            return at;
        }
        let marks = self
            .path
            .match_indices(".git")
            .map(|(at, mark)| at + mark.len());
        let mut ends =
            marks.filter(|end| matches!(self.path[*end..].chars().next(), None | Some('/')));
        if let Some(end) = ends.next() {
            return end;
        }
        let mut slashes = self.path.match_indices('/');
        match slashes.nth(1) {
            Some((second, _)) if self.host == GITHUB => second,
            _ => self.path.trim_end_matches('/').len(),
        }
    }

    /// The source with the first `length` bytes of the path as repository. `start` is the offset of
    /// the address in the text.
    fn source(&self, start: usize, length: usize, revision: Option<&'t str>) -> GitSource<'t> {
        let SourceAddress {
            form, scheme, host, ..
        } = self;
        GitSource {
            repository: start..start + self.path_start + length,
            url: format!("{scheme}://{host}/{}", &self.path[..length]),
            revision,
            form: *form,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_name_a_repository_and_a_version() {
        let cases = [
            (
                "https://h.example/team/a.git",
                "?ref=v1",
                "https://h.example/team/a.git",
                Some("v1"),
            ),
            (
                "git::https://h.example/a",
                "//sub/b?ref=v1&depth=1",
                "https://h.example/a",
                Some("v1"),
            ),
            (
                "git::http://h.example:80/a",
                "",
                "http://h.example:80/a",
                None,
            ),
            (
                "https://h.example/a.git",
                "/sub",
                "https://h.example/a.git",
                None,
            ),
            (
                "https://github.com/org/repo",
                "",
                "https://github.com/org/repo",
                None,
            ),
            (
                "https://github.com/org/repo",
                "/sub?ref=v2",
                "https://github.com/org/repo",
                Some("v2"),
            ),
            (
                "github.com/org/repo",
                "//sub?version=v2",
                "https://github.com/org/repo",
                Some("v2"),
            ),
            (
                "git@h.example:org/repo.git",
                "//sub",
                "https://h.example/org/repo.git",
                None,
            ),
            (
                "ssh://git@h.example:22/org/repo.git",
                "",
                "https://h.example/org/repo.git",
                None,
            ),
        ];
        for (repository, rest, url, revision) in cases {
            let text = format!("{repository}{rest}");
            let source = GitSource::parse(&text).expect(&text);
            assert_eq!((&*source.url, source.revision), (url, revision), "{text}");
            let written = &text[source.repository];
            assert_eq!(written, repository.trim_start_matches("git::"), "{text}");
        }
    }

    #[test]
    fn links_and_files_are_not_sources() {
        for text in [
            "https://raw.githubusercontent.com/org/repo/main/deploy.yaml",
            "https://github.com/org/repo/releases/download/v1/all.yaml",
            "./modules/vpc",
            "../base",
            "hashicorp/consul/aws",
            "oci://h.example/a//b",
            "git::https://{{ host }}/a",
            "https://h.example//",
            "github.com/",
        ] {
            assert_eq!(GitSource::parse(text), None, "{text}");
        }
    }
}
