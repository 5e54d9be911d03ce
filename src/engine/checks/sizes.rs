//! Checks operators that slice, pad, resize or split their input.

use super::{Checked, Checking, LARGEST, MOST, ensure, refuse};
use crate::graph::Dim;
use crate::prepare::{Known, position};

/// Differences of numbers below this limit fit into 64 bits.
const FAR: i64 = 1 << 62;

impl Checked<'_> {
    pub(super) fn sizes(&self, operator: &str) -> Checking {
        match operator {
            "Pad" => self.pad(),
            "Slice" => self.slice(),
            "DepthToSpace" | "SpaceToDepth" => self.squares(operator == "DepthToSpace"),
            "DFT" => self.transformed(),
            "Resize" | "Upsample" => self.resize(),
            "Split" => self.split(),
            "RoiAlign" => {
                self.positive("output_height", Some(1))?;
                self.positive("output_width", Some(1)).map(|_| ())
            }
            "ConstantOfShape" => self.shape_said(0),
            "Expand" | "Tile" => self.shape_said(1),
            "Range" => self.range(),
            "TopK" => self.greatest(),
            _ => Ok(()),
        }
    }

    /// The axes that a list input refers to: the given ones, or all.
    fn spoken_of(&self, slot: usize) -> Option<Vec<usize>> {
        let rank = self.shape(0)?.len();
        if self.node.input_at(slot).is_none() && self.node.ints("axes").is_none() {
            return Some((0..rank).collect());
        }
        let axes = self.list("axes", slot)?;
        axes.iter().map(|&axis| position(axis, rank)).collect()
    }

    fn given_axes(&self, slot: usize) -> Checking {
        let (Some(shape), Some(axes)) = (self.shape(0), self.list("axes", slot)) else {
            return Ok(());
        };
        let wanted = format!("axes of the {} of its input", shape.len());
        ensure(self.spoken_of(slot).is_some(), "axes", axes, wanted)
    }

    fn pad(&self) -> Checking {
        self.given_axes(3)?;
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
        let fits = |pad: &i64| (-LARGEST..LARGEST).contains(pad);
        ensure(pads.iter().all(fits), "pads", &pads, "numbers of 31 bits")?;
        let Some(axes) = self.spoken_of(3) else {
            return Ok(());
        };
        let wanted = format!("two numbers for each of {} axes", axes.len());
        ensure(pads.len() == 2 * axes.len(), "pads", &pads, wanted)?;
        for (place, &axis) in axes.iter().enumerate() {
            let Some(size) = self.size(0, axis).filter(|&size| size < LARGEST) else {
                continue;
            };
            let [before, after] = [pads[place], pads[place + axes.len()]];
            let along = format!("the {size} of axis {axis}");
            let kept = size + before.min(0) + after.min(0);
            let wanted = format!("to cut off no more than {along}");
            ensure(kept >= 0, "pads", [before, after], wanted)?;
            let most = before.max(after);
            let (room, wanted) = match mode {
                "reflect" => (kept - 1, format!("less than {along}, which they reflect")),
                "edge" | "wrap" if kept == 0 => (0, format!("0, for {along} have no values")),
                _ => (LARGEST, String::new()),
            };
            ensure(most <= 0 || most <= room, "pads", [before, after], wanted)?;
        }
        Ok(())
    }

    fn slice(&self) -> Checking {
        self.given_axes(3)?;
        if let Some(axes) = self.spoken_of(3) {
            let twice = (1..axes.len()).any(|at| axes[..at].contains(&axes[at]));
            ensure(!twice, "axes", &axes, "each another")?;
        }
        let steps = self.input(4).and_then(|steps| steps.all_integers());
        let steps = steps.unwrap_or_default();
        ensure(!steps.contains(&0), "steps", &steps, "no zeros")?;
        if let (Some(starts), Some(ends)) = (self.list("starts", 1), self.list("ends", 2)) {
            let wanted = format!("as many as its starts {starts:?}");
            ensure(starts.len() == ends.len(), "ends", &ends, wanted)?;
        }
        Ok(())
    }

    /// Checks DepthToSpace and SpaceToDepth.
    fn squares(&self, to_space: bool) -> Checking {
        let block = self.positive("blocksize", None)?;
        let (axes, divisor) = match to_space {
            true => (1..2, block.saturating_mul(block)),
            false => (2..4, block),
        };
        for axis in axes {
            if let Some(size) = self.size(0, axis) {
                let wanted = format!("{divisor} to divide the {size} of axis {axis}");
                let whole = size % divisor == 0;
                ensure(whole, "blocksize", block, format!("such as lets {wanted}"))?;
            }
        }
        Ok(())
    }

    fn resize(&self) -> Checking {
        // ONNX Runtime accepts an empty input only for an empty output; tract divides by its size.
        let shape = self.shape(0).unwrap_or_default();
        let empty = shape.iter().skip(2).any(|size| *size == Dim::Known(0));
        let wanted = "something to be brought to another size";
        ensure(!empty, "the shape of its input", shape, wanted)?;
        let slot = if self.node.input.len() <= 2 { 1 } else { 2 };
        let scales = match self.node.attribute("scales") {
            Some(attribute) => Some(attribute.floats.clone()),
            None => self.input(slot).and_then(|known| known.floats.clone()),
        };
        let scales = scales.unwrap_or_default();
        let none = self.input(slot).and_then(Known::sizes) == Some(vec![0]);
        let given = !none || slot == 1 || self.node.input_at(3).is_some();
        ensure(given, "scales", &scales, "given, or sizes in their place")?;
        let sound = |scale: &f32| scale.is_finite() && *scale > 0.0 && *scale < LARGEST as f32;
        let wanted = "positive numbers of at most 31 bits";
        ensure(scales.iter().all(sound), "scales", &scales, wanted)?;
        let sizes = self.input(3).and_then(|sizes| sizes.all_integers());
        let sizes = sizes.unwrap_or_default();
        let sound = |size: &i64| (1..LARGEST).contains(size);
        ensure(sizes.iter().all(sound), "sizes", &sizes, wanted)?;
        // A node has scales or sizes, never both.
        if let (false, Some(shape)) = (sizes.is_empty(), self.shape(0)) {
            let count = self.node.ints("axes").map_or(shape.len(), <[i64]>::len);
            let wanted = format!("{count} numbers");
            ensure(sizes.len() == count, "sizes", &sizes, wanted)?;
        }
        Ok(())
    }

    /// Checks DFT: tract transforms a whole axis only.
    fn transformed(&self) -> Checking {
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
        let wanted =
            "a constant, and all of the axis that is transformed: nothing else is run here";
        ensure(whole, "dft_length", length, wanted)
    }

    fn range(&self) -> Checking {
        let number = |slot: usize| self.list("", slot)?.first().copied();
        let delta = number(2);
        ensure(delta != Some(0), "its delta", 0, "no zero")?;
        let (Some(start), Some(limit), Some(delta)) = (number(0), number(1), delta) else {
            return Ok(());
        };
        let count = (i128::from(limit) - i128::from(start)) / i128::from(delta);
        let wanted = format!("over {MOST} numbers at most");
        ensure(
            count <= MOST as i128
                && [start, limit, delta]
                    .iter()
                    .all(|n| (-FAR..FAR).contains(n)),
            "its way",
            format_args!("from {start} to {limit} by {delta}"),
            wanted,
        )
    }

    fn greatest(&self) -> Checking {
        let given = match self.node.int("k") {
            Some(k) => Some(k),
            None => self.list("", 1).and_then(|k| k.first().copied()),
        };
        let Some(k) = given else { return Ok(()) };
        let axis = self.node.int("axis").unwrap_or(-1);
        let rank = self.shape(0).map_or(0, <[Dim]>::len);
        let size = position(axis, rank).and_then(|axis| self.size(0, axis));
        let most = size.unwrap_or(LARGEST);
        let wanted = format!("from 0 to {most}");
        ensure((0..=most).contains(&k), "its k", k, wanted)
    }

    /// Checks an input that holds sizes.
    fn shape_said(&self, slot: usize) -> Checking {
        let sizes = self.input(slot).and_then(Known::all_integers);
        let sizes = sizes.unwrap_or_default();
        let sound = sizes.iter().all(|size| (0..LARGEST).contains(size));
        ensure(
            sound,
            "the sizes it is given",
            &sizes,
            "at least 0 and in 31 bits",
        )
    }

    fn split(&self) -> Checking {
        let Some(parts) = self.list("split", 1) else {
            return Ok(());
        };
        let sound = parts.iter().all(|part| (0..LARGEST).contains(part));
        ensure(sound, "split", &parts, "sizes of at least 0")?;
        let outputs = self.node.output.len();
        let wanted = format!("one for each of its {outputs} outputs");
        ensure(parts.len() == outputs, "split", &parts, wanted)?;
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
                format!("parts of the {size} of axis {axis}"),
            ),
            _ => Ok(()),
        }
    }
}
