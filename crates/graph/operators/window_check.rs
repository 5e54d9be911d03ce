//! Validation of sliding windows: kernels, strides, dilations, pads, groups and output sizes.

use super::node_context::{
    MAX_ELEMENTS, MAX_SIZE, NodeContext, Refusal, ShapeProblem, Validation, ensure, refuse,
};
use super::window::{WindowAttributes, WindowKind};
use crate::inferred_value::{InferredValue, count};
use crate::{Around, Dim, SlidingWindow};

/// Maximum number of taps; larger tables would exceed any image.
const MAX_TAPS: usize = 1 << 26;

/// Checks kernels, strides, dilations, pads, groups and output sizes; `weight` is the slot of a
/// convolution's weight.
pub(super) fn validate(ctx: &NodeContext, weight: Option<usize>, kind: WindowKind) -> Validation {
    let attributes = WindowAttributes::read(ctx.node);
    let convolves = weight.is_some();
    let weight = weight.and_then(|slot| ctx.input(slot));
    let weight = weight.and_then(InferredValue::sizes);
    let kernel_shape = attributes.kernel_shape;
    let kernel: Option<Vec<i64>> = match (&weight, kernel_shape) {
        (Some(weight), _) => {
            ensure(
                weight.len() > 2,
                "the shape of its weight",
                weight,
                "input channels, output channels and at least one kernel size",
            )?;
            Some(weight[2..].iter().map(|&size| size as i64).collect())
        }
        (None, kernel_shape) => kernel_shape.map(<[i64]>::to_vec),
    };
    let rank = ctx.shape(0).map(<[Dim]>::len);
    let spatial = kernel.as_ref().map(Vec::len);
    let Some(spatial) = spatial.or_else(|| rank?.checked_sub(2)) else {
        return Ok(());
    };
    if let Some(rank) = rank {
        let expected = format!("of {} axes, for a kernel of {spatial}", spatial + 2);
        ensure(
            rank == spatial + 2,
            "the shape of its input",
            ctx.shape(0).unwrap_or_default(),
            expected,
        )?;
    }
    if let Some(kernel_shape) = kernel_shape {
        sizes_list("kernel_shape", Some(kernel_shape), spatial, 1)?;
        if let (Some(kernel), true) = (&kernel, weight.is_some()) {
            let expected = format!("{kernel:?}, as the shape of its weight");
            ensure(
                kernel_shape == kernel,
                "kernel_shape",
                kernel_shape,
                expected,
            )?;
        }
    }
    sizes_list("strides", attributes.strides, spatial, 1)?;
    sizes_list("dilations", attributes.dilations, spatial, 1)?;
    sizes_list("pads", attributes.pads, 2 * spatial, 0)?;
    sizes_list("output_padding", attributes.output_padding, spatial, 0)?;
    sizes_list("output_shape", attributes.output_shape, spatial, 1)?;
    if let Some(pad) = attributes.auto_pad {
        let known = ["NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"];
        let expected = format!("one of {known:?}");
        ensure(known.contains(&pad), "auto_pad", pad, expected)?;
        // ONNX allows one of the two. ONNX Runtime rejects a convolution with both, even with
        // pads of 0, and uses `auto_pad` for a pooling.
        if let Some(pads) = attributes.pads.filter(|_| convolves && pad != "NOTSET") {
            let expected = format!("absent, because auto_pad is {pad}");
            refuse("pads", pads, expected)?;
        }
    }
    if let Some(weight) = &weight {
        groups(ctx, kind, weight)?;
    }
    let Some(kernel) = kernel else {
        return Ok(());
    };
    let kernel: Vec<usize> = kernel.iter().map(|&size| size as usize).collect();
    ensure(
        kernel.iter().all(|&size| size > 0) && count(&kernel) <= MAX_TAPS,
        "its kernel",
        &kernel,
        format!("of 1 to {MAX_TAPS} elements"),
    )?;
    let Some(slides) = SlidingWindow::from_node(ctx.node, &kernel) else {
        return Ok(());
    };
    match kind {
        WindowKind::Transposed => transposed(ctx, &attributes, &slides),
        _ => positions(ctx, &slides, weight.is_none()),
    }
}

/// Checks a list attribute: `length` sizes of at least `least`.
fn sizes_list(key: &str, list: Option<&[i64]>, length: usize, least: i64) -> Validation {
    let Some(list) = list else {
        return Ok(());
    };
    let expected = format!("{length} numbers");
    ensure(list.len() == length, key, list, expected)?;
    let sound = list.iter().all(|size| (least..MAX_SIZE).contains(size));
    ensure(
        sound,
        key,
        list,
        format!("at least {least} and of at most 31 bits"),
    )
}

fn groups(ctx: &NodeContext, kind: WindowKind, weight: &[usize]) -> Validation {
    let group = ctx.positive("group", Some(1))?;
    let [first, second] = [weight[0] as i64, weight[1] as i64];
    let expected = format!("a divisor of the {first} channels of its weight");
    ensure(first % group == 0, "group", group, expected)?;
    let channels = match kind {
        WindowKind::Transposed => first,
        _ => second.saturating_mul(group),
    };
    let Some(actual) = ctx.size(0, 1) else {
        return Ok(());
    };
    let expected = format!("{channels}, for its weight {weight:?} and group {group}");
    ensure(
        actual == channels,
        "the channels of its input",
        actual,
        expected,
    )
}

/// Checks a convolution or pooling: it has an output position, and its padded input fits in
/// memory.
fn positions(ctx: &NodeContext, slides: &[SlidingWindow], pools: bool) -> Validation {
    let mut padded = Vec::new();
    for (axis, slide) in slides.iter().enumerate() {
        if let (Around::Fixed(before, after), true) = (slide.around, pools) {
            let expected = format!("less than its kernel size {}", slide.taps);
            let fits = before.max(after) < slide.taps;
            ensure(fits, "pads", [before, after], expected)?;
        }
        let Some(size) = ctx.size(0, axis + 2).filter(|&size| size < MAX_SIZE) else {
            continue;
        };
        // The maximum and the mean of nothing are undefined.
        let expected = "of at least 1 on each pooled axis";
        ensure(
            size > 0 || !pools,
            "the shape of its input",
            ctx.shape(0),
            expected,
        )?;
        let (before, room) = slide.travel(size);
        let reach = slide.span();
        within(slide, size, pools)?;
        let behind = (room + reach - size - before).max(0);
        let all = size + before.max(0) + behind;
        padded.push(usize::try_from(all).unwrap_or(usize::MAX));
    }
    let rest = [ctx.size(0, 0), ctx.size(0, 1)];
    let rest = rest.iter().flatten().map(|&size| size as usize);
    let all: Vec<usize> = rest.chain(padded).collect();
    let expected = format!("of at most {MAX_ELEMENTS} elements");
    ensure(
        count(&all) <= MAX_ELEMENTS,
        "its padded input",
        &all,
        expected,
    )
}

/// Checks that a kernel is not larger than a padded axis of this size.
fn within(slide: &SlidingWindow, size: i64, pools: bool) -> Validation {
    let (_, room) = slide.travel(size);
    let reach = slide.span();
    // ONNX Runtime pools to an empty output if the window exceeds the input by less than a stride.
    let least = if pools { -slide.stride } else { 0 };
    if room < least && size > 0 {
        let expected = format!("at most {}, the padded size of its input", room + reach);
        let refused = refuse("its kernel", format_args!("{reach} wide"), expected);
        return refused.map_err(|refusal| Refusal {
            problem: ShapeProblem::SmallerThanKernel,
            ..refusal
        });
    }
    Ok(())
}

/// Checks that the kernel of a valid node is not larger than its padded input; `weight` is the slot of
/// a convolution's weight.
pub(super) fn kernel_fits(ctx: &NodeContext, weight: Option<usize>) -> Validation {
    let kernel: Option<Vec<usize>> = match weight {
        Some(slot) => (2..ctx.shape(slot).map_or(0, <[Dim]>::len))
            .map(|axis| usize::try_from(ctx.size(slot, axis)?).ok())
            .collect(),
        None => WindowAttributes::read(ctx.node)
            .kernel_shape
            .and_then(|sizes| {
                sizes
                    .iter()
                    .map(|&size| usize::try_from(size).ok())
                    .collect()
            }),
    };
    let slides = kernel.and_then(|kernel| SlidingWindow::from_node(ctx.node, &kernel));
    for (axis, slide) in slides.iter().flatten().enumerate() {
        if let Some(size) = ctx.size(0, axis + 2).filter(|&size| size < MAX_SIZE) {
            within(slide, size, weight.is_none())?;
        }
    }
    Ok(())
}

/// Checks a transposed convolution: its pads leave some of the output.
fn transposed(
    ctx: &NodeContext,
    attributes: &WindowAttributes,
    slides: &[SlidingWindow],
) -> Validation {
    let extra = attributes.output_padding;
    let shape = attributes.output_shape;
    for (axis, slide) in slides.iter().enumerate() {
        let more = extra.map_or(0, |extra| extra[axis]);
        let least = slide.stride.max(slide.dilation);
        let expected = format!("less than its stride or dilation, {least}");
        ensure(more < least, "output_padding", more, expected)?;
        let Some(size) = ctx.size(0, axis + 2).filter(|&size| size < MAX_SIZE) else {
            continue;
        };
        let (_, made) = slide.output(size, more);
        match shape.map(|shape| shape[axis]) {
            None => ensure(
                made > 0 || size == 0,
                "pads",
                format_args!(
                    "larger than its output of {}",
                    slide.full_output(size, more)
                ),
                "such that some output remains",
            )?,
            // A size larger by a stride would need a larger input.
            Some(expected) => {
                let most = slide.full_output(size, more) + slide.stride - 1;
                let most_in_words = format!("at most {most} for the size of its input");
                ensure(expected <= most, "output_shape", expected, most_in_words)?;
            }
        }
    }
    Ok(())
}
