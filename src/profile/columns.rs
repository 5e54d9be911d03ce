//! Columns of the layer table, shared by the terminal, CSV and HTML.

use super::layers::{Layer, LayerPort, LayerTable};
use super::timing_summary::TimingSummary;

/// A column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Column {
    Name,
    Operator,
    Ms,
    P10,
    P90,
    Share,
    Macs,
    Gmacs,
    Own,
    Peak,
    Live,
    Calls,
    In,
    Out,
    Shape,
    Kernel,
    Nodes,
    Conversion,
    InFloat,
}

/// Content of a cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// No content: unknown or not applicable.
    Empty,
    /// Text.
    Text(String),
    /// Quantity in the column's unit.
    Number(f64),
}

impl Column {
    /// All columns in display order.
    pub const ALL: [Column; 19] = [
        Column::Name,
        Column::Operator,
        Column::Ms,
        Column::P10,
        Column::P90,
        Column::Share,
        Column::Macs,
        Column::Gmacs,
        Column::Own,
        Column::Peak,
        Column::Live,
        Column::Calls,
        Column::In,
        Column::Out,
        Column::Shape,
        Column::Kernel,
        Column::Nodes,
        Column::Conversion,
        Column::InFloat,
    ];

    /// Name in files and options.
    pub fn name(self) -> &'static str {
        match self {
            Column::Name => "name",
            Column::Operator => "operator",
            Column::Ms => "ms",
            Column::P10 => "ms_p10",
            Column::P90 => "ms_p90",
            Column::Share => "share",
            Column::Macs => "macs",
            Column::Gmacs => "gmacs_per_second",
            Column::Own => "own_bytes",
            Column::Peak => "peak_bytes",
            Column::Live => "live_bytes",
            Column::Calls => "calls",
            Column::In => "in",
            Column::Out => "out",
            Column::Shape => "shape",
            Column::Kernel => "kernel",
            Column::Nodes => "nodes",
            Column::Conversion => "conversion",
            Column::InFloat => "in_float",
        }
    }

    /// Title in tables.
    pub fn title(self) -> &'static str {
        match self {
            Column::Name => "layer",
            Column::Operator => "operator",
            Column::Ms => "ms",
            Column::P10 => "10 %",
            Column::P90 => "90 %",
            Column::Share => "share",
            Column::Macs => "MMAC",
            Column::Gmacs => "GMAC/s",
            Column::Own => "own MB",
            Column::Peak => "peak MB",
            Column::Live => "live MB",
            Column::Calls => "calls",
            Column::In => "in",
            Column::Out => "out",
            Column::Shape => "shape",
            Column::Kernel => "kernel",
            Column::Nodes => "nodes",
            Column::Conversion => "reason for conversion",
            Column::InFloat => "reason for float",
        }
    }

    /// Finds a column by its name.
    pub fn named(name: &str) -> Option<Column> {
        Column::ALL.into_iter().find(|column| column.name() == name)
    }

    /// A layer's content for this column.
    pub fn cell(self, layer: &Layer) -> Cell {
        let text = |text: String| match text.is_empty() {
            true => Cell::Empty,
            false => Cell::Text(text),
        };
        let number = |value: u64| Cell::Number(value as f64);
        match self {
            Column::Name => text(layer.name.clone()),
            Column::Operator => text(layer.operator.clone()),
            Column::Ms => Cell::Number(layer.ms.median),
            Column::P10 => Cell::Number(layer.ms.p10),
            Column::P90 => Cell::Number(layer.ms.p90),
            Column::Share => Cell::Number(layer.share),
            Column::Macs if layer.macs == 0 => Cell::Empty,
            Column::Macs => number(layer.macs),
            Column::Gmacs => layer.gmacs.map_or(Cell::Empty, Cell::Number),
            Column::Own => number(layer.own_bytes),
            Column::Peak => number(layer.peak_bytes),
            Column::Live => number(layer.live_bytes),
            Column::Calls => number(layer.calls as u64),
            Column::In => text(elements(&layer.inputs)),
            Column::Out => text(elements(&layer.outputs)),
            Column::Shape => text(layer.outputs.first().map(shape).unwrap_or_default()),
            Column::Kernel => text(layer.kernel.clone()),
            Column::Nodes => text(layer.nodes.join(" ")),
            Column::Conversion => text(layer.conversion.clone().unwrap_or_default()),
            Column::InFloat => text(layer.in_float.clone().unwrap_or_default()),
        }
    }

    /// The cell as text for people: rounded, in the unit of the title.
    pub fn shown(self, layer: &Layer) -> String {
        const MB: f64 = 1e6;
        match (self.cell(layer), self) {
            (Cell::Empty, _) => String::new(),
            (Cell::Text(text), _) => text,
            (Cell::Number(value), Column::Share) => format!("{:.1} %", value * 100.0),
            (Cell::Number(value), Column::Macs) => format!("{:.2}", value / 1e6),
            (Cell::Number(value), Column::Own | Column::Peak | Column::Live) => {
                format!("{:.2}", value / MB)
            }
            (Cell::Number(value), Column::Calls) => format!("{value}"),
            (Cell::Number(value), Column::Gmacs) => format!("{value:.1}"),
            (Cell::Number(value), _) => format!("{value:.3}"),
        }
    }

    /// True for columns of quantities.
    pub fn is_number(self) -> bool {
        !matches!(
            self,
            Column::Name
                | Column::Operator
                | Column::In
                | Column::Out
                | Column::Shape
                | Column::Kernel
                | Column::Nodes
                | Column::Conversion
                | Column::InFloat
        )
    }
}

/// Element types of the ports, without duplicates.
fn elements(ports: &[LayerPort]) -> String {
    let mut distinct: Vec<&str> = Vec::new();
    for port in ports {
        if !distinct.contains(&port.element.as_str()) {
            distinct.push(&port.element);
        }
    }
    distinct.join(" ")
}

fn shape(port: &LayerPort) -> String {
    let dims = port.shape.iter().map(|&d| match d {
        0 => "?".to_string(),
        d => d.to_string(),
    });
    dims.collect::<Vec<_>>().join("×")
}

/// Sorts layers by a column: quantities in descending order, text from A. The sort is stable.
pub fn sort(layers: &mut [Layer], column: Column) {
    layers.sort_by(|a, b| match (column.cell(a), column.cell(b)) {
        (Cell::Number(a), Cell::Number(b)) => b.total_cmp(&a),
        (Cell::Text(a), Cell::Text(b)) => a.cmp(&b),
        (Cell::Empty, Cell::Empty) => std::cmp::Ordering::Equal,
        (Cell::Empty, _) => std::cmp::Ordering::Greater,
        (_, _) => std::cmp::Ordering::Less,
    });
}

/// One row for each operator, the longest time first. Times, operations and output bytes are sums;
/// peak and live memory are maxima.
pub fn by_operator(table: &LayerTable) -> Vec<Layer> {
    let mut groups: Vec<Layer> = Vec::new();
    for layer in &table.layers {
        let place = groups.iter().position(|g| g.operator == layer.operator);
        let place = place.unwrap_or_else(|| {
            groups.push(Layer {
                name: layer.operator.clone(),
                operator: layer.operator.clone(),
                times: vec![0.0; layer.times.len()],
                ..Layer::default()
            });
            groups.len() - 1
        });
        let group = &mut groups[place];
        group.nodes.push(layer.name.clone());
        group.calls += layer.calls;
        group.macs += layer.macs;
        group.own_bytes += layer.own_bytes;
        group.share += layer.share;
        group.peak_bytes = group.peak_bytes.max(layer.peak_bytes);
        group.live_bytes = group.live_bytes.max(layer.live_bytes);
        for (sum, time) in group.times.iter_mut().zip(&layer.times) {
            *sum += time;
        }
    }
    for group in &mut groups {
        group.ms = TimingSummary::from_values(&group.times);
        group.gmacs = (group.macs > 0 && group.ms.median > table.resolution_ms)
            .then(|| group.macs as f64 / (group.ms.median * 1e6));
    }
    sort(&mut groups, Column::Ms);
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layer(name: &str, operator: &str, ms: [f64; 2], macs: u64) -> Layer {
        Layer {
            name: name.into(),
            operator: operator.into(),
            times: ms.to_vec(),
            ms: TimingSummary::from_values(&ms),
            macs,
            own_bytes: 10,
            peak_bytes: macs,
            ..Layer::default()
        }
    }

    #[test]
    fn groups_add_up_run_by_run() {
        let table = LayerTable {
            layers: vec![
                layer("a", "Conv", [1.0, 3.0], 5),
                layer("r", "Relu", [9.0, 9.0], 0),
                layer("b", "Conv", [3.0, 1.0], 7),
            ],
            ..LayerTable::default()
        };
        let groups = by_operator(&table);
        assert_eq!(groups[0].name, "Relu");
        let convolutions = &groups[1];
        assert_eq!((convolutions.ms.median, convolutions.ms.p90), (4.0, 4.0));
        assert_eq!(
            (
                convolutions.macs,
                convolutions.own_bytes,
                convolutions.peak_bytes
            ),
            (12, 20, 7)
        );
        assert_eq!(convolutions.nodes, ["a", "b"]);
    }

    #[test]
    fn quantities_sort_descending_words_ascending_and_empty_cells_last() {
        let mut layers = vec![
            layer("b", "Conv", [1.0; 2], 5),
            layer("a", "Relu", [2.0; 2], 0),
        ];
        sort(&mut layers, Column::Ms);
        assert_eq!(layers[0].name, "a");
        sort(&mut layers, Column::Macs);
        assert_eq!(layers[0].name, "b");
        sort(&mut layers, Column::Name);
        assert_eq!(layers[0].name, "a");
        for column in Column::ALL {
            assert_eq!(Column::named(column.name()), Some(column));
        }
    }
}
