//! The fixed parts of an OCI image layout (image-layout.md).

/// The file that marks a folder as an OCI image layout.
pub const LAYOUT_FILE: &str = "oci-layout";
/// The content of the file `oci-layout`.
pub const OCI_LAYOUT: &[u8] = br#"{"imageLayoutVersion":"1.0.0"}"#;
/// The file with the index of an OCI image layout.
pub const INDEX_FILE: &str = "index.json";
