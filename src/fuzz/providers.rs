//! Targets for providers of OpenTofu and Terraform: lock files and packages.

use landfall_item::{read_provider_lock_file, read_provider_package, zip_package};

pub(super) fn package_seeds() -> Vec<Vec<u8>> {
    let text = b"text ".repeat(60);
    vec![
        zip_package(&[
            ("terraform-provider-a_v1.0.0", b"#!/bin/sh\n"),
            ("LICENSE", &text),
        ]),
        zip_package(&[]),
    ]
}

pub(super) fn package(bytes: &[u8]) {
    read_provider_package(bytes);
}

pub(super) fn lock_file_seeds() -> Vec<Vec<u8>> {
    let file = "# comment\nprovider \"h.test/a/b\" {\n  version     = \"1.0.0\"\n  \
                constraints = \"~> 1.0\"\n  hashes = [\n    \"h1:x=\",\n    \"zh:00\",\n  ]\n}\n";
    vec![file.into()]
}

pub(super) fn lock_file(bytes: &[u8]) {
    read_provider_lock_file(bytes);
}
