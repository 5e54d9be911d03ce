//! Checks operators that slice, pad, resize or split their input.

use super::{MAX_ELEMENTS, MAX_SIZE, NodeValidator, Validation, ensure, refuse};
use octet_graph::Dim;
use octet_graph::prepare::{InferredValue, position};

/// Differences of numbers below this limit fit into 64 bits.
const MAX_DIFFERENCE: i64 = 1 << 62;

impl NodeValidator<'_> {
    pub(super) fn sizes(&self, operator: &str) -> Validation {
        match operator {
            "Pad" => self.pad(),
            "Slice" => self.slice(),
            "DepthToSpace" | "SpaceToDepth" => self.block_size(operator == "DepthToSpace"),
            "DFT" => self.dft(),
            "Resize" | "Upsample" => self.resize(),
            "Split" => self.split(),
            "RoiAlign" => {
                self.positive("output_height", Some(1))?;
                self.positive("output_width", Some(1)).map(|_| ())
            }
            "ConstantOfShape" => self.output_sizes(0),
            "Expand" | "Tile" => self.output_sizes(1),
            "Range" => self.range(),
            "TopK" => self.top_k(),
            _ => Ok(()),
        }
    }

    /// The axes that a list input refers to: the given ones, or all.
    fn axes_or_all(&self, slot: usize) -> Option<Vec<usize>> {
        let rank = self.shape(0)?.len();
        if self.node.input_at(slot).is_none() && self.node.ints("axes").is_none() {
            return Some((0..rank).collect());
        }
        let axes = self.list("axes", slot)?;
        axes.iter().map(|&axis| position(axis, rank)).collect()
    }

    fn axes_in_range(&self, slot: usize) -> Validation {
        let (Some(shape), Some(axes)) = (self.shape(0), self.list("axes", slot)) else {
            return Ok(());
        };
        let expected = format!("among the {} axes of its input", shape.len());
        ensure(self.axes_or_all(slot).is_some(), "axes", axes, expected)
    }

    fn pad(&self) -> Validation {
        self.axes_in_range(3)?;
        let mode = self.node.text("mode").unwrap_or("constant");
        let modes = ["constant", "reflect", "edge", "wrap"];
        ensure(
            modes.contains(&mode),
            "mode",
            mode,
            format!("one of {modes:?}"),
        )?;
        let Some(pads) = self.list("pads", 1) else {
            return Ok(());
        };
        let fits = |pad: &i64| (-MAX_SIZE..MAX_SIZE).contains(pad);
        ensure(
            pads.iter().all(fits),
            "pads",
            &pads,
            "numbers of at most 31 bits",
        )?;
        let Some(axes) = self.axes_or_all(3) else {
            return Ok(());
        };
        let expected = format!("two numbers for each of its {} axes", axes.len());
        ensure(pads.len() == 2 * axes.len(), "pads", &pads, expected)?;
        for (place, &axis) in axes.iter().enumerate() {
            let Some(size) = self.size(0, axis).filter(|&size| size < MAX_SIZE) else {
                continue;
            };
            let [before, after] = [pads[place], pads[place + axes.len()]];
            let along = format!("the {size} of axis {axis}");
            let remaining = size + before.min(0) + after.min(0);
            let expected = format!("such that they remove no more than {along}");
            ensure(remaining >= 0, "pads", [before, after], expected)?;
            let most = before.max(after);
            let (room, expected) = match mode {
                "reflect" => (
                    remaining - 1,
                    format!("less than {along} that they reflect"),
                ),
                "edge" | "wrap" if remaining == 0 => (0, format!("0, because the axis is empty")),
                _ => (MAX_SIZE, String::new()),
            };
            ensure(most <= 0 || most <= room, "pads", [before, after], expected)?;
        }
        Ok(())
    }

    fn slice(&self) -> Validation {
        self.axes_in_range(3)?;
        if let Some(axes) = self.axes_or_all(3) {
            let twice = (1..axes.len()).any(|at| axes[..at].contains(&axes[at]));
            ensure(!twice, "axes", &axes, "each another")?;
        }
        let steps = self.input(4).and_then(|steps| steps.all_integers());
        let steps = steps.unwrap_or_default();
        ensure(!steps.contains(&0), "steps", &steps, "no zeros")?;
        if let (Some(starts), Some(ends)) = (self.list("starts", 1), self.list("ends", 2)) {
            let expected = format!("as many numbers as its starts {starts:?}");
            ensure(starts.len() == ends.len(), "ends", &ends, expected)?;
        }
        Ok(())
    }

    /// Checks DepthToSpace and SpaceToDepth.
    fn block_size(&self, to_space: bool) -> Validation {
        let block = self.positive("blocksize", None)?;
        let (axes, divisor) = match to_space {
            true => (1..2, block.saturating_mul(block)),
            false => (2..4, block),
        };
        for axis in axes {
            if let Some(size) = self.size(0, axis) {
                let expected = format!("{divisor} divides the size {size} of axis {axis}");
                let whole = size % divisor == 0;
                ensure(whole, "blocksize", block, format!("such that {expected}"))?;
            }
        }
        Ok(())
    }

    fn resize(&self) -> Validation {
        // ONNX Runtime accepts an empty input only for an empty output; tract divides by its size.
        let shape = self.shape(0).unwrap_or_default();
        let empty = shape.iter().skip(2).any(|size| *size == Dim::Known(0));
        let expected = "without empty spatial axes";
        ensure(!empty, "the shape of its input", shape, expected)?;
        let slot = if self.node.input.len() <= 2 { 1 } else { 2 };
        let scales = match self.node.attribute("scales") {
            Some(attribute) => Some(attribute.floats.clone()),
            None => self.input(slot).and_then(|known| known.floats.clone()),
        };
        let scales = scales.unwrap_or_default();
        let none = self.input(slot).and_then(InferredValue::sizes) == Some(vec![0]);
        let given = !none || slot == 1 || self.node.input_at(3).is_some();
        ensure(given, "scales", &scales, "given, unless there are sizes")?;
        let sound = |scale: &f32| scale.is_finite() && *scale > 0.0 && *scale < MAX_SIZE as f32;
        let expected = "positive numbers of at most 31 bits";
        ensure(scales.iter().all(sound), "scales", &scales, expected)?;
        let sizes = self.input(3).and_then(|sizes| sizes.all_integers());
        let sizes = sizes.unwrap_or_default();
        let sound = |size: &i64| (1..MAX_SIZE).contains(size);
        ensure(sizes.iter().all(sound), "sizes", &sizes, expected)?;
        // A node has scales or sizes, never both.
        if let (false, Some(shape)) = (sizes.is_empty(), self.shape(0)) {
            let count = self.node.ints("axes").map_or(shape.len(), <[i64]>::len);
            let expected = format!("{count} numbers");
            ensure(sizes.len() == count, "sizes", &sizes, expected)?;
        }
        Ok(())
    }

    /// Checks DFT: tract transforms a whole axis only.
    fn dft(&self) -> Validation {
        let (Some(_), Some(shape)) = (self.node.input_at(1), self.shape(0)) else {
            return Ok(());
        };
        let axis = match self.node.int("axis") {
            Some(axis) => Some(axis),
            None if self.opset < 20 => Some(1),
            None if self.node.input_at(2).is_none() => Some(-2),
            None => self.list("axis", 2).and_then(|axis| axis.first().copied()),
        };
        let size = axis.and_then(|axis| self.size(0, position(axis, shape.len())?));
        let length = self.list("dft_length", 1);
        let whole = length.is_some() && length == size.map(|size| vec![size]);
        let expected =
            "a constant equal to the size of the transformed axis; other lengths are not supported";
        ensure(whole, "dft_length", length, expected)
    }

    fn range(&self) -> Validation {
        let number = |slot: usize| self.list("", slot)?.first().copied();
        let delta = number(2);
        ensure(delta != Some(0), "its delta", 0, "no zero")?;
        let (Some(start), Some(limit), Some(delta)) = (number(0), number(1), delta) else {
            return Ok(());
        };
        let count = (i128::from(limit) - i128::from(start)) / i128::from(delta);
        let expected = format!("at most {MAX_ELEMENTS} numbers");
        ensure(
            count <= MAX_ELEMENTS as i128
                && [start, limit, delta]
                    .iter()
                    .all(|n| (-MAX_DIFFERENCE..MAX_DIFFERENCE).contains(n)),
            "its way",
            format_args!("from {start} to {limit} by {delta}"),
            expected,
        )
    }

    fn top_k(&self) -> Validation {
        let given = match self.node.int("k") {
            Some(k) => Some(k),
            None => self.list("", 1).and_then(|k| k.first().copied()),
        };
        let Some(k) = given else { return Ok(()) };
        let axis = self.node.int("axis").unwrap_or(-1);
        let rank = self.shape(0).map_or(0, <[Dim]>::len);
        let size = position(axis, rank).and_then(|axis| self.size(0, axis));
        let most = size.unwrap_or(MAX_SIZE);
        let expected = format!("from 0 to {most}");
        ensure((0..=most).contains(&k), "its k", k, expected)
    }

    /// Checks an input that holds sizes.
    fn output_sizes(&self, slot: usize) -> Validation {
        let sizes = self.input(slot).and_then(InferredValue::all_integers);
        let sizes = sizes.unwrap_or_default();
        let sound = sizes.iter().all(|size| (0..MAX_SIZE).contains(size));
        ensure(
            sound,
            "its sizes",
            &sizes,
            "at least 0 and of at most 31 bits",
        )
    }

    fn split(&self) -> Validation {
        let Some(parts) = self.list("split", 1) else {
            return Ok(());
        };
        let sound = parts.iter().all(|part| (0..MAX_SIZE).contains(part));
        ensure(sound, "split", &parts, "sizes of at least 0")?;
        let outputs = self.node.output.len();
        let expected = format!("one size for each of its {outputs} outputs");
        ensure(parts.len() == outputs, "split", &parts, expected)?;
        let Some(shape) = self.shape(0) else {
            return Ok(());
        };
        let Some(axis) = position(self.node.int("axis").unwrap_or(0), shape.len()) else {
            return Ok(());
        };
        match &shape[axis] {
            Dim::Known(size) if parts.iter().sum::<i64>() != *size as i64 => refuse(
                "split",
                &parts,
                format!("sizes whose sum is the {size} of axis {axis}"),
            ),
            _ => Ok(()),
        }
    }
}
