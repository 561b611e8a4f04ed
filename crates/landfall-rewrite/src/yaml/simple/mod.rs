//! A fast reader of simple YAML: block mappings and lists, scalars of every style, and flow
//! collections. Nearly all manifests are such YAML. The reader's result equals that of the general
//! parser, to the byte; `yaml/tests.rs` compares the two. The reader returns `None` for all other
//! YAML (tags, anchors, explicit keys, directives, tabs between tokens), which the general parser
//! then reads.
//!
//! There is one difference: as in `serde_yaml`, a quoted scalar may continue in the column of its
//! key. The general parser refuses such a document.
//!
//! Why a second reader: with it, a whole run is 1.8 times as fast. Processor time of `rewrite
//! --check` (listing, reading, rewriting and auditing all files) over public repositories, with
//! optimization:
//!
//! | repository | files | general parser alone | with this reader | ratio |
//! |---|---:|---:|---:|---:|
//! | argoproj/argo-cd | 2530 | 0.98 s | 0.41 s | 2.4 |
//! | kubermatic/kubermatic | 2886 | 1.41 s | 0.74 s | 1.9 |
//! | prometheus-community/helm-charts | 1002 | 0.62 s | 0.51 s | 1.2 |
//! | kubernetes-sigs/kustomize | 282 | 0.05 s | 0.03 s | 1.6 |
//!
//! In helm-charts, most files are templates, which are not valid YAML. If the general parser
//! becomes so fast that the ratio over all repositories (3.05 s to 1.68 s) falls below 1.5, remove
//! this module.

mod block;
mod plain;
mod reader;

pub(super) use self::reader::read;
