//! The binary form of im2col views.

use octet_graph::{Around, SlidingWindow};

use super::Im2colView;
use crate::stored::{DamagedStatistics, StatisticsReader, Stored, put};

impl Stored for Im2colView {
    fn store(&self, out: &mut Vec<u8>) {
        match self {
            Im2colView::Rows => put(out, 0),
            Im2colView::Windows { groups, slides } => {
                put(out, *groups as u64);
                put(out, slides.len() as u64);
                for slide in slides {
                    let (kind, before, after) = match slide.around {
                        Around::Fixed(before, after) => (0, before, after),
                        Around::Upper => (1, 0, 0),
                        Around::Lower => (2, 0, 0),
                    };
                    out.push(kind);
                    [slide.taps, slide.stride, slide.dilation, before, after]
                        .iter()
                        .for_each(|number| number.store(out));
                }
            }
        }
    }

    fn load(from: &mut StatisticsReader<'_>) -> Result<Im2colView, DamagedStatistics> {
        let groups = from.number()? as usize;
        if groups == 0 {
            return Ok(Im2colView::Rows);
        }
        let slides = (0..from.length(6)?).map(|_| {
            let kind = from.byte()?;
            let mut numbers = [0; 5];
            for number in &mut numbers {
                *number = from.signed()?;
            }
            let [taps, stride, dilation, before, after] = numbers;
            let around = match kind {
                0 => Around::Fixed(before, after),
                1 => Around::Upper,
                2 => Around::Lower,
                _ => return Err(DamagedStatistics("a window has unknown padding")),
            };
            Ok(SlidingWindow {
                taps,
                stride,
                dilation,
                around,
            })
        });
        Ok(Im2colView::Windows {
            groups,
            slides: slides.collect::<Result<_, _>>()?,
        })
    }
}
