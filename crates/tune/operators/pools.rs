//! AveragePool and MaxPool.

use octet_graph::{Node, SlidingWindow};
use octet_training::reverse::{Pooling, ReverseOperation};

use super::Builder;
use super::products::windows;

pub(super) fn compile(builder: &mut Builder, node: &Node) -> Option<usize> {
    let maxima = node.is("MaxPool");
    if !(maxima || node.is("AveragePool")) || node.int("ceil_mode").unwrap_or(0) != 0 {
        return None;
    }
    let value = builder.at(node, 0)?;
    let (&[images, channels], extents) = builder.shape(value).split_first_chunk()?;
    let kernel = node.ints("kernel_shape")?.iter();
    let kernel = kernel.map(|&size| usize::try_from(size).ok());
    let slides = SlidingWindow::from_node(node, &kernel.collect::<Option<Vec<usize>>>()?)?;
    let windows = windows(&slides, extents)?;
    let places = windows.0[3 - slides.len()..].iter().map(|axis| axis.places);
    let shape: Vec<usize> = [images, channels].into_iter().chain(places).collect();
    let of = match maxima {
        true => Pooling {
            planes: images * channels,
            windows,
            counts: Vec::new(),
        },
        false => {
            let padded = node.int("count_include_pad").unwrap_or(0) != 0;
            Pooling::mean(images * channels, windows, padded)
        }
    };
    Some(builder.push(ReverseOperation::Pooling(of), &[value], &shape))
}
