//! The integration tests: one crate, a module for each feature, and real peers under `peers`.
#![allow(
    clippy::match_bool,
    reason = "a scripted server answers a request in two short arms"
)]
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    unreachable_pub,
    reason = "a panic fails the test"
)]
#![allow(
    clippy::unnecessary_debug_formatting,
    reason = "a path in quotes is valid in YAML and TOML"
)]
#![allow(clippy::too_many_lines, reason = "a scenario is one function")]
#![allow(
    clippy::disallowed_methods,
    reason = "tests parse their own YAML and landfall's output without limits"
)]

mod apt;
mod apt_choice;
mod apt_metadata;
mod attestations;
mod audit;
mod bundle;
mod carried_versions;
mod catalogue;
mod changed_names;
mod charts;
mod charts_found;
mod charts_verbs;
mod cost;
mod deliver;
mod delta;
mod diff;
mod discover;
mod docs_commands;
mod docs_paths;
mod docs_threats;
mod doctor_disconnected;
mod egress;
mod evidence;
mod exit_codes;
mod export_images;
mod faults;
mod faults_push;
mod faults_together;
mod file_signatures;
mod files_of_others;
mod foreign_text;
mod full_disk;
mod gc;
mod git;
mod gitops;
mod hostile_archives;
mod hostile_charts;
mod image_signatures;
mod imgpkg;
mod import;
mod init;
mod inputs;
mod interrupt;
mod kills;
mod large_files;
mod library;
mod local_content;
mod lock;
mod logging;
mod manifest;
mod misses;
mod mistakes;
mod new_user;
mod node_doctor;
mod nothing_moved;
mod object_store;
mod object_store_shared;
mod odd_charts;
mod odd_manifests;
mod outputs;
mod package_contents;
mod package_identity;
mod package_verbs;
mod packages;
mod patches;
mod peers;
mod platforms;
mod private_targets;
mod providers;
mod prune;
mod publish;
mod pull;
mod pull_bundle;
mod push;
mod referrers;
mod refusals;
mod remote_bundle;
mod render;
mod render_charts;
mod render_shapes;
mod report;
mod report_page;
mod rewrite;
mod sbom;
mod serve;
mod serve_bundle;
mod serve_from;
mod serve_hostile;
mod serve_keeping;
mod serve_load;
mod serve_origin;
mod serve_page;
mod shards;
mod sign;
mod site_rules;
mod status;
mod storms;
mod structure;
mod support;
mod terminal;
mod trimmed;
mod update;
mod volumes;
mod windows;
mod wire;
mod yum;
mod zoo;
