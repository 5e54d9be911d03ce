//! Boxes of detectors with outputs of each layout.

use super::*;

fn detector(layout: BoxLayout) -> Detector {
    Detector {
        layout,
        prototypes: None,
        difference: Default::default(),
        matches: BoxMatches::default(),
    }
}

#[test]
fn boxes_are_found_again_where_half_of_them_and_their_class_are_the_same() {
    // Three boxes: center, size, objectness, two classes.
    let shape = [1usize, 3, 7];
    let float = [
        10.0, 10.0, 8.0, 8.0, 0.9, 0.9, 0.1, //
        40.0, 40.0, 8.0, 8.0, 0.8, 0.1, 0.9, //
        70.0, 70.0, 8.0, 8.0, 0.1, 0.9, 0.1,
    ];
    let mut quantized = float;
    quantized[0] = 11.0; // IoU still above a half
    quantized[7 + 5..7 + 7].copy_from_slice(&[0.9, 0.1]); // another class
    let mut tested = detector(BoxLayout::Rows(0));
    tested.add(&[(&float, &shape)], &[(&quantized, &shape)], None);
    assert_eq!(
        tested.matches,
        BoxMatches {
            confident: 2,
            matched: 1,
            extra: 1
        }
    );
    quantized[0] = 16.0; // IoU of about a seventh
    tested.add(&[(&float, &shape)], &[(&quantized, &shape)], None);
    assert_eq!(
        tested.matches,
        BoxMatches {
            confident: 4,
            matched: 1,
            extra: 3
        }
    );
    let parts = tested.finish(0).1.unwrap();
    assert!(parts.boxes > 20.0 && parts.scores < 5.0, "{parts:?}");
}

#[test]
fn distances_from_anchors_are_no_boxes() {
    // The third number of a distance is negative where it would be a width.
    let shapes: [&[usize]; 2] = [&[1, 3, 4], &[1, 3, 1]];
    let distances = [
        0.1, -0.2, -0.1, 0.3, //
        -0.1, 0.2, 0.3, 0.1, //
        0.2, 0.1, -0.2, -0.1,
    ];
    let boxes = [
        10.0, 10.0, 8.0, 8.0, //
        40.0, 40.0, 8.0, 8.0, //
        70.0, 70.0, 8.0, 8.0,
    ];
    let scores = [0.9, 0.8, 0.7];
    for (coordinates, confident) in [(distances, 0), (boxes, 3)] {
        let mut tested = detector(BoxLayout::Separate {
            boxes: 0,
            scores: 1,
            classes: None,
        });
        let outputs: [(&[f32], &[usize]); 2] = [(&coordinates, shapes[0]), (&scores, shapes[1])];
        let (found, drawn) = tested.add(&outputs, &outputs, None);
        assert_eq!((found.confident, found.matched), (confident, confident));
        assert_eq!(drawn[0].len() as u64, confident);
    }
}

#[test]
fn a_box_a_column_is_read_like_a_box_a_row() {
    let shape = [1usize, 6, 2];
    let float = [
        10.0, 40.0, 10.0, 40.0, 8.0, 8.0, 8.0, 8.0, 0.9, 0.0, 0.0, 0.1,
    ];
    let mut tested = detector(BoxLayout::Columns(0));
    tested.add(&[(&float, &shape)], &[(&float, &shape)], None);
    assert_eq!(
        tested.matches,
        BoxMatches {
            confident: 1,
            matched: 1,
            extra: 0
        }
    );
}

#[test]
fn a_class_for_nothing_is_no_box() {
    let (coordinates, scores) = (
        [
            0.1f32, 0.1, 0.3, 0.3, 0.5, 0.5, 0.9, 0.9, 0.2, 0.2, 0.4, 0.4,
        ],
        [0.9f32, 0.1, 0.2, 0.8, 0.95, 0.05],
    );
    let (of_places, of_scores) = ([1usize, 3, 4], [1usize, 3, 2]);
    let outputs: [OutputTensor<'_>; 2] = [(&coordinates, &of_places), (&scores, &of_scores)];
    let mut tested = detector(BoxLayout::Separate {
        boxes: 0,
        scores: 1,
        classes: None,
    });
    tested.add(&outputs, &outputs, None);
    assert_eq!(
        tested.matches,
        BoxMatches {
            confident: 1,
            matched: 1,
            extra: 0
        }
    );
}

#[test]
fn detectors_are_known_by_their_shapes() {
    let named = |name: &str| OutputTraits::named(name);
    let shapes: [&[usize]; 2] = [&[1, 100, 4], &[1, 100, 92]];
    let traits = [named("pred_boxes"), named("logits")];
    let separate = Detector::from_outputs(&traits, &shapes).unwrap();
    assert_eq!(separate.kind(0), Some(OutputKind::Boxes));
    assert_eq!(separate.kind(1), Some(OutputKind::Scores));
    // Hidden states of a hundred tokens are no detector.
    assert!(Detector::from_outputs(&[named("last_hidden_state")], &[&[1, 100, 384]]).is_none());
    let joined = OutputTraits::joined();
    let columns = Detector::from_outputs(std::slice::from_ref(&joined), &[&[1, 84, 8400]]).unwrap();
    assert_eq!(columns.layout, BoxLayout::Columns(0));
    let rows = Detector::from_outputs(&[joined], &[&[1, 25_200, 85]]).unwrap();
    assert_eq!(rows.layout, BoxLayout::Rows(0));
}

/// Three confident boxes of two models, and the best box of the first.
fn best(
    tested: &mut Detector,
    outputs: &[OutputTensor<'_>],
    picture: (usize, usize),
) -> DetectedBox {
    let (found, [mut first, _]) = tested.add(outputs, outputs, Some(picture));
    assert_eq!(
        (found.confident, found.matched),
        (first.len() as u64, first.len() as u64)
    );
    first.swap_remove(0)
}

#[test]
fn coefficients_of_masks_are_no_classes() {
    // A box a column: four coordinates, one class, two coefficients.
    let shape = [1usize, 7, 64];
    let mut columns = vec![0.0f32; 7 * 64];
    for (row, value) in [10.0, 10.0, 8.0, 8.0, 0.9, -3.0, 5.0]
        .into_iter()
        .enumerate()
    {
        columns[row * 64 + 7] = value;
    }
    let (planes, of_planes) = (vec![0.5f32; 2 * 64], [1usize, 2, 8, 8]);
    let traits = [OutputTraits::joined(), OutputTraits::named("output1")];
    let shapes: [&[usize]; 2] = [&shape, &of_planes];
    let mut tested = Detector::from_outputs(&traits, &shapes).unwrap();
    assert_eq!(tested.prototypes(), Some(1));
    let outputs: [OutputTensor<'_>; 2] = [(&columns, &shape), (&planes, &of_planes)];
    let found = best(&mut tested, &outputs, (64, 64));
    assert_eq!((found.class, found.score), (0, 0.9));
    assert_eq!(found.coefficients, [-3.0, 5.0]);
    // The error of a coefficient is none of the scores.
    let mut other = columns.clone();
    other[6 * 64 + 7] = -5.0;
    let quantized: [OutputTensor<'_>; 2] = [(&other, &shape), (&planes, &of_planes)];
    let mut tested = Detector::from_outputs(&traits, &shapes).unwrap();
    tested.add(&outputs, &quantized, None);
    let parts = tested.finish(0).1.unwrap();
    assert!(parts.scores > 100.0 && parts.boxes > 100.0, "{parts:?}");
    // Without planes all of them are scores.
    let alone = Detector::from_outputs(&traits[..1], &shapes[..1]).unwrap();
    assert_eq!(alone.prototypes(), None);
}

#[test]
fn places_in_the_cells_of_grids_become_pixels() {
    // YOLOX at 64 x 96: grids of 8 x 12, 4 x 6 and 2 x 3 cells.
    let count = 96 + 24 + 6;
    let shape = [1usize, count, 6];
    let mut rows = vec![0.0f32; count * 6];
    // Row 2, column 4 of the second grid, with a stride of 16.
    let at = (96 + 2 * 6 + 4) * 6;
    rows[at..at + 6].copy_from_slice(&[0.5, 0.25, 2f32.ln(), 0.5f32.ln(), 0.9, 1.0]);
    let mut tested = detector(BoxLayout::Rows(0));
    let outputs: [OutputTensor<'_>; 1] = [(&rows, &shape)];
    let found = best(&mut tested, &outputs, (64, 96));
    let expected = [72.0 - 16.0, 36.0 - 4.0, 72.0 + 16.0, 36.0 + 4.0];
    let apart = |(a, b): (f32, f32)| (a - b).abs();
    let all = found.coordinates.into_iter().zip(expected).map(apart);
    assert!(all.fold(0.0, f32::max) < 1e-4, "{:?}", found.coordinates);
    // Sizes in pixels are never negative.
    rows[at..at + 4].copy_from_slice(&[72.0, 36.0, 32.0, 8.0]);
    let outputs: [OutputTensor<'_>; 1] = [(&rows, &shape)];
    let found = best(&mut tested, &outputs, (64, 96));
    assert_eq!(found.coordinates, expected);
}

#[test]
fn selected_rows_are_read_in_each_order() {
    let traits = [OutputTraits::selected()];
    // YOLOv7: place in the batch, corners, class, score.
    let rows = [
        0.0f32, 1.0, 2.0, 30.0, 40.0, 5.0, 0.75, //
        1.0, 3.0, 4.0, 50.0, 60.0, 2.0, 0.5,
    ];
    let shape = [2usize, 7];
    let mut tested = Detector::from_outputs(&traits, &[&shape]).unwrap();
    assert_eq!(tested.kind(0), Some(OutputKind::Boxes));
    let (_, [found, _]) = tested.add(&[(&rows, &shape)], &[(&rows, &shape)], None);
    let read: Vec<_> = found
        .iter()
        .map(|one| (one.item, one.class, one.score))
        .collect();
    assert_eq!(read, [(0, 5, 0.75), (1, 2, 0.5)]);
    assert_eq!(found[1].coordinates, [3.0, 4.0, 50.0, 60.0]);
    // PaddleDetection: class, score, corners. Others: corners, score, class.
    let paddle = [
        5.0f32, 0.75, 1.0, 2.0, 30.0, 40.0, 2.0, 0.5, 3.0, 4.0, 50.0, 60.0,
    ];
    let usual = [
        1.0f32, 2.0, 30.0, 40.0, 0.75, 5.0, 3.0, 4.0, 50.0, 60.0, 0.5, 2.0,
    ];
    for rows in [paddle, usual] {
        let shape = [2usize, 6];
        let mut tested = Detector::from_outputs(&traits, &[&shape]).unwrap();
        let (_, [found, _]) = tested.add(&[(&rows, &shape)], &[(&rows, &shape)], None);
        let read: Vec<_> = found
            .iter()
            .map(|one| (one.class, one.coordinates))
            .collect();
        assert_eq!(
            read,
            [(5, [1.0, 2.0, 30.0, 40.0]), (2, [3.0, 4.0, 50.0, 60.0])]
        );
    }
}

/// Heads of a picture of 64 × 64 at strides 8, 16 and 32, with two classes and eight values a side.
/// One cell of the second level has a thing that reaches 1, 1, 2 and 2 strides from its center.
fn heads(confident: f32, other: f32) -> Vec<(Vec<f32>, [usize; 3])> {
    let rows = [64usize, 16, 4];
    let mut all = Vec::new();
    for cells in rows {
        let mut scores = vec![other; cells * 2];
        let mut distances = vec![0.0; cells * 32];
        if cells == 16 {
            let cell = 4 + 2; // second row, third column
            scores[cell * 2 + 1] = confident;
            for (side, bin) in [1, 1, 2, 2].into_iter().enumerate() {
                distances[cell * 32 + side * 8 + bin] = 60.0;
            }
        }
        all.push((distances, [1, cells, 32]));
        all.push((scores, [1, cells, 2]));
    }
    all
}

#[test]
fn heads_with_a_distribution_for_each_side_become_boxes() {
    for (confident, other) in [(0.9, 0.01), (3.0, -6.0)] {
        let heads = heads(confident, other);
        let outputs: Vec<OutputTensor<'_>> = heads
            .iter()
            .map(|(values, shape)| (values.as_slice(), shape.as_slice()))
            .collect();
        let shapes: Vec<&[usize]> = outputs.iter().map(|(_, shape)| *shape).collect();
        let traits = vec![OutputTraits::named("y"); 6];
        let mut tested = Detector::from_outputs(&traits, &shapes).unwrap();
        assert_eq!(tested.kind(0), Some(OutputKind::Boxes));
        assert_eq!(tested.kind(1), Some(OutputKind::Scores));
        let (matches, [first, _]) = tested.add(&outputs, &outputs, Some((64, 64)));
        assert_eq!(
            (matches.confident, matches.matched, matches.extra),
            (1, 1, 0)
        );
        assert_eq!(first[0].class, 1);
        let near = [24.0, 8.0, 72.0, 56.0]
            .into_iter()
            .zip(first[0].coordinates);
        assert!(near.clone().all(|(a, b)| (a - b).abs() < 0.01), "{first:?}");
        // Another picture has other cells.
        let (matches, _) = tested.add(&outputs, &outputs, Some((640, 640)));
        assert_eq!(matches.confident, 0);
    }
}

#[test]
fn outputs_without_the_cells_of_a_pyramid_are_no_heads() {
    let traits = vec![OutputTraits::named("y"); 6];
    for shapes in [
        // Layers of a transformer.
        [
            [1, 64, 32],
            [1, 64, 2],
            [1, 64, 32],
            [1, 64, 2],
            [1, 64, 32],
            [1, 64, 2],
        ],
        // Scores of another number of classes at each level.
        [
            [1, 64, 32],
            [1, 64, 2],
            [1, 16, 32],
            [1, 16, 3],
            [1, 4, 32],
            [1, 4, 2],
        ],
        // An odd number of distances.
        [
            [1, 64, 30],
            [1, 64, 2],
            [1, 16, 30],
            [1, 16, 2],
            [1, 4, 30],
            [1, 4, 2],
        ],
    ] {
        let shapes: Vec<&[usize]> = shapes.iter().map(<[usize; 3]>::as_slice).collect();
        assert!(
            Detector::from_outputs(&traits, &shapes).is_none(),
            "{shapes:?}"
        );
    }
}
