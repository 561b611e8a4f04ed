//! The integration tests: one crate, a module for each feature, and real peers under `peers`.
#![allow(clippy::unwrap_used, clippy::print_stdout, unreachable_pub, reason = "a test fails where it panics")]
#![allow(clippy::unnecessary_debug_formatting, reason = "a quoted path is YAML and TOML")]
#![allow(clippy::too_many_lines, reason = "a scenario is told from its start to its end")]

mod audit;
mod bundle;
mod deliver;
mod delta;
mod discover;
mod docs_paths;
mod egress;
mod exit_codes;
mod export_images;
mod faults;
mod faults_push;
mod file_signatures;
mod full_disk;
mod gc;
mod init;
mod inputs;
mod interrupt;
mod kills;
mod library;
mod lock;
mod manifest;
mod mistakes;
mod outputs;
mod packages;
mod peers;
mod platforms;
mod pull;
mod push;
mod referrers;
mod render;
mod render_charts;
mod render_shapes;
mod report;
mod rewrite;
mod serve;
mod serve_bundle;
mod serve_from;
mod serve_keeping;
mod serve_load;
mod serve_origin;
mod serve_page;
mod sign;
mod storms;
mod straight;
mod structure;
mod support;
mod terminal;
mod volumes;
mod wire;
