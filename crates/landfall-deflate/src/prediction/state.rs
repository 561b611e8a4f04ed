//! The state that all models have learned.

use super::blocks::BlockModel;
use super::lengths::HeaderModel;
use super::model::TokenModel;

/// Everything that is learned from the streams of a file.
#[derive(Debug, Clone)]
pub(super) struct PredictionModel {
    pub(super) tokens: TokenModel,
    pub(super) blocks: BlockModel,
    pub(super) headers: HeaderModel,
}

impl PredictionModel {
    pub(super) fn new() -> Self {
        Self {
            tokens: TokenModel::new(),
            blocks: BlockModel::new(),
            headers: HeaderModel::new(),
        }
    }
}
