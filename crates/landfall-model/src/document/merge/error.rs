//! The errors of a merge.

/// An error from setting values in a text. Messages are about the text ("it").
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MergeError {
    /// The text is not YAML, or lacks the document to merge into.
    #[error("it is not YAML that values can be merged into: {0}")]
    NotYaml(String),
    /// The existing and the new value are of different kinds, or the existing one is an alias or
    /// inherited by a merge key.
    #[error("{path} is {there}, and would become {wanted}; change it by hand first")]
    Kind {
        /// The dotted path of the value.
        path: String,
        /// The kind or origin of the existing value.
        there: &'static str,
        /// The kind of the new value.
        wanted: &'static str,
    },
    /// The notation at this dotted path cannot be edited.
    #[error("the notation of {0} cannot be edited; write the values there by hand")]
    Form(String),
    /// Content would be removed: one line for each value, with its dotted path and the reason.
    #[error(
        "existing content would be removed:\n{}\n\
         help: change it by hand, or keep a copy and add --replace; with --replace --diff nothing \
         is written, and the change is shown",
        .0.join("\n")
    )]
    Lost(Vec<String>),
    /// An ordered list has the common items in another order than the new values need.
    #[error(
        "{path} has some of these items in another order, and the order matters; \
         put them there by hand:\n{items}"
    )]
    Order {
        /// The dotted path of the list.
        path: String,
        /// The items as a YAML list, without the secrets in URLs.
        items: String,
    },
    /// An existing command of an ordered list sets a value that cannot be read, or does more than
    /// set the value.
    #[error(
        "`{command}` in {path} sets a value that cannot be read, or does more than set the value; \
         merge it with this command by hand:\n{items}"
    )]
    Command {
        /// The dotted path of the list.
        path: String,
        /// The existing command without the value.
        command: String,
        /// The new command as a YAML list, without the secrets in URLs.
        items: String,
    },
}

impl MergeError {
    /// Replaces the path of the value by `map` of it.
    pub(super) fn map_path(self, map: impl Fn(&str) -> String) -> MergeError {
        match self {
            MergeError::Kind {
                path,
                there,
                wanted,
            } => MergeError::Kind {
                path: map(&path),
                there,
                wanted,
            },
            MergeError::Form(path) => MergeError::Form(map(&path)),
            MergeError::Order { path, items } => MergeError::Order {
                path: map(&path),
                items,
            },
            MergeError::Command {
                path,
                command,
                items,
            } => MergeError::Command {
                path: map(&path),
                command,
                items,
            },
            other @ (MergeError::NotYaml(_) | MergeError::Lost(_)) => other,
        }
    }
}
