//! `landfall render`: configuration that makes a platform use the registry. The platforms are those
//! of the table in `landfall-render`.

mod arguments;
mod command;
mod merge_diff;

pub(crate) use arguments::RenderCommand;
