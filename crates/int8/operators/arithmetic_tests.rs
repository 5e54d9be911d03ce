//! Tests of arithmetic of several values.

use crate::test_graph::{TestGraph, rounded};
use octet_graph::Node;

type Of = fn(f32, f32) -> f32;

const OPERATORS: [(&str, Of); 6] = [
    ("Add", |a, b| a + b),
    ("Sub", |a, b| a - b),
    ("Mul", |a, b| a * b),
    ("Div", |a, b| a / b),
    ("Max", f32::max),
    ("Min", f32::min),
];

#[test]
fn sides_of_equal_shape_and_a_broadcast_row() {
    for (operator, of) in OPERATORS {
        for wide in [false, true] {
            for row in [false, true] {
                let mut graph = TestGraph::new(wide);
                let a = graph.input("a", &[2, 3]);
                let b = graph.input("b", if row { &[3] } else { &[2, 3] });
                let node = Node::new(operator, "n", &["a", "b"], &["y"]);
                graph.tested(node, &[&[2, 3]]);
                let run = graph.run();
                let name = match wide || operator == "Div" {
                    true => "arithmetic on 16 bits",
                    false => "arithmetic of two values",
                };
                assert_eq!(run.operation("n"), name, "{operator}");
                let exact = a.iter().zip(b.iter().cycle()).map(|(&a, &b)| of(a, b));
                let expected = rounded(exact);
                run.assert_near(&expected, 1.0);
            }
        }
    }
}

#[test]
fn images_broadcast_along_channels() {
    for (operator, of) in OPERATORS {
        let mut graph = TestGraph::new(false);
        let a = graph.input("a", &[1, 2, 2, 2]);
        let b = graph.input("b", &[1, 2, 1, 1]);
        let node = Node::new(operator, "n", &["a", "b"], &["y"]);
        graph.tested(node, &[&[1, 2, 2, 2]]);
        let exact = a.iter().enumerate().map(|(at, &a)| of(a, b[at / 4]));
        graph.run().assert_near(&rounded(exact), 1.0);
    }
}

#[test]
fn the_greatest_of_three_values() {
    let mut graph = TestGraph::new(false);
    let [a, b] = ["a", "b"].map(|name| graph.input(name, &[6]));
    graph.constant("c", &[], &[0.5]);
    let node = Node::new("Max", "n", &["a", "b", "c"], &["y"]);
    graph.tested(node, &[&[6]]);
    let greatest = a.iter().zip(&b).map(|(a, b)| a.max(*b).max(0.5));
    graph
        .run()
        .assert_near(&greatest.collect::<Vec<f32>>(), 0.0);
}

#[test]
fn a_shape_that_does_not_broadcast_is_a_reason() {
    let mut graph = TestGraph::new(false);
    graph.input("a", &[2, 3]);
    graph.input("b", &[2]);
    let node = Node::new("Add", "n", &["a", "b"], &["y"]);
    graph.tested(node, &[&[2, 3]]);
    let reason = "its input b of shape [2] does not broadcast to [2, 3]";
    assert_eq!(graph.reason("n"), reason);
}
