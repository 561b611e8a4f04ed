//! `trivy`: a trivy.yaml with the registry as the source of databases and scanned images, with
//! certificates and account.

use crate::node_registry::{
    NodeRegistry, auth_file_of_repositories, host_paths, join_path, usual_path,
};
use crate::platform::{RenderPlatform, RenderRequest, RenderedConfig, RenderedOutput};
use crate::rendered_file::{RenderedFile, quoted_string};
use landfall_model::Failure;

/// The folder of the files on a machine.
const FOLDER: &str = "etc/trivy";

/// A database of Trivy.
struct TrivyDatabase {
    /// The last part of the repository.
    name: &'static str,
    /// The section of trivy.yaml, and its key for the repository.
    key: (&'static str, &'static str),
    /// The section and the key that disable its download.
    skip: (&'static str, &'static str),
}

const DATABASES: [TrivyDatabase; 3] = [
    TrivyDatabase {
        name: "trivy-db",
        key: ("db", "repository"),
        skip: ("db", "skip-update"),
    },
    TrivyDatabase {
        name: "trivy-java-db",
        key: ("db", "java-repository"),
        skip: ("db", "java-skip-update"),
    },
    TrivyDatabase {
        name: "trivy-checks",
        key: ("misconfiguration", "checks-bundle-repository"),
        skip: ("rego", "skip-check-update"),
    },
];

/// The sections of trivy.yaml, in the order of the file.
const SECTIONS: [&str; 3] = ["db", "misconfiguration", "rego"];

pub(super) static PLATFORM: RenderPlatform = RenderPlatform {
    name: "trivy",
    about: "Trivy: trivy.yaml with the databases and images at the registry, certificates, \
            account",
    details: "Paths in the output folder are the paths on a machine. Databases that are \
              not locked are not updated by Trivy.",
    ..RenderPlatform::new(render)
};

fn render(request: &RenderRequest<'_>) -> Result<RenderedConfig, Failure> {
    let registry = request.registry()?;
    let mut notes: Vec<String> = registry.client_note("Trivy").into_iter().collect();
    let mut files = vec![RenderedFile::new(
        format!("{FOLDER}/trivy.yaml"),
        trivy_yaml(request, &registry, &mut notes),
    )];
    let ca = registry.ca.iter();
    files.extend(ca.map(|ca| RenderedFile::new(format!("{FOLDER}/ca.crt"), ca.clone())));
    if let Some(text) = auth_file_of_repositories(request, &registry)? {
        let path = format!("{FOLDER}/config.json");
        files.push(RenderedFile::without_comments(path, text).secret(true));
        notes.push(format!(
            "set DOCKER_CONFIG=/{FOLDER}, so that Trivy reads the account of the registry"
        ));
    }
    let failure = (notes
        .iter()
        .filter(|note| note.starts_with(NOT_LOCKED))
        .count()
        == DATABASES.len())
    .then_some("the lock has none of Trivy's databases");
    Ok(RenderedConfig {
        output: RenderedOutput::Files(files),
        notes,
        failure,
        ..RenderedConfig::default()
    })
}

const NOT_LOCKED: &str = "not locked: ";

fn trivy_yaml(
    request: &RenderRequest<'_>,
    registry: &NodeRegistry<'_>,
    notes: &mut Vec<String>,
) -> String {
    let mut text = String::new();
    if registry.is_insecure() {
        // `insecure` also allows plain http
        text += "insecure: true\n";
    }
    if registry.ca.is_some() {
        text += &format!("cacert: /{FOLDER}/ca.crt\n");
    }
    let mut lines: Vec<(&str, String)> = Vec::new();
    for database in &DATABASES {
        match location(request, database.name) {
            Some(location) => {
                let (section, key) = database.key;
                lines.push((section, format!("  {key}: {}\n", quoted_string(&location))));
            }
            None => {
                let (section, key) = database.skip;
                lines.push((section, format!("  {key}: true\n")));
                notes.push(format!(
                    "{NOT_LOCKED}{}; Trivy does not update it",
                    database.name
                ));
            }
        }
    }
    for section in SECTIONS {
        let of_section = lines.iter().filter(|(name, _)| *name == section);
        let body: String = of_section.map(|(_, line)| line.as_str()).collect();
        if !body.is_empty() {
            text += &format!("{section}:\n{body}");
        }
    }
    text += &mirrors(request);
    // disables requests that Trivy would otherwise send to the internet
    text += "scan:\n  disable-telemetry: true\n  offline: true\n  skip-version-check: true\n";
    text
}

/// Returns the location of the database `name` at the registry, with its tag; `None` if it is not
/// locked.
fn location(request: &RenderRequest<'_>, name: &str) -> Option<String> {
    let image = request
        .images()
        .find(|image| image.tag.is_some() && image.repository.rsplit('/').next() == Some(name))?;
    let destination = request.mapping.destinations(image).into_iter().next()?;
    let registry = &request.mapping.target().registry;
    let tag = image.tag.as_deref().unwrap_or_default();
    Some(format!("{registry}/{}:{tag}", destination.repository))
}

/// Returns the mirrors of the hosts in the lock, for images that are scanned by their upstream
/// names. A repository with its own path has no mirror of its own: Trivy maps only whole hosts. If
/// the mirror of the registry's own host lacks a name, Trivy tries the name as it is written.
fn mirrors(request: &RenderRequest<'_>) -> String {
    let registry = &request.mapping.target().registry;
    let mut text = String::new();
    for host in host_paths(request).into_keys() {
        let mirror = join_path(registry, &usual_path(request, &host));
        if mirror == host {
            continue;
        }
        let host = match host.as_str() {
            // Trivy's name for Docker Hub
            "docker.io" => "index.docker.io",
            host => host,
        };
        let [host, mirror] = [host, &mirror].map(quoted_string);
        text += &format!("    {host}:\n    - {mirror}\n");
    }
    if text.is_empty() {
        return text;
    }
    format!("registry:\n  mirrors:\n{text}")
}
