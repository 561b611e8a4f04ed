//! `landfall render`: configuration that makes a platform use the registry. The platforms are those
//! in `PLATFORMS` of `landfall-render`.

mod arguments;
mod command;
mod merge_diff;

pub(crate) use arguments::RenderCommand;
