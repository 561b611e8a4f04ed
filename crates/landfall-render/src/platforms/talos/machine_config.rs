//! The documents of Talos' machine configuration, and how they differ by release.

use crate::kubernetes_objects::{document, map};
use crate::request::RenderRequest;
use crate::settings::PlatformSetting;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_yaml::{Mapping, Value};

pub(super) const VERSION: PlatformSetting = PlatformSetting {
    key: "version",
    value_name: "VERSION",
    help: "The release of Talos; use 1.11 for 1.9 and 1.10 too",
    default: Some("1.13"),
    choices: &["1.11", "1.12", "1.13", "1.14"],
};

/// The releases with different forms of the machine configuration.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TalosVersion {
    /// Everything is below `machine`, and certificates are base64.
    V1_11,
    /// Registries have documents of their own.
    V1_12,
    /// The environment has a document of its own.
    V1_13,
    /// The installation has a document of its own.
    V1_14,
}

impl TalosVersion {
    pub(super) fn of(request: &RenderRequest<'_>) -> TalosVersion {
        match request.settings.get(VERSION.key) {
            Some("1.11") => TalosVersion::V1_11,
            Some("1.12") => TalosVersion::V1_12,
            Some("1.14") => TalosVersion::V1_14,
            _ => TalosVersion::V1_13,
        }
    }

    /// Encodes a certificate or key as this release expects it.
    pub(super) fn pem(self, pem: &str) -> Value {
        if self < TalosVersion::V1_12 {
            STANDARD.encode(pem).into()
        } else {
            pem.into()
        }
    }
}

/// Joins the documents of a patch.
pub(super) fn patch(documents: &[Value]) -> String {
    let documents: Vec<String> = documents.iter().map(document).collect();
    documents.join("---\n")
}

/// Returns a document of the machine configuration with the entries of `fields`.
pub(super) fn talos_document(kind: &str, name: Option<&str>, fields: Value) -> Value {
    let mut document = Mapping::from_iter([
        ("apiVersion".into(), "v1alpha1".into()),
        ("kind".into(), kind.into()),
    ]);
    document.extend(name.map(|name| ("name".into(), name.into())));
    if let Value::Mapping(fields) = fields {
        document.extend(fields);
    }
    Value::Mapping(document)
}

/// Returns the document with the section `machine`, unless the section is null.
pub(super) fn machine(section: Value) -> Option<Value> {
    (!section.is_null()).then(|| map([("machine", section)]))
}
