//! States that can't occur.

/// A state that can't occur: a bug in Octet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("internal error, {}: please report this line and the model's name", self.state())]
pub enum BrokenInvariant {
    /// A model was prepared, and the session has no prepared model.
    NotPrepared,
    /// A message that was just written can't be read.
    Unreadable,
    /// Gram matrices have another owner after all samples have ended.
    SharedGrams,
}

impl BrokenInvariant {
    fn state(self) -> &'static str {
        match self {
            BrokenInvariant::NotPrepared => "the session has lost its prepared model",
            BrokenInvariant::Unreadable => "a message just written can't be read",
            BrokenInvariant::SharedGrams => "Gram matrices are in use after their pass",
        }
    }
}
