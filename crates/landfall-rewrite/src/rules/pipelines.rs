//! Rules for the images of CI pipelines: jobs of GitLab CI, GitHub Actions, Azure Pipelines,
//! Bitbucket and Google Cloud Build. Their images are also written as a single text, or as the
//! `name` of a mapping.

use crate::index::{has_certain_host, is_pinned};
use crate::inventory::Inventory;
use crate::occurrence::ReferenceRole;
use crate::walk::{ImageClaim, MappingContext, NodeContext};
use crate::yaml::{YamlNode, YamlScalar, position_of};

/// The keys beside the `name` of an image in GitLab CI and Bitbucket.
const IMAGE_OPTIONS: [&str; 5] = [
    "entrypoint",
    "pull_policy",
    "docker",
    "username",
    "password",
];

/// Keys of a pipeline, or of a job or step in it, that other mappings rarely have.
const JOB_KEYS: [&str; 4] = ["script", "before_script", "stages", "pipelines"];

/// The key of the services of a job.
const SERVICES: &str = "services";

/// Marks the images of jobs: `image` and `services` of GitLab CI, `container: a/b:1` of GitHub
/// Actions and Azure Pipelines, and `services: {NAME: a/b:1}` of the latter.
pub(super) fn mark_job_image(
    members: &MappingContext<'_>,
    value: &YamlNode<'_>,
    child: &mut NodeContext<'_>,
) {
    let has = |key: &'static str| members.value(key).is_some();
    let is_azure_job = || has("job") || has("deployment") || (has("steps") && has("pool"));
    match (child.key, value) {
        (Some("image"), YamlNode::Scalar(_)) if has_job_key(members) => {
            child.role = ReferenceRole::Container;
        }
        // passed on to the `name` of the image, and to the items of the list
        (Some("image"), YamlNode::Mapping(_)) => child.container |= is_job(members),
        // in a step of Bitbucket, the items are names of definitions
        (Some(SERVICES), YamlNode::Sequence(_)) if members.around.key != Some("step") => {
            // a job may get its script from another one, and a hidden job is a template of GitLab
            let is_hidden = members.around.key.is_some_and(|key| key.starts_with('.'));
            child.container = is_job(members) || has("extends") || is_hidden;
        }
        (Some("name"), YamlNode::Scalar(name)) => mark_image(child, role_of_name(members, name)),
        (Some("container"), YamlNode::Scalar(image)) => {
            if has("runs-on") {
                mark_image(child, Some(ReferenceRole::Container));
            } else if has_pin(image) && is_azure_job() {
                // without a tag, it is the name of a resource of the pipeline
                mark_image(child, Some(ReferenceRole::Image));
            }
        }
        // passed on to the values of the mapping
        (Some(SERVICES), YamlNode::Mapping(_)) if is_azure_job() => child.read_as = Some(SERVICES),
        (Some(_), YamlNode::Scalar(image))
            if members.around.read_as == Some(SERVICES) && has_pin(image) =>
        {
            mark_image(child, Some(ReferenceRole::Image));
        }
        _ => {}
    }
}

/// Gives a value the role of an image, if it has one.
fn mark_image(child: &mut NodeContext<'_>, role: Option<ReferenceRole>) {
    if let Some(role) = role {
        child.role = role;
        child.read_as = Some("image");
    }
}

/// The role of the `name` in a mapping, if it is an image.
fn role_of_name(members: &MappingContext<'_>, name: &YamlScalar<'_>) -> Option<ReferenceRole> {
    let around = &members.around;
    let has_only = |keys: &[&str]| {
        let is_known = |key: &YamlNode<'_>| keys.iter().any(|name| key.is_text(name));
        let mut others = members.entries.iter().map(|entry| &entry.key);
        // a mapping with more entries has other keys, or the same one twice
        members.entries.len() <= keys.len() + 1
            && others.all(|key| key.is_text("name") || is_known(key))
    };
    match around.key {
        Some("image") if around.container => Some(ReferenceRole::Container),
        Some("image") if has_only(&IMAGE_OPTIONS) && members.entries.len() > 1 => {
            Some(ReferenceRole::Container)
        }
        // alone, a name without a tag need not be that of an image
        Some("image") if has_only(&[]) && has_pin(name) => Some(ReferenceRole::Image),
        // a service; with an `image`, `name` is its own name
        None if is_service(around) && members.value("image").is_none() => {
            Some(ReferenceRole::Container)
        }
        None if is_cloud_build_step(members, name) => Some(ReferenceRole::Container),
        _ => None,
    }
}

/// Whether a mapping is a step of Google Cloud Build, whose `name` is its image. The steps of other
/// pipelines have names of their own.
fn is_cloud_build_step(members: &MappingContext<'_>, name: &YamlScalar<'_>) -> bool {
    let has = |key: &'static str| members.value(key).is_some();
    let text = name.value.trim();
    // the image of a step of Tekton with a name and arguments may be that of the step template
    let is_path = text.contains(['/', ':']) && has("args");
    members.around.above == Some("steps")
        && !text.contains(char::is_whitespace)
        && (has_certain_host(text) || is_path || has("entrypoint"))
        && !(has("image") || has("uses") || has("run"))
}

/// Whether a mapping is one of the services of a job, which `mark_service` has marked.
fn is_service(around: &NodeContext<'_>) -> bool {
    around.above == Some(SERVICES) && around.read_as.is_some()
}

/// Marks the services of a job of GitLab CI, each of which is an image or a mapping with its
/// `name`.
pub(super) fn mark_service(
    list: &NodeContext<'_>,
    _previous: Option<&YamlNode<'_>>,
    child: &mut NodeContext<'_>,
) {
    if list.key == Some(SERVICES) && list.container {
        mark_image(child, Some(ReferenceRole::Container));
    }
}

/// Keys of steps and actions whose values name an image by a scheme: GitHub Actions and Bitbucket.
const STEP_KEYS: [&str; 3] = ["uses", "image", "pipe"];

/// Claims the image of a step: `uses: docker://a/b`. Without a tag, it means `latest`.
pub(super) fn claim_step_image<'t>(
    text: &'t str,
    around: &NodeContext<'_>,
    _inventory: &Inventory<'_>,
) -> Option<ImageClaim<'t>> {
    let is_step = around.key.is_some_and(|key| STEP_KEYS.contains(&key));
    (is_step && text.starts_with("docker://")).then(|| ImageClaim::of_container(text))
}

/// Whether a mapping is a job, has the defaults of all jobs, or has an image and services that jobs
/// inherit.
fn is_job(members: &MappingContext<'_>) -> bool {
    let has_image = || match members.value("image") {
        Some(YamlNode::Scalar(_)) => true,
        Some(YamlNode::Mapping(image)) => position_of(&image.entries, "name").is_some(),
        _ => false,
    };
    let has_services = || matches!(members.value(SERVICES), Some(YamlNode::Sequence(_)));
    members.around.key == Some("default") || has_job_key(members) || (has_services() && has_image())
}

fn has_job_key(members: &MappingContext<'_>) -> bool {
    JOB_KEYS.into_iter().any(|key| members.value(key).is_some())
}

fn has_pin(scalar: &YamlScalar<'_>) -> bool {
    scalar.text().is_some_and(|text| is_pinned(text.trim()))
}

#[cfg(test)]
mod tests {
    use crate::TextSyntax;
    use crate::audit::{Inventory, audit};
    use crate::tests::{becomes, run_as};
    use landfall_item::lockfile::Lock;
    use std::path::Path;

    /// Without a tag, the image of a job is that of `latest`.
    #[test]
    fn the_images_of_jobs_are_those_of_containers() {
        for (before, after) in [
            // GitLab CI
            (
                "j: {script: [x], image: {name: IMAGE}, services: [IMAGE, {name: IMAGE, alias: n}]}",
                3,
            ),
            ("default: {image: {name: IMAGE}, services: [IMAGE]}", 2),
            ("j: {extends: .j, services: [IMAGE, {name: IMAGE}]}", 2),
            (".j: {services: [IMAGE]}", 1),
            ("j: {image: {name: IMAGE, entrypoint: ['']}}", 1),
            (".j: {image: {name: IMAGE}, services: [IMAGE]}", 2),
            ("stages: [a]\nimage: {name: IMAGE}\nservices: [IMAGE]\n", 2),
            // GitHub Actions
            ("jobs: {a: {runs-on: x, container: IMAGE}}", 1),
            ("jobs: {a: {steps: [{uses: 'docker://IMAGE'}]}}", 1),
            ("runs: {using: docker, image: 'docker://IMAGE'}", 1),
            // Drone, Woodpecker, CircleCI, Tekton, Bitbucket
            ("services: [{name: nginx, image: IMAGE}]", 1),
            ("steps: {nginx: {image: IMAGE}}", 1),
            ("jobs: {a: {docker: [{image: IMAGE}]}}", 1),
            // Google Cloud Build
            ("steps: [{name: IMAGE, entrypoint: x}]", 1),
            ("spec: {stepTemplate: {image: IMAGE}}", 1),
            (
                "step: {script: [x], image: {name: IMAGE, username: u}, services: [nginx]}",
                1,
            ),
        ] {
            let count = before.matches("IMAGE").count();
            assert_eq!(count, after, "{before}");
            becomes(
                &before.replace("IMAGE", "nginx"),
                &before.replace("IMAGE", "r:5/p/library/nginx"),
            );
            let lock = Lock::parse("l", "version: 1\n").unwrap();
            let inventory = Inventory::new(&lock, None, None, "2026-01-01");
            let text = before.replace("IMAGE", "example");
            let found = audit(Path::new("f.yaml"), &text, &inventory);
            let missing = found.iter().filter(|one| one.coverage.is_missing());
            assert_eq!(missing.count(), count, "{found:?}");
        }
        // Azure Pipelines: a name without a tag may be that of a resource
        becomes(
            "jobs: [{job: a, container: 'nginx:1.27'}, {job: b, container: nginx}]",
            "jobs: [{job: a, container: 'r:5/p/library/nginx:1.27'}, {job: b, container: nginx}]",
        );
        let audited = |text: &str| {
            let lock = Lock::parse("l", "version: 1\n").unwrap();
            let inventory = Inventory::new(&lock, None, None, "2026-01-01");
            audit(Path::new("f.yaml"), text, &inventory)
        };
        for job in ["job: a", "deployment: a", "pool: x, steps: []"] {
            let text = format!("jobs: [{{{job}, services: {{n: 'a:1', b: c}}, container: d:1}}]");
            let found = audited(&text);
            let found: Vec<&str> = found.iter().map(|one| &*one.reference).collect();
            assert_eq!(found, ["a:1", "d:1"], "{text}");
        }
        assert_eq!(audited("services: {n: 'a:1'}"), []);
        let steps = "steps: [{name: gcr.io/x/y}, {name: a/b, args: [z]}, {name: a/b, uses: z}]";
        let found = audited(steps);
        let found: Vec<&str> = found.iter().map(|one| &*one.reference).collect();
        assert_eq!(found, ["gcr.io/x/y", "a/b"]);
        for text in [
            "services: [nginx, {name: nginx}]",
            "step: {script: [x], services: [nginx]}",
            "image: {name: nginx}",
            "steps: [{name: nginx, run: x}, {name: nginx, args: [x]}, {name: nginx}]",
            "uses: nginx",
        ] {
            becomes(text, text);
        }
    }

    #[test]
    fn a_scheme_of_images_means_latest_in_texts_too() {
        assert_eq!(
            run_as("skopeo copy docker://nginx oci://nginx\n", TextSyntax::Text),
            (
                "skopeo copy docker://r:5/p/library/nginx oci://nginx\n".into(),
                vec![]
            )
        );
        let left = run_as("x: docker-image://quay.io/a/b\n", TextSyntax::Text).1;
        assert!(left.len() == 1 && left[0].contains("latest"), "{left:?}");
    }
}
