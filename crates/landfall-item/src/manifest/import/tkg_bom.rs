//! `tkg-bom`: a bill of materials of TKG, as defined in vmware-tanzu/tanzu-framework,
//! `tkg/tkgconfigbom/bom_types.go`.

use super::imported::{ImportSource, ImportedItems};
use super::yaml::{documents, elements, list, map, mapping, scalar, text};
use crate::ManifestResult;
use serde_yaml::Mapping;

pub(super) fn read(source: &ImportSource, imported: &mut ImportedItems) -> ManifestResult<()> {
    for bom in documents(source)? {
        let (Some(components), Some(release)) = (map(&bom, "components"), map(&bom, "release"))
        else {
            let help = "it needs `release` and `components`; the tanzu CLI stores these files in \
                        ~/.config/tanzu/tkg/bom";
            return Err(source.format_error("a bill of materials", help));
        };
        let repository =
            map(&bom, "imageConfig").and_then(|config| text(config, "imageRepository"));
        let repository = repository.unwrap_or_default();
        if repository.contains("-stg.") {
            let release = text(release, "version").unwrap_or_default();
            imported.note(
                source.at("imageConfig.imageRepository"),
                &format!("{repository} of {release} is on a staging host"),
            );
        }
        for (component, versions) in components {
            let component = scalar(component).unwrap_or_default();
            for (index, version) in elements(versions).iter().enumerate() {
                let images = version.get("images").and_then(|images| images.as_mapping());
                for (key, image) in images.into_iter().flatten() {
                    let at = format!(
                        "components.{component}[{index}].images.{}",
                        scalar(key).unwrap_or_default()
                    );
                    let Some(image) = mapping(imported, source.at(&at), image) else {
                        continue;
                    };
                    let own = text(image, "imageRepository").unwrap_or_else(|| repository.clone());
                    let path = text(image, "imagePath").unwrap_or_default();
                    let tag = text(image, "tag").unwrap_or_default();
                    if own.is_empty() {
                        imported.not_imported(
                            source.at(&at),
                            &format!("{path}:{tag}"),
                            "the file has no imageRepository for it",
                        );
                        continue;
                    }
                    imported.image(source.at(&at), &format!("{own}/{path}:{tag}"), &[]);
                }
            }
        }
        for key in ["ova", "ami", "azure"] {
            let count = map(&bom, key).map_or_else(|| list(&bom, key).len(), Mapping::len);
            if count > 0 {
                imported.not_imported(
                    source.at(key),
                    &format!("{count} machine images"),
                    "they come from the provider",
                );
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::testing::import;

    const BOM: &str = "release: {version: v1.4.0}\nimageConfig: {imageRepository: projects.registry.vmware.com/tkg}\n\
                       components:\n  etcd:\n  - version: v3.4.13+vmware.15\n    images:\n      etcd: {imagePath: etcd, \
                       tag: v3.4.13_vmware.15}\n  own:\n  - images: {a: {imageRepository: h.test/x, imagePath: y, tag: v1}}\n\
                       ami:\n  eu-west-1: [{id: ami-1}]\n";

    #[test]
    fn every_image_of_every_component_is_imported() {
        let imported = import("tkg-bom", BOM).unwrap();
        assert_eq!(
            imported.images(),
            [
                "h.test/x/y:v1",
                "projects.registry.vmware.com/tkg/etcd:v3.4.13_vmware.15"
            ]
        );
        assert_eq!(
            imported.not_imported,
            ["f: ami: 1 machine images: they come from the provider"]
        );
        assert!(
            import("tkg-bom", "kind: Pod\n")
                .unwrap_err()
                .contains("this is not a bill of materials")
        );
    }
}
