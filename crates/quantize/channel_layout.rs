//! The channels of a constant, read without a copy.

use std::slice;

use octet_onnx::schema::TensorProto;
use octet_onnx::tensor::TensorError;

/// The memory layout of a tensor's channels.
pub(super) struct ChannelLayout {
    pub(super) count: usize,
    inner: usize,
}

/// Consecutive numbers of a tensor.
pub(super) enum ChannelPart<'a> {
    /// Numbers of one channel.
    Run(usize, &'a [f32]),
    /// One number for each consecutive channel, from this index on.
    Row(usize, &'a [f32]),
}

impl ChannelLayout {
    pub(super) fn new(shape: &[usize], axis: Option<usize>) -> ChannelLayout {
        match axis {
            Some(axis) => ChannelLayout {
                count: shape[axis],
                inner: shape[axis + 1..].iter().product(),
            },
            None => ChannelLayout {
                count: 1,
                inner: shape.iter().product(),
            },
        }
    }

    /// [`ChannelLayout::each_part`] with runs only.
    pub(super) fn each_run(
        &self,
        tensor: &TensorProto,
        mut each: impl FnMut(usize, &[f32]),
    ) -> Result<(), TensorError> {
        self.each_part(tensor, |part| match part {
            ChannelPart::Run(channel, run) => each(channel, run),
            ChannelPart::Row(first, row) => {
                let values = row.iter().enumerate();
                values.for_each(|(at, value)| each(first + at, slice::from_ref(value)));
            }
        })
    }

    /// Calls `each` for consecutive numbers in memory order. It reads the tensor block by block and
    /// never copies the whole.
    pub(super) fn each_part(
        &self,
        tensor: &TensorProto,
        mut each: impl FnMut(ChannelPart),
    ) -> Result<(), TensorError> {
        let mut first = 0;
        tensor.each_f32_block(|block| {
            self.each_part_of(first, block, &mut each);
            first += block.len();
        })
    }

    /// Calls `each` for consecutive numbers of a stretch that begins at the number `first`.
    pub(super) fn each_part_of(
        &self,
        first: usize,
        mut values: &[f32],
        mut each: impl FnMut(ChannelPart),
    ) {
        if self.inner == 0 || self.count == 0 {
            return;
        }
        if self.inner == 1 {
            let mut channel = first % self.count;
            while !values.is_empty() {
                let (row, rest) = values.split_at((self.count - channel).min(values.len()));
                each(ChannelPart::Row(channel, row));
                values = rest;
                channel = 0;
            }
            return;
        }
        let mut channel = first / self.inner % self.count;
        let mut left = self.inner - first % self.inner;
        while !values.is_empty() {
            let (run, rest) = values.split_at(left.min(values.len()));
            each(ChannelPart::Run(channel, run));
            values = rest;
            left = self.inner;
            channel = (channel + 1) % self.count;
        }
    }
}
