//! A fast reader of plain YAML: block mappings and lists, scalars of every style, and flow
//! collections. Nearly all manifests are such YAML. Its result is that of `granit`, to the byte. It
//! returns `None` for all other YAML: tags, anchors, explicit keys, directives, tabs between
//! tokens. Then `granit`, the other reader, reads the document.

mod block;
mod block_scalar;
mod flow;
mod plain;
mod quoted;
mod read;
mod reader;

pub(super) use read::read;
