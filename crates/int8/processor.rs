//! Processors whose sums are emulated.

/// The processor whose integer products a program computes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Processor {
    /// This one. The sums are exact.
    #[default]
    Exact,
    /// x86 without VNNI, as ONNX Runtime uses it: the sum of two adjacent products of u8 and i8 is cut off
    /// at 16 bits.
    X86WithoutVnni,
}
