//! The fixed parts of an OCI image layout (image-layout.md).

/// Name of the file that says that a folder is a layout.
pub const LAYOUT_FILE: &str = "oci-layout";
/// The content of `oci-layout`.
pub const OCI_LAYOUT: &[u8] = br#"{"imageLayoutVersion":"1.0.0"}"#;
/// Name of the index of a layout.
pub const INDEX_FILE: &str = "index.json";
