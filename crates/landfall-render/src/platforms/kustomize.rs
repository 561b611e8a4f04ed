//! `kustomize`: a component whose `images` replace every locked image by its name at the registry.

use crate::kubernetes_objects::document;
use crate::platform::{RenderPlatform, RenderRequest, RenderedConfig};
use crate::rendered_file::RenderedFile;
use landfall_model::{Consumer, Failure, ImageRef, alias_hosts};
use serde_json::{Value, json};
use std::collections::BTreeMap;

pub(super) static PLATFORM: RenderPlatform = RenderPlatform {
    name: "kustomize",
    about: "kustomize: a component that gives every locked image its name at the registry",
    details: "kustomize changes the images of containers, init containers and volumes, but \
              not those in arguments, variables and ephemeral containers. `landfall \
              rewrite` changes all of them.",
    consumer: Some(Consumer::Kustomize),
    ..RenderPlatform::new(render)
};

fn render(request: &RenderRequest<'_>) -> Result<RenderedConfig, Failure> {
    let destination = |image: &ImageRef| request.mapping.destinations(image).into_iter().next();
    let mut names: BTreeMap<String, String> = request
        .images()
        .filter_map(|image| Some((image.name(), destination(image)?.to_string())))
        .collect();
    // a locked name takes precedence over an equal spelling of another image's name
    for image in request.images() {
        let Some(destination) = destination(image) else {
            continue;
        };
        for name in spellings(image) {
            names.entry(name).or_insert_with(|| destination.to_string());
        }
    }
    let images: Value = names
        .into_iter()
        .map(|(name, new_name)| json!({"name": name, "newName": new_name}))
        .collect();
    let component = json!({
        "apiVersion": "kustomize.config.k8s.io/v1alpha1",
        "kind": "Component",
        "images": images,
    });
    let files = vec![RenderedFile::new(
        "kustomization.yaml",
        document(&component),
    )];
    let notes = vec![
        "add the folder to `components:` of a kustomization without `images`: its own `images` run \
         after components and would not find the old names, so their tags would be lost"
            .to_owned(),
        "kustomize does not change images in arguments, variables and ephemeral containers; \
         `landfall audit` lists them"
            .to_owned(),
    ];
    Ok(RenderedConfig::of_files(files, notes))
}

/// Returns the other names by which Kubernetes manifests may request `image`. Each needs an entry,
/// because kustomize compares names as text.
fn spellings(image: &ImageRef) -> Vec<String> {
    let others = alias_hosts(&image.registry).map(|host| format!("{host}/{}", image.repository));
    let mut names: Vec<String> = others.collect();
    if image.registry == "docker.io" {
        names.extend([
            image.repository.clone(),
            format!("index.docker.io/{}", image.repository),
        ]);
        if let Some(short) = image.repository.strip_prefix("library/") {
            names.extend([short.to_owned(), format!("docker.io/{short}")]);
        }
    }
    names
}
