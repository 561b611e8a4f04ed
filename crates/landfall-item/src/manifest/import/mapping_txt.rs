//! `oc-mirror-mapping`: lines `SOURCE=DESTINATION`, with or without `docker://`.

use super::imported::{ImportSource, ImportedItems};
use crate::ManifestResult;

pub(super) fn read(source: &ImportSource, imported: &mut ImportedItems) -> ManifestResult<()> {
    let mut lines = 0;
    for (index, line) in source.text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let at = format!("line {}", index + 1);
        let Some((from, _)) = line.split_once('=') else {
            return Err(source.format_error(
                "a mapping.txt",
                &format!("{at} has no `=`; each line is SOURCE=DESTINATION"),
            ));
        };
        lines += 1;
        let (scheme, from) = from.split_once("://").unwrap_or(("docker", from));
        match scheme {
            "docker" => imported.image(source.at(&at), from, &[]),
            _ => imported.not_imported(
                source.at(&at),
                from,
                "it is on the disk of oc-mirror, not in a registry",
            ),
        }
    }
    if lines > 0 {
        imported.note(
            source.at(""),
            &format!(
                "{lines} destinations are not imported; set them in `registry.paths` of the site"
            ),
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::testing::import;

    #[test]
    fn sources_are_imported() {
        let digest = format!("sha256:{}", "0".repeat(64));
        let text = format!(
            "docker://quay.io/a/b@{digest}=docker://m.test:5000/a/b:v1\nregistry.redhat.io/c/d:v2=m.test:5000/c/d:v2\n\
             oci://catalog/e=docker://m.test:5000/e\n"
        );
        let imported = import("oc-mirror-mapping", &text).unwrap();
        assert_eq!(
            imported.images(),
            [
                format!("quay.io/a/b@{digest}"),
                "registry.redhat.io/c/d:v2".into()
            ]
        );
        assert!(
            imported.not_imported.len() == 1 && imported.notes[0].contains("3 destinations"),
            "{imported:?}"
        );
        assert!(
            import("oc-mirror-mapping", "quay.io/a:1\n")
                .unwrap_err()
                .contains("line 1 has no `=`")
        );
    }
}
