//! Element types of buffers.

/// Element type of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BufferElement {
    Byte,
    Float,
    Accumulator,
}

impl BufferElement {
    pub(crate) const ALL: [BufferElement; 3] = [
        BufferElement::Byte,
        BufferElement::Float,
        BufferElement::Accumulator,
    ];
}
