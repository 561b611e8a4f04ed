//! A reader of the YAML that nearly all manifests are written in: block mappings and lists, scalars of every style,
//! and flow collections. It gives what `granit` gives, to the byte, and steps aside (`None`) at anything else: tags,
//! anchors, explicit keys, directives, tabs between tokens, text that is not YAML.

mod block;
mod block_scalar;
mod flow;
mod plain;
mod quoted;
mod read;
mod reader;

pub(super) use read::read;
