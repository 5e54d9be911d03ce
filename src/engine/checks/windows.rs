//! Checks convolutions and poolings: kernels, strides, dilations, pads, groups and output sizes.

use super::{Checked, Checking, LARGEST, MOST, ensure, refuse};
use crate::graph::{Around, Dim, Slide};
use crate::prepare::{Known, count};

/// Maximum number of taps; larger tables would exceed any image.
const TAPS: usize = 1 << 26;

impl Checked<'_> {
    pub(super) fn windows(&self, operator: &str) -> Checking {
        let weight = match operator {
            "Conv" | "ConvInteger" | "ConvTranspose" | "DeformConv" => Some(1),
            "QLinearConv" => Some(3),
            "MaxPool" | "AveragePool" | "LpPool" => None,
            _ => return Ok(()),
        };
        let convolves = weight.is_some();
        let weight = weight.and_then(|slot| self.input(slot));
        let weight = weight.and_then(Known::sizes);
        let given = self.node.ints("kernel_shape");
        let kernel: Option<Vec<i64>> = match (&weight, given) {
            (Some(weight), _) => {
                ensure(
                    weight.len() > 2,
                    "the shape of its weight",
                    weight,
                    "channels in and out and sizes of a window",
                )?;
                Some(weight[2..].iter().map(|&size| size as i64).collect())
            }
            (None, given) => given.map(<[i64]>::to_vec),
        };
        let rank = self.shape(0).map(<[Dim]>::len);
        let spatial = kernel.as_ref().map(Vec::len);
        let Some(spatial) = spatial.or_else(|| rank?.checked_sub(2)) else {
            return Ok(());
        };
        if let Some(rank) = rank {
            let wanted = format!("of {} sizes, for a window of {spatial}", spatial + 2);
            ensure(
                rank == spatial + 2,
                "the shape of its input",
                self.shape(0).unwrap_or_default(),
                wanted,
            )?;
        }
        if let Some(given) = given {
            self.each("kernel_shape", spatial, 1)?;
            if let (Some(kernel), true) = (&kernel, weight.is_some()) {
                let wanted = format!("{kernel:?} as the shape of its weight says");
                ensure(given == kernel, "kernel_shape", given, wanted)?;
            }
        }
        self.each("strides", spatial, 1)?;
        self.each("dilations", spatial, 1)?;
        self.each("pads", 2 * spatial, 0)?;
        self.each("output_padding", spatial, 0)?;
        self.each("output_shape", spatial, 1)?;
        if let Some(pad) = self.node.text("auto_pad") {
            let known = ["NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"];
            let wanted = format!("one of {known:?}");
            ensure(known.contains(&pad), "auto_pad", pad, wanted)?;
            // ONNX allows one of the two. ONNX Runtime rejects a convolution with both, even with
            // pads of 0, and uses `auto_pad` for a pooling.
            if let Some(pads) = self
                .node
                .ints("pads")
                .filter(|_| convolves && pad != "NOTSET")
            {
                let wanted = format!("left out, or auto_pad: {pad} pads by itself");
                refuse("pads", pads, wanted)?;
            }
        }
        if let Some(weight) = &weight {
            self.groups(operator, weight)?;
        }
        let Some(kernel) = kernel else {
            return Ok(());
        };
        let kernel: Vec<usize> = kernel.iter().map(|&size| size as usize).collect();
        ensure(
            kernel.iter().all(|&size| size > 0) && count(&kernel) <= TAPS,
            "its kernel",
            &kernel,
            format!("of 1 to {TAPS} places"),
        )?;
        let Some(slides) = Slide::of(self.node, &kernel) else {
            return Ok(());
        };
        match operator {
            "ConvTranspose" => self.made(&slides),
            _ => self.places(&slides, weight.is_none()),
        }
    }

    /// Checks a list attribute: `length` sizes of at least `least`.
    fn each(&self, key: &str, length: usize, least: i64) -> Checking {
        let Some(given) = self.node.ints(key) else {
            return Ok(());
        };
        let wanted = format!("{length} numbers, one for each side of the window");
        ensure(given.len() == length, key, given, wanted)?;
        let sound = given.iter().all(|size| (least..LARGEST).contains(size));
        ensure(
            sound,
            key,
            given,
            format!("at least {least} and in 31 bits"),
        )
    }

    fn groups(&self, operator: &str, weight: &[usize]) -> Checking {
        let group = self.positive("group", Some(1))?;
        let [first, second] = [weight[0] as i64, weight[1] as i64];
        let wanted = format!("a divisor of the {first} channels that its weight is for");
        ensure(first % group == 0, "group", group, wanted)?;
        let channels = match operator {
            "ConvTranspose" => first,
            _ => second.saturating_mul(group),
        };
        let Some(found) = self.size(0, 1) else {
            return Ok(());
        };
        let wanted = format!("{channels} as its weight {weight:?} and group {group} say");
        ensure(
            found == channels,
            "the channels of its input",
            found,
            wanted,
        )
    }

    /// Checks a convolution or pooling: it has an output position, and its padded input fits in
    /// memory.
    fn places(&self, slides: &[Slide], pools: bool) -> Checking {
        let mut padded = Vec::new();
        for (axis, slide) in slides.iter().enumerate() {
            if let (Around::Fixed(before, after), true) = (slide.around, pools) {
                let wanted = format!("less than its kernel of {}", slide.taps);
                let fits = before.max(after) < slide.taps;
                ensure(fits, "pads", [before, after], wanted)?;
            }
            let Some(size) = self.size(0, axis + 2).filter(|&size| size < LARGEST) else {
                continue;
            };
            // The maximum and the mean of nothing are undefined.
            let wanted = "something to pool along each side of its window";
            ensure(
                size > 0 || !pools,
                "the shape of its input",
                self.shape(0),
                wanted,
            )?;
            let (before, room) = slide.room(size);
            let reach = slide.reach();
            // ONNX Runtime pools to an empty output if the window exceeds the input by less than a
            // stride.
            let least = if pools { -slide.stride } else { 0 };
            if room < least && size > 0 {
                let wanted = format!(
                    "to reach over {} at most, which its input has",
                    room + reach
                );
                return refuse("its kernel", format_args!("reaching over {reach}"), wanted);
            }
            let behind = (room + reach - size - before).max(0);
            let all = size + before.max(0) + behind;
            padded.push(usize::try_from(all).unwrap_or(usize::MAX));
        }
        let rest = [self.size(0, 0), self.size(0, 1)];
        let rest = rest.iter().flatten().map(|&size| size as usize);
        let all: Vec<usize> = rest.chain(padded).collect();
        let wanted = format!("of {MOST} elements at most");
        ensure(count(&all) <= MOST, "its input with its pads", &all, wanted)
    }

    /// Checks a transposed convolution: its pads leave some of the output.
    fn made(&self, slides: &[Slide]) -> Checking {
        let extra = self.node.ints("output_padding");
        let shape = self.node.ints("output_shape");
        for (axis, slide) in slides.iter().enumerate() {
            let more = extra.map_or(0, |extra| extra[axis]);
            let least = slide.stride.max(slide.dilation);
            let wanted = format!("less than its stride or dilation, {least}");
            ensure(more < least, "output_padding", more, wanted)?;
            let Some(size) = self.size(0, axis + 2).filter(|&size| size < LARGEST) else {
                continue;
            };
            let (_, made) = slide.made(size, more);
            match shape.map(|shape| shape[axis]) {
                None => ensure(
                    made > 0 || size == 0,
                    "pads",
                    format_args!("more than the {} it makes", slide.spread(size, more)),
                    "to leave something of it",
                )?,
                // A size larger by a stride would need a larger input.
                Some(wanted) => {
                    let most = slide.spread(size, more) + slide.stride - 1;
                    let most_in_words = format!("{most} at most, which its input is enough for");
                    ensure(wanted <= most, "output_shape", wanted, most_in_words)?;
                }
            }
        }
        Ok(())
    }
}
